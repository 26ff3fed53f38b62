/* vfs_int.h - private to the disk: contents, names, and who holds which lock. */
#ifndef PAWL_TESTS_FAULT_VFS_INT_H
#define PAWL_TESTS_FAULT_VFS_INT_H

#include "fault/vfs.h"
#include <sqlite3.h>
#include <stddef.h>

#define DISK_NAMES   16
#define DISK_TARGETS 512 /* changes of one name since it was last synced */
#define SHARE_PIECES 16

struct bytes {
    uint8_t *data;
    size_t size, capacity;
};

/* What a name stands for. */
struct content {
    struct content *next;
    struct bytes now, safe;

    /* Who holds the main lock, as SQLite's five levels. */
    uint32_t shared_count;
    struct disk_file *reserved, *exclusive;

    /* The WAL's index: shared memory, here of one process. */
    void *pieces[SHARE_PIECES];
    uint32_t share_users;
    uint32_t slot_shared[SQLITE_SHM_NLOCK];
    struct disk_file *slot_exclusive[SQLITE_SHM_NLOCK];
};

struct name {
    char path[512];
    struct content *now, *safe;
    struct content *targets[DISK_TARGETS]; /* what it stood for since it was synced, in order */
    uint32_t target_count;
};

/* A write or truncation that no sync has covered yet. */
struct unsynced {
    struct unsynced *next;
    struct content *content;
    bool is_truncation;
    bool is_cut; /* the power went as it was written: programs do not see it */
    size_t at, size;
    uint8_t data[];
};

struct disk_file {
    sqlite3_file base;
    struct content *content;
    int lock;
    bool uses_share;
    uint32_t slots_shared, slots_exclusive; /* masks */
};

/* vfs_fault.c: count a call; may it go on? Else *code is what to answer. */
enum disk_verdict { VERDICT_GO, VERDICT_FAIL, VERDICT_HALF, VERDICT_DO_AND_FAIL, VERDICT_CUT };
enum disk_verdict disk_ask(enum disk_op op);
int disk_error(enum disk_op op);

/* vfs_content.c */
void bytes_write(struct bytes *bytes, size_t at, const void *data, size_t size);
void bytes_truncate(struct bytes *bytes, size_t size);
void bytes_copy(struct bytes *to, const struct bytes *from);
struct content *content_new(void);
void content_write(struct content *content, size_t at, const void *data, size_t size);
void content_note(struct content *content, size_t at, const void *data,
                  size_t size); /* only unsynced */
void content_truncate(struct content *content, size_t size);
void content_sync(struct content *content); /* its names as well */
struct name *name_find(const char *path);
struct name *name_add(const char *path);
void name_point(struct name *name, struct content *content); /* NULL: deleted */
void name_sync(struct name *name);
void disk_forget(void);

/* vfs_lock.c */
int lock_take(sqlite3_file *file, int level);
int lock_drop(sqlite3_file *file, int level);
int lock_check(sqlite3_file *file, int *out);
int share_map(sqlite3_file *file, int index, int size, int extend, void volatile **out);
int share_lock(sqlite3_file *file, int offset, int count, int flags);
void share_barrier(sqlite3_file *file);
int share_unmap(sqlite3_file *file, int delete);

#endif
