/* world.h - the clock, the dice and the process, for surfaces: nothing outside env/ has its own. */
#ifndef PAWL_API_WORLD_H
#define PAWL_API_WORLD_H

#include <pawl.h>

int64_t world_tick_us(pawl *p); /* monotonic, for durations */
int64_t world_now_ms(pawl *p);  /* the wall clock */
void world_random(pawl *p, void *out, size_t size);
/* 32 random bytes in hexadecimal digits, before there is a store. False: no memory. */
#define WORLD_SECRET_SIZE 65
bool world_secret(char out[WORLD_SECRET_SIZE]);
/* Are they equal? In constant time. */
bool world_same_secret(const char *secret, const char *given, size_t given_size);
/* The test clock goes to what is due next, so many times at most, for no longer than most_ms and
 * not beyond the end of the instance. */
pawl_status world_take_turns(pawl *p, const char *id, uint32_t turns, int64_t most_ms,
                             int64_t *out_moved_ms, pawl_error *error);
/* One of several nodes that serve the same store (PostgreSQL). world_expect_nodes() before it is
 * opened with `own`; world_join() when code and tools are registered; from then on this process
 * owns what falls to it. `address`: where the others reach it. world_retire() before the server
 * stops: what it owns is handed over, and calls that still come are forwarded. */
void world_expect_nodes(void);
pawl_status world_join(pawl *p, const char *address, const char *secret, pawl_error *error);
void world_retire(pawl *p);
void world_share_memory(void); /* at the start of a server: env/trim.h */

/* Set the clock of the store at `url` to this machine's, as its owner. IN_USE. *ahead_ms: how far
 * it was ahead. */
pawl_status clock_accept(const char *url, int64_t *ahead_ms, pawl_error *error);

#endif
