/* arena.c - blocks from the heap, handed out from the front and freed together. */
#include "base/arena.h"
#include "base/assert.h"
#include "base/limits.h"
#include <stdalign.h>
#include <stdint.h>

struct arena_block {
    struct arena_block *next;
    size_t size, used; /* of data */
    alignas(max_align_t) unsigned char data[];
};

#define ALIGNMENT        alignof(max_align_t)
#define BLOCK_SIZE_MIN   (((size_t)4 << 10) - sizeof(struct arena_block))
#define BLOCK_SIZE_SMALL (((size_t)1 << 10) - sizeof(struct arena_block))
#define BLOCK_SIZE_MAX   (((size_t)256 << 10) - sizeof(struct arena_block))

/* Under the address sanitizer no block is reused, so that a pointer kept over
 * arena_clear() is caught instead of reading the next unit of work. */
#if defined(__SANITIZE_ADDRESS__)
#define REUSE_BLOCKS false
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REUSE_BLOCKS false
#endif
#endif
#ifndef REUSE_BLOCKS
#define REUSE_BLOCKS true
#endif

void arena_init(struct arena *arena, const struct heap *heap, size_t limit)
{
    *arena = (struct arena){ .heap = heap,
                             .limit = limit > 0 ? limit : LIMIT_SCOPE,
                             .least = BLOCK_SIZE_MIN };
}

void arena_init_small(struct arena *arena, const struct heap *heap, size_t limit)
{
    arena_init(arena, heap, limit);
    arena->least = BLOCK_SIZE_SMALL;
}

static void free_blocks(struct arena *arena, const struct arena_block *keep)
{
    struct arena_block *next;

    for (struct arena_block *block = arena->blocks; block; block = next) {
        next = block->next;
        if (block != keep)
            heap_free(arena->heap, block, sizeof *block + block->size);
    }
}

void arena_fini(struct arena *arena)
{
    free_blocks(arena, NULL);
    arena->blocks = NULL;
    arena->used = 0;
}

void arena_clear(struct arena *arena)
{
    struct arena_block *keep = REUSE_BLOCKS ? arena->blocks : NULL;

    while (keep && keep->size > BLOCK_SIZE_MAX) /* one huge value must not stay for ever */
        keep = keep->next;
    free_blocks(arena, keep);
    if (keep) {
        keep->next = NULL;
        keep->used = 0;
    }
    arena->blocks = keep;
    arena->used = keep ? sizeof *keep + keep->size : 0;
    arena->failed = false;
}

/* How much data the next block should hold: `size` at least, and not over the limit. */
static size_t next_block_size(const struct arena *arena, size_t size)
{
    size_t room = arena->limit - arena->used - sizeof(struct arena_block);
    size_t wanted = arena->blocks ? arena->blocks->size * 2 : arena->least;

    wanted = wanted < arena->least ? arena->least : wanted;
    wanted = wanted < BLOCK_SIZE_MAX ? wanted : BLOCK_SIZE_MAX;
    wanted = wanted < room ? wanted : room;
    /* A large value gets a block of its own, and the one in use stays in use. */
    return size > wanted / 4 ? size : wanted;
}

static struct arena_block *add_block(struct arena *arena, size_t size)
{
    struct arena_block *block;

    ASSERT(arena->used <= arena->limit);
    if (arena->limit - arena->used < sizeof *block + size) {
        arena->is_full = true;
        return NULL;
    }
    size = next_block_size(arena, size);
    block = heap_resize(arena->heap, NULL, 0, sizeof *block + size);
    if (!block)
        return NULL;
    block->size = size;
    block->used = 0;
    arena->used += sizeof *block + size;
    return block;
}

/* The block with the most room stands first: it is the one to allocate from. */
static void link_block(struct arena *arena, struct arena_block *block)
{
    struct arena_block *head = arena->blocks;

    if (head && head->size - head->used > block->size - block->used) {
        block->next = head->next;
        head->next = block;
    } else {
        block->next = head;
        arena->blocks = block;
    }
}

void *arena_alloc(struct arena *arena, size_t size)
{
    struct arena_block *block = arena->blocks;
    void *data;

    if (arena->failed || size > SIZE_MAX / 2) {
        arena->failed = true;
        return NULL;
    }
    size = size > 0 ? (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    if (!block || block->size - block->used < size) {
        block = add_block(arena, size);
        if (!block) {
            arena->failed = true;
            return NULL;
        }
        data = memset(block->data, 0, size);
        block->used = size;
        link_block(arena, block);
        return data;
    }
    data = memset(block->data + block->used, 0, size);
    block->used += size;
    return data;
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
    void *copy = arena_alloc(arena, size);

    return copy && size > 0 ? memcpy(copy, data, size) : copy;
}

char *arena_text(struct arena *arena, str s)
{
    char *text = s.data ? arena_alloc(arena, s.size + 1) : NULL;

    if (text && s.size > 0)
        memcpy(text, s.data, s.size);
    return text;
}

str arena_str(struct arena *arena, str s)
{
    char *text = arena_text(arena, s);

    return text ? (str){ text, s.size } : STR_NONE;
}
