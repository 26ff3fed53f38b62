/* turn_marks.c - see turn_marks.h. */
#include "store/turn_marks.h"
#include "base/assert.h"
#include "sqlite_int.h"
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct turns_text {
    char word[16];
    uint8_t store_id[STORE_ID_SIZE];
    struct turn_mark marks[MARKS];
};

static const char word[16] = "pawl turns 3\n";

static void path_of(const struct store *store, uint32_t number, char out[PATH_MAX])
{
    int size = snprintf(out, PATH_MAX, "%.*s-turns", PATH_MAX - 32, store->file);

    if (number)
        snprintf(out + size, (size_t)(PATH_MAX - size), "-%u", number);
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

/* Locked, and still the file of that name: the program that kept it may have deleted it. */
static bool is_taken(int fd, const char *path)
{
    struct stat own, named;

    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &own) == 0 && stat(path, &named) == 0 &&
           own.st_ino == named.st_ino;
}

static bool take(int fd, const char *path, const uint8_t store_id[STORE_ID_SIZE],
                 struct turn_mark marks[MARKS])
{
    if (fd >= 0 && is_taken(fd, path) && read_marks(fd, store_id, marks))
        return true;
    if (fd >= 0)
        (void)close(fd);
    return false;
}

static struct turns_text *map(int fd)
{
    void *mapped = mmap(NULL, sizeof(struct turns_text), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return mapped == MAP_FAILED ? NULL : mapped;
}

bool turns_open(const struct store *store, const uint8_t store_id[STORE_ID_SIZE],
                struct turn_file *out, struct turn_mark marks[MARKS])
{
    char path[PATH_MAX];

    for (uint32_t i = 0; store->file && i < TURN_FILES; i++) {
        path_of(store, i, path);
        *out = (struct turn_file){ sqlite_open_beside(store->file, path), i, NULL };
        if (take(out->fd, path, store_id, marks)) {
            out->mapped = map(out->fd);
            return true;
        }
    }
    return false;
}

bool turns_inherit(const struct store *store, const uint8_t store_id[STORE_ID_SIZE],
                   uint32_t number, struct turn_mark marks[MARKS])
{
    char path[PATH_MAX];
    int fd;

    path_of(store, number, path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (!take(fd, path, store_id, marks))
        return false;
    turns_close(store, &(struct turn_file){ fd, number, NULL }, true);
    return true;
}

void turns_mark(const struct turn_file *file, uint32_t slot, const struct turn_mark *mark)
{
    ssize_t ignored;

    ASSERT(slot < MARKS);
    if (file->mapped) {
        file->mapped->marks[slot] = *mark;
        return;
    }
    ignored = pwrite(file->fd, mark, sizeof *mark,
                     (off_t)(offsetof(struct turns_text, marks) + slot * sizeof *mark));
    (void)ignored; /* then this turn is not counted */
}

void turns_close(const struct store *store, const struct turn_file *file, bool is_empty)
{
    char path[PATH_MAX];

    path_of(store, file->number, path);
    if (file->mapped)
        munmap(file->mapped, sizeof *file->mapped);
    if (is_empty)
        (void)unlink(path);
    (void)close(file->fd);
}
