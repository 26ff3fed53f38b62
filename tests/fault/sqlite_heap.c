/* sqlite_heap.c - lists of free blocks, one for each size: small ones by 16 bytes, so that what a
 * connection parses stays in the processor's cache; large ones by quarters of a power of two. */
#include "fault/sqlite_heap.h"
#include "lib/test.h"
#include <sqlite3.h>
#include <stdlib.h>

#define SMALL_STEP  16u
#define SMALL_COUNT 64u /* classes of small blocks */
#define CLASS_COUNT (SMALL_COUNT + 4 * 32)
#define CHUNK       ((size_t)1 << 20)
#define CHUNKS_MAX  256u

/* What is before a block; a free one has the next of its list behind that. */
struct block {
    uint32_t size_class, size;
};

static struct block *free_blocks[CLASS_COUNT];
static char *chunks[CHUNKS_MAX]; /* small blocks are cut off them, one after the other */
static uint32_t chunk_at;        /* the present one */
static size_t chunk_used;
static uint64_t live, count, fail_at;
static bool fails_for_ever, has_failed;

void sqlite_heap_arm(uint64_t at, bool for_ever)
{
    fail_at = at;
    fails_for_ever = for_ever;
    has_failed = false;
    count = 0;
}

bool sqlite_heap_has_failed(void)
{
    return has_failed;
}

uint64_t sqlite_heap_count(void)
{
    return count;
}

uint64_t sqlite_heap_live(void)
{
    return live;
}

static bool fails(void)
{
    count++;
    if (fail_at == 0 || (count != fail_at && !(fails_for_ever && count > fail_at)))
        return false;
    has_failed = true;
    return true;
}

static uint32_t class_of(size_t size)
{
    uint32_t bits;

    if (size <= (size_t)SMALL_STEP * SMALL_COUNT)
        return (uint32_t)((size - 1) / SMALL_STEP);
    bits = 63 - (uint32_t)__builtin_clzll(size - 1);
    return SMALL_COUNT + 4 * (bits - 10) + (uint32_t)((size - 1) >> (bits - 2) & 3);
}

/* The largest size of a class. */
static size_t class_size(uint32_t size_class)
{
    uint32_t bits;

    if (size_class < SMALL_COUNT)
        return (size_t)SMALL_STEP * (size_class + 1);
    bits = 10 + (size_class - SMALL_COUNT) / 4;
    return ((size_t)1 << bits) + ((size_class - SMALL_COUNT) % 4 + 1) * ((size_t)1 << (bits - 2));
}

static struct block *block_of(void *memory)
{
    return (struct block *)memory - 1;
}

static struct block **next_of(struct block *block)
{
    return (struct block **)(void *)(block + 1);
}

static struct block *new_block(uint32_t size_class)
{
    size_t size = class_size(size_class);
    void *cut;

    if (size_class >= SMALL_COUNT)
        return malloc(size);
    if (chunk_used + size > CHUNK) {
        chunk_at++;
        chunk_used = 0;
    }
    EXPECT(chunk_at < CHUNKS_MAX);
    if (!chunks[chunk_at])
        chunks[chunk_at] = malloc(CHUNK);
    if (!chunks[chunk_at])
        return NULL;
    cut = chunks[chunk_at] + chunk_used;
    chunk_used += size;
    return cut;
}

/* Nothing is live: what comes next lies in order again, as it is used. */
static void begin_again(void)
{
    for (uint32_t i = 0; i < SMALL_COUNT; i++)
        free_blocks[i] = NULL;
    chunk_at = 0;
    chunk_used = 0;
}

static void *heap_malloc(int size)
{
    uint32_t size_class = class_of((size_t)size + sizeof(struct block));
    struct block *block = free_blocks[size_class];

    if (fails())
        return NULL;
    if (block)
        free_blocks[size_class] = *next_of(block);
    else
        block = new_block(size_class);
    if (!block)
        return NULL;
    *block = (struct block){ size_class, (uint32_t)size };
    live++;
    return block + 1;
}

static void heap_give_back(void *memory)
{
    struct block *block = block_of(memory);

    *next_of(block) = free_blocks[block->size_class];
    free_blocks[block->size_class] = block;
    if (--live == 0)
        begin_again();
}

static int heap_size(void *memory)
{
    return memory ? (int)block_of(memory)->size : 0;
}

static void *heap_realloc(void *memory, int size)
{
    void *grown = heap_malloc(size);
    int old = heap_size(memory);

    if (!grown)
        return NULL;
    memcpy(grown, memory, (size_t)(old < size ? old : size));
    heap_give_back(memory);
    return grown;
}

static int heap_roundup(int size)
{
    return (size + 7) & ~7;
}

static int heap_begin(void *context)
{
    (void)context;
    return SQLITE_OK;
}

static void heap_end(void *context)
{
    (void)context;
}

void sqlite_heap_install(void)
{
    static const sqlite3_mem_methods methods = {
        heap_malloc,  heap_give_back, heap_realloc, heap_size,
        heap_roundup, heap_begin,     heap_end,     NULL,
    };

    EXPECT(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK);
    EXPECT(sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK); /* nothing reads it */
}
