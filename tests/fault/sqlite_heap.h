/* sqlite_heap.h - the memory SQLite lives in: quick, counted, and failing when told to.
 *
 * It keeps blocks of a size in lists of their own and gives none back: SQLite's many small
 * allocations would cost a sanitizer more than all the rest of a test. What SQLite has not
 * freed is counted. One thread at a time. */
#ifndef PAWL_TESTS_FAULT_SQLITE_HEAP_H
#define PAWL_TESTS_FAULT_SQLITE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

void sqlite_heap_install(void); /* before SQLite is used for the first time in the process */
void sqlite_heap_arm(uint64_t at, bool for_ever); /* which allocation fails, from 1; 0: none */
bool sqlite_heap_has_failed(void);                /* since it was armed */
uint64_t sqlite_heap_count(void);                 /* allocations since it was armed */
uint64_t sqlite_heap_live(void);                  /* blocks not given back */

#endif
