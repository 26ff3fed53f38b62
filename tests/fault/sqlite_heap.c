/* sqlite_heap.c - lists of free blocks, one for each size of a power of two. */
#include "fault/sqlite_heap.h"
#include "lib/test.h"
#include <sqlite3.h>
#include <stdlib.h>

#define CLASS_COUNT 32

struct block {
    struct block *next;
    uint32_t size_class, size;
};

static struct block *free_blocks[CLASS_COUNT];
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

/* The smallest class of at least 32 bytes that holds `size`. */
static uint32_t class_of(size_t size)
{
    return size <= 32 ? 5 : 64 - (uint32_t)__builtin_clzll(size - 1);
}

static struct block *block_of(void *memory)
{
    return (struct block *)memory - 1;
}

static void *heap_malloc(int size)
{
    uint32_t size_class = class_of((size_t)size + sizeof(struct block));
    struct block *block = free_blocks[size_class];

    if (fails())
        return NULL;
    if (block)
        free_blocks[size_class] = block->next;
    else
        block = malloc((size_t)1 << size_class);
    if (!block)
        return NULL;
    *block = (struct block){ NULL, size_class, (uint32_t)size };
    live++;
    return block + 1;
}

static void heap_give_back(void *memory)
{
    struct block *block = block_of(memory);

    block->next = free_blocks[block->size_class];
    free_blocks[block->size_class] = block;
    live--;
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
