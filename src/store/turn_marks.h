/* turn_marks.h - FILE-turns: what a program is doing that may kill it, for the one that comes after
 * its death: turns of code and calls of tools.
 *
 * Written in place and never synced: what a process wrote is there after its own death, and the
 * death of the machine is not the code's fault. Each turn of code is noted twice, and a call of the
 * system costs as much as a short turn: so the file is mapped, where it can be.
 *
 * Programs that share a store have a file each: FILE-turns, FILE-turns-1 to FILE-turns-7. */
#ifndef PAWL_STORE_TURN_MARKS_H
#define PAWL_STORE_TURN_MARKS_H

#include "store/store.h"

#define TURN_MARKS 64u
#define CALL_MARKS 256u
#define TYPE_MARKS 32u
#define MARKS      (TURN_MARKS + CALL_MARKS + TYPE_MARKS) /* in this order */

/* A turn of code that is being taken, or a call that is being made, or that was when the process
 * died. */
struct turn_mark {
    uint64_t name;   /* of a turn its instance's number, or a hash; 0: none */
    uint32_t deaths; /* of owners in a row during it; of a type: instances paused for it */
    uint32_t is_running;
    int64_t at_ms; /* of a type: when the last of them was paused, by the wall clock */
};

#define TURN_FILES 8u

struct turn_file {
    int fd;
    uint32_t number;
    struct turns_text *mapped; /* NULL: it is written to instead */
};

/* The first file that no program keeps, with the marks that the program before left. False: this
 * store has no such files, or other programs keep all of them. */
bool turns_open(const struct store *store, const uint8_t store_id[STORE_ID_SIZE],
                struct turn_file *out, struct turn_mark marks[MARKS]);
/* Read the marks in file `number` and delete it. False: it is not there, or a program uses it. */
bool turns_inherit(const struct store *store, const uint8_t store_id[STORE_ID_SIZE],
                   uint32_t number, struct turn_mark marks[MARKS]);
void turns_mark(const struct turn_file *file, uint32_t slot, const struct turn_mark *mark);
void turns_close(const struct store *store, const struct turn_file *file,
                 bool is_empty); /* then deleted */

#endif
