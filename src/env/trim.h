/* trim.h - memory that nobody uses any more goes back to the system. */
#ifndef PAWL_ENV_TRIM_H
#define PAWL_ENV_TRIM_H

/* After something large was freed, in pieces and by many threads: the C library keeps such pages
 * for later, and would for ever. Takes milliseconds. */
void memory_give_back(void);

/* At the start of a program of our own: threads share a few pools of memory instead of having one
 * each, so that what one has freed serves the next. */
void memory_share_pools(void);

#endif
