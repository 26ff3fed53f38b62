/* stage.h - a folder with an empty store in it, and the disk in memory that is loaded from it. */
#ifndef PAWL_TESTS_FAULT_STAGE_H
#define PAWL_TESTS_FAULT_STAGE_H

#include <stdbool.h>
#include <stdint.h>

extern char stage_path[96], stage_url[112]; /* of the store */

/* Once in a test, before SQLite is used. The folder goes with the process. */
void stage_begin(void);

#endif
