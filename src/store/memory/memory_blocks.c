/* memory_blocks.c - bytes that stay for ever.
 *
 * Most of them are the log, which is seldom read again. So that a test of a million turns does not
 * need the memory for all of it, blocks beyond SPILL_FROM are in a file without a name. A block
 * that is full is let go of: the kernel brings its pages back when they are read. So is a table of
 * more than TABLE_STEP bytes, which has a file of its own. Where there is no such file, or no room
 * in it, they are on the heap. */
#include "store/memory/memory_int.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAP_BLOCK ((size_t)64 << 10)
#define FILE_BLOCK ((size_t)1 << 20)
#define SPILL_FROM ((size_t)16 << 20)
#define LET_GO     16 /* blocks */
#define TABLE_STEP ((size_t)256 << 10)

static int open_nameless(void)
{
    const char *folder = getenv("TMPDIR");
    char path[256];
    int fd;

    if ((size_t)snprintf(path, sizeof path, "%s/pawl-memory-XXXXXX", folder ? folder : "/tmp") >=
        sizeof path)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

static struct block *map_block(struct disk *disk, size_t size)
{
    void *at;

    if (disk->spill_fd < 0)
        disk->spill_fd = open_nameless();
    if (disk->spill_fd < 0 ||
        posix_fallocate(disk->spill_fd, (off_t)disk->spill_size, (off_t)size) != 0)
        return NULL;
    at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, disk->spill_fd,
              (off_t)disk->spill_size);
    if (at == MAP_FAILED)
        return NULL;
    disk->spill_size += size;
    return at;
}

/* Of the newest blocks, which a reader of the log may have brought back: their bytes stay in the
 * file, only the pages go. */
static void let_go(struct block *block)
{
    struct block *next;

    for (int i = 0; i < LET_GO && block && block->is_mapped; i++, block = next) {
        next = block->next;
        (void)madvise(block, block_bytes(block), MADV_DONTNEED);
    }
}

static size_t rounded(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

struct block *disk_add_block(struct disk *disk, size_t room)
{
    size_t size = sizeof(struct block) + room;
    size_t mapped = rounded(size, FILE_BLOCK);
    struct block *block = disk->heap_bytes < SPILL_FROM ? NULL : map_block(disk, mapped);
    bool is_mapped = block != NULL;

    if (!is_mapped) {
        size = size > HEAP_BLOCK ? size : HEAP_BLOCK;
        block = heap_resize(disk->heap, NULL, 0, size);
        if (!block)
            return NULL;
        disk->heap_bytes += size;
    }
    let_go(disk->blocks);
    *block = (struct block){ .next = disk->blocks,
                             .is_mapped = is_mapped,
                             .size = (is_mapped ? mapped : size) - sizeof *block };
    return disk->blocks = block;
}

void disk_free_blocks(struct disk *disk, const struct block *until)
{
    struct block *block;

    while ((block = disk->blocks) != until) {
        size_t size = block_bytes(block);

        disk->blocks = block->next;
        if (block->is_mapped) {
            (void)munmap(block, size);
            disk->spill_size -= size; /* the newest goes first */
        } else {
            disk->heap_bytes -= size;
            heap_free(disk->heap, block, size);
        }
    }
}

/* ---- Tables ---- */

static size_t bytes_of(const struct table *table)
{
    return table->capacity * sizeof *table->slots;
}

void table_free(const struct heap *heap, struct table *table)
{
    if (table->is_mapped) {
        (void)munmap(table->slots, bytes_of(table));
        (void)close(table->fd);
    } else
        heap_free(heap, table->slots, bytes_of(table));
}

/* From the heap or the file to the heap. */
static bool grow_on_heap(const struct heap *heap, struct table *table, size_t size)
{
    struct slot *slots = heap_resize(heap, table->is_mapped ? NULL : table->slots,
                                     table->is_mapped ? 0 : bytes_of(table), size);

    if (!slots)
        return false;
    if (table->is_mapped) {
        memcpy(slots, table->slots, bytes_of(table));
        table_free(heap, table);
    }
    *table =
        (struct table){ .slots = slots, .count = table->count, .capacity = size / sizeof *slots };
    return true;
}

/* To a file; its pages go, and come back when they are read. */
static bool move_to_file(const struct heap *heap, struct table *table, size_t size)
{
    int fd = open_nameless();
    void *at = fd >= 0 && posix_fallocate(fd, 0, (off_t)size) == 0
                   ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;

    if (at == MAP_FAILED) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    memcpy(at, table->slots, bytes_of(table));
    table_free(heap, table);
    *table = (struct table){ at, table->count, size / sizeof *table->slots, true, fd };
    return true;
}

static bool grow_in_file(struct table *table, size_t size)
{
    void *at;

    if (posix_fallocate(table->fd, 0, (off_t)size) != 0)
        return false;
    (void)madvise(table->slots, bytes_of(table), MADV_DONTNEED);
    at = mremap(table->slots, bytes_of(table), size, MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
        return false;
    table->slots = at;
    table->capacity = size / sizeof *table->slots;
    return true;
}

bool table_reserve(const struct heap *heap, struct table *table, size_t extra)
{
    size_t wanted = (table->count + extra) * sizeof *table->slots, size = bytes_of(table);

    if (wanted <= size)
        return true;
    if (wanted > TABLE_STEP) {
        size = rounded(wanted, TABLE_STEP);
        if (table->is_mapped ? grow_in_file(table, size) : move_to_file(heap, table, size))
            return true;
    }
    for (size = size > 0 ? size : 16 * sizeof *table->slots; size < wanted; size *= 2)
        continue;
    return grow_on_heap(heap, table, size);
}
