/* world.h - the clock, the dice and the process, for surfaces: nothing outside env/ has its own. */
#ifndef PAWL_API_WORLD_H
#define PAWL_API_WORLD_H

#include <pawl.h>

int64_t world_tick_us(pawl *p); /* monotonic, for durations */
int64_t world_now_ms(pawl *p);  /* the wall clock */
void world_random(pawl *p, void *out, size_t size);
void world_share_memory(void); /* at the start of a server: env/trim.h */

#endif
