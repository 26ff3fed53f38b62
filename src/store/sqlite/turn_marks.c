/* turn_marks.c - see turn_marks.h. */
#include "store/turn_marks.h"
#include "base/assert.h"
#include "sqlite_int.h"
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

struct turns_text {
    char word[16];
    uint8_t store_id[STORE_ID_SIZE];
    struct turn_mark marks[MARKS];
};

static const char word[16] = "pawl turns 3\n";

static void path_of(const struct store *store, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.*s-turns", PATH_MAX - 16, store->file);
}

/* An empty one, unless the file is this store's already. */
static bool read_marks(int fd, const uint8_t store_id[STORE_ID_SIZE], struct turn_mark marks[MARKS])
{
    struct turns_text text;

    if (pread(fd, &text, sizeof text, 0) != (ssize_t)sizeof text ||
        memcmp(text.word, word, sizeof word) != 0 ||
        memcmp(text.store_id, store_id, STORE_ID_SIZE) != 0) {
        memset(&text, 0, sizeof text); /* new, or of another store */
        memcpy(text.word, word, sizeof word);
        memcpy(text.store_id, store_id, STORE_ID_SIZE);
    }
    memcpy(marks, text.marks, sizeof text.marks);
    return pwrite(fd, &text, sizeof text, 0) == (ssize_t)sizeof text;
}

int turns_open(const struct store *store, const uint8_t store_id[STORE_ID_SIZE],
               struct turn_mark marks[MARKS])
{
    char path[PATH_MAX];
    int fd;

    if (!store->file)
        return -1;
    path_of(store, path);
    fd = sqlite_open_beside(store->file, path);
    if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) == 0 && read_marks(fd, store_id, marks)))
        return fd;
    (void)close(fd);
    return -1;
}

void turns_mark(int turns, uint32_t slot, const struct turn_mark *mark)
{
    ssize_t ignored;

    ASSERT(slot < MARKS);
    ignored = pwrite(turns, mark, sizeof *mark,
                     (off_t)(offsetof(struct turns_text, marks) + slot * sizeof *mark));
    (void)ignored; /* then this turn is not counted */
}

void turns_close(const struct store *store, int turns, bool is_empty)
{
    char path[PATH_MAX];

    path_of(store, path);
    if (is_empty)
        (void)unlink(path);
    (void)close(turns);
}
