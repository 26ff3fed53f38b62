/* trim.h - returns unused memory to the system. */
#ifndef PAWL_ENV_TRIM_H
#define PAWL_ENV_TRIM_H

/* To be called after many threads have freed large memory in small pieces: the C library would keep
 * such pages for ever. Takes milliseconds. */
void memory_give_back(void);

/* To be called at the start of our own program: threads share a few memory pools instead of having
 * one each, so that memory freed by one thread serves the next. */
void memory_share_pools(void);

#endif
