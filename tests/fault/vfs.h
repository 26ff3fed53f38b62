/* vfs.h - a disk in memory under SQLite, which fails, fills up and loses power when told to.
 *
 * A file has two contents: what programs see (`now`), and what would be there after a power
 * cut (`safe`). A write reaches the second only by a sync, or by luck: disk_power_on() draws
 * from its seed what of the unsynced writes was kept, lost, or torn at 512-byte sectors; names
 * of files likewise, each name as it was at some moment since it was last synced.
 *
 * The store looks at the real file of the same name when it opens (is it there, is it empty?),
 * so a store is made on the real disk first and loaded from there. One thread at a time. */
#ifndef PAWL_TESTS_FAULT_VFS_H
#define PAWL_TESTS_FAULT_VFS_H

#include <stdbool.h>
#include <stdint.h>

enum disk_op {
    DISK_READ = 1,
    DISK_WRITE = 2,
    DISK_SYNC = 4,
    DISK_TRUNCATE = 8,
    DISK_OPEN = 16,
    DISK_DELETE = 32,
    DISK_ACCESS = 64,
    DISK_SIZE = 128,
    DISK_LOCK = 256,
    DISK_SHARE = 512, /* mapping the WAL's index */
    DISK_CHANGES = DISK_WRITE | DISK_SYNC | DISK_TRUNCATE | DISK_DELETE,
    DISK_ALL = 1023,
};

enum disk_fault {
    FAULT_EIO,   /* nothing is done, and that is said */
    FAULT_FULL,  /* the same, for want of space */
    FAULT_SHORT, /* the first half is written, then the disk is full */
    FAULT_AFTER, /* it is done, but said to have failed */
    FAULT_POWER, /* the power is cut: nothing works any more until disk_power_on() */
};

struct disk_plan {
    unsigned ops; /* of enum disk_op: which calls count */
    enum disk_fault fault;
    uint64_t at;   /* which of them fails, from 1; 0: none */
    bool for_ever; /* and all after it */
};

void disk_install(void);          /* as SQLite's default, once in a process */
void disk_load(const char *path); /* forget everything; the real file, synced, is all there is */
void disk_save(const char *path); /* the reverse: the real file is what this one is now */
void disk_arm(struct disk_plan plan); /* counting begins anew */
void disk_disarm(void);               /* nothing fails any more; has_failed and count are kept */
bool disk_has_failed(void);
bool disk_is_off(void); /* the power was cut, and nothing works */
void disk_on_sync(void (*fn)(void *context), void *context); /* before each sync; NULL: none */
uint64_t disk_count(void);         /* calls that counted since disk_arm() */
void disk_power_on(uint64_t seed); /* every file must be closed */
unsigned disk_lost(void);          /* how many unsynced writes the last power cut took or tore */
bool disk_is_closed(void);         /* is no file open? */

#endif
