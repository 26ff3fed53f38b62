/* turns.c - FILE-turns: which turns of code a program is taking, for the one that comes after its death:
 * the owner, or of programs that share the store the first one that has the lock of this file.
 *
 * Written in place and never synced: what a process wrote is there after its own death, and the death of
 * the machine is not the code's fault. */
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

static void path_of(const struct sqlite_store *store, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.*s-turns", PATH_MAX - 16, store->path);
}

static bool write_all(const struct sqlite_store *store, const struct turns_text *text)
{
    return pwrite(store->turns_fd, text, sizeof *text, 0) == (ssize_t)sizeof *text;
}

bool sqlite_turns_open(struct store *base, const uint8_t store_id[STORE_ID_SIZE],
                       struct turn_mark marks[MARKS])
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct turns_text text;
    char path[PATH_MAX];

    if (store->is_attached || store->is_read_only || !store->path[0])
        return false;
    path_of(store, path);
    store->turns_fd = sqlite_open_beside(store->path, path);
    if (store->turns_fd < 0)
        return false;
    if (flock(store->turns_fd, LOCK_EX | LOCK_NB) != 0) { /* of programs that share it one counts */
        (void)close(store->turns_fd);
        store->turns_fd = -1;
        return false;
    }
    if (pread(store->turns_fd, &text, sizeof text, 0) != (ssize_t)sizeof text ||
        memcmp(text.word, word, sizeof word) != 0 ||
        memcmp(text.store_id, store_id, STORE_ID_SIZE) != 0) {
        memset(&text, 0, sizeof text); /* new, or of another store */
        memcpy(text.word, word, sizeof word);
        memcpy(text.store_id, store_id, STORE_ID_SIZE);
    }
    if (!write_all(store, &text)) {
        (void)close(store->turns_fd);
        store->turns_fd = -1;
        return false;
    }
    memcpy(marks, text.marks, sizeof text.marks);
    return true;
}

void sqlite_turns_mark(struct store *base, uint32_t slot, const struct turn_mark *mark)
{
    ssize_t ignored = pwrite(sqlite_store_of(base)->turns_fd, mark, sizeof *mark,
                             (off_t)(offsetof(struct turns_text, marks) + slot * sizeof *mark));

    (void)ignored; /* then this turn is not counted */
}

void sqlite_turns_close(struct store *base, bool is_empty)
{
    struct sqlite_store *store = sqlite_store_of(base);
    char path[PATH_MAX];

    if (store->turns_fd < 0)
        return;
    path_of(store, path);
    if (is_empty)
        (void)unlink(path);
    (void)close(store->turns_fd);
    store->turns_fd = -1;
}
