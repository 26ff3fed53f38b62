/* trim.c - see trim.h. Without glibc these functions do nothing. */
#include "env/trim.h"
#include <stdlib.h> /* says whether this is glibc */
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define POOLS 4

void memory_give_back(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void memory_share_pools(void)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, POOLS);
#endif
}
