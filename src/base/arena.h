/* arena.h - memory that goes all at once. An arena has a limit; over it, and when
 * the heap gives nothing, allocation answers NULL and the arena stays `failed`. */
#ifndef PAWL_BASE_ARENA_H
#define PAWL_BASE_ARENA_H

#include "base/heap.h"
#include "base/str.h"

struct arena_block;

struct arena {
    const struct heap *heap;
    struct arena_block *blocks;
    size_t used, limit; /* bytes taken from the heap, and how many may be */
    size_t least;       /* of data in a block */
    bool failed;
    bool is_full; /* it once failed for its limit, not for want of memory; stays */
};

void arena_init(struct arena *arena, const struct heap *heap, size_t limit);
/* For one of thousands that live long: it begins with a quarter of the memory. */
void arena_init_small(struct arena *arena, const struct heap *heap, size_t limit);
void arena_fini(struct arena *arena);
void arena_clear(struct arena *arena); /* as after init, but keeps one block for reuse */

void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned for anything */
void *arena_copy(struct arena *arena, const void *data, size_t size);
str arena_str(struct arena *arena, str s);           /* a copy, NUL-terminated; STR_NONE stays */
char *arena_text(struct arena *arena, str s);        /* the same as char * */

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc((arena), sizeof(type) * (count)))

#endif
