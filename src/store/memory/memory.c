/* memory.c - the reference store: opening, closing, and turns to write.
 *
 * "memory:" is private and goes with its handle. "memory:NAME" is one store for the whole
 * process, kept in a registry until its end: tests and simulators close and reopen it as
 * if it were a file. It outlives its handles, and with them the heap they were given, so
 * it lives on libc's. */
#include "store/memory/memory_int.h"
#include <stdio.h>
#include <unistd.h>

/* ---- Turns ---- */

static pawl_status disk_fail_in_use(const struct disk *disk, struct scope *scope)
{
    return scope_fail(scope, PAWL_IN_USE, "memory:%.*s is owned by process %ld%s%s",
                      (int)disk->name_size, disk->name ? disk->name : "", (long)getpid(),
                      disk->owner_address[0] ? " at " : "", disk->owner_address);
}

/* Another thread's turn ends by itself; the same thread would wait for itself for ever. */
static pawl_status wait_for_turn(struct disk *disk, struct scope *scope)
{
    while (disk->writer) {
        if (pthread_equal(disk->writer_thread, pthread_self()))
            return scope_fail(scope, PAWL_IN_USE,
                              "this thread already has its turn to write, by another handle");
        pthread_cond_wait(&disk->turn_over, &disk->lock);
    }
    return PAWL_OK;
}

static pawl_status memory_begin(struct store *store, struct scope *scope, struct store_tip *out)
{
    const struct memory *memory = (struct memory *)store;
    struct disk *disk = disk_lock(store);
    pawl_status status = wait_for_turn(disk, scope);

    if (status == PAWL_OK && disk->owner && disk->owner != memory)
        status = disk_fail_in_use(disk, scope);
    if (status == PAWL_OK) {
        disk->writer = memory;
        disk->writer_thread = pthread_self();
        *out = disk->tip;
    }
    disk_unlock(disk);
    return status;
}

static void disk_end_turn(struct disk *disk)
{
    disk->writer = NULL;
    pthread_cond_signal(&disk->turn_over);
}

static pawl_status memory_commit(struct store *store, struct scope *scope,
                                 const struct commit *commit)
{
    struct disk *disk = disk_lock(store);
    pawl_status status;

    ASSERT(disk->writer == (struct memory *)store);
    status = disk_commit(disk, commit, scope);
    disk_end_turn(disk);
    disk_unlock(disk);
    return status;
}

static void memory_rollback(struct store *store)
{
    struct disk *disk = disk_lock(store);

    ASSERT(disk->writer == (struct memory *)store);
    disk_end_turn(disk);
    disk_unlock(disk);
}

/* ---- Opening and closing ---- */

static struct {
    pthread_mutex_t lock;
    struct disk *first;
} registry = { PTHREAD_MUTEX_INITIALIZER, NULL }; /* of the named ones alone */

/* Every row, without keeping the tree in order: turn left branches over until none is left,
 * free, go right. */
static void free_rows(struct disk *disk)
{
    struct row *row = disk->rows.root, *next;

    for (; row; row = next) {
        next = row->link[0].left;
        if (next) {
            row->link[0].left = next->link[0].right;
            next->link[0].right = row;
        } else {
            next = row->link[0].right;
            row_free(disk, row);
        }
    }
}

static void disk_free(struct disk *disk)
{
    free_rows(disk);
    for (size_t i = 0; i < disk->cells.count; i++)
        heap_free(disk->heap, disk->cells.slots[i].item, sizeof(struct cell));
    table_free(disk->heap, &disk->records);
    table_free(disk->heap, &disk->values);
    table_free(disk->heap, &disk->definitions);
    table_free(disk->heap, &disk->cells);
    disk_free_blocks(disk, NULL);
    if (disk->spill_fd >= 0)
        (void)close(disk->spill_fd);
    heap_free(disk->heap, disk->name, disk->name_size + 1);
    pthread_cond_destroy(&disk->turn_over);
    pthread_mutex_destroy(&disk->lock);
    heap_free(disk->heap, disk, sizeof *disk);
}

/* One with a name is in the registry from now on. */
static struct disk *disk_new(const struct heap *heap, str name, const struct store_tip *tip)
{
    struct disk *disk = heap_new(heap, sizeof *disk);

    if (!disk)
        return NULL;
    disk->heap = heap;
    disk->spill_fd = -1;
    disk->rows = (struct row_tree){ NULL, 0, compare_keys };
    disk->due = (struct row_tree){ NULL, 1, compare_due };
    disk->busy = (struct row_tree){ NULL, 1, compare_keys };
    disk->keys = (struct row_tree){ NULL, 1, compare_due };
    disk->waits = (struct row_tree){ NULL, 1, compare_waits };
    disk->children = (struct row_tree){ NULL, 1, compare_children };
    pthread_mutex_init(&disk->lock, NULL); /* neither fails here: no attributes, no system */
    pthread_cond_init(&disk->turn_over, NULL);
    disk->tip = *tip;
    if (name.size == 0)
        return disk;
    disk->name = heap_new(heap, name.size + 1);
    if (!disk->name) {
        disk_free(disk);
        return NULL;
    }
    memcpy(disk->name, name.data, name.size);
    disk->name_size = name.size;
    disk->next = registry.first;
    return registry.first = disk;
}

/* Under the registry's lock: what the name stands for, made if need be. */
static pawl_status find_disk(str name, const struct store_options *options, struct scope *scope,
                             struct disk **out)
{
    struct disk *disk = registry.first;
    struct store_tip tip;

    while (disk && !str_eq((str){ disk->name, disk->name_size }, name))
        disk = disk->next;
    if (!disk && !options->create)
        return scope_fail(scope, PAWL_NOT_KNOWN, "there is no store memory:%.*s", STR_ARG(name));
    if (!disk) {
        TRY(store_new_ids(options, scope, &tip));
        disk = disk_new(name.size > 0 ? &heap_libc : options->heap, name, &tip);
        TRY_MEMORY(scope, disk);
    }
    if (options->own && disk->owner)
        return disk_fail_in_use(disk, scope);
    *out = disk;
    return PAWL_OK;
}

static pawl_status memory_open(str rest, const struct store_options *options, struct scope *scope,
                               struct store **out)
{
    struct memory *memory = heap_new(options->heap, sizeof *memory);
    pawl_status status;

    TRY_MEMORY(scope, memory);
    *memory = (struct memory){ { &memory_store_ops }, options->heap, NULL };
    pthread_mutex_lock(&registry.lock);
    status = find_disk(rest, options, scope, &memory->disk);
    if (status == PAWL_OK) {
        memory->disk->handle_count++;
        if (options->own) {
            disk_lock(&memory->store)->owner = memory;
            (void)snprintf(memory->disk->owner_address, sizeof memory->disk->owner_address, "%s",
                           options->address ? options->address : "");
            disk_unlock(memory->disk);
        }
        *out = &memory->store;
    } else
        heap_free(options->heap, memory, sizeof *memory);
    pthread_mutex_unlock(&registry.lock);
    return status;
}

static void memory_close(struct store *store)
{
    struct memory *memory = (struct memory *)store;
    struct disk *disk;

    pthread_mutex_lock(&registry.lock);
    disk = disk_lock(store);
    if (disk->writer == memory)
        disk_end_turn(disk);
    if (disk->owner == memory)
        disk->owner = NULL;
    disk->handle_count--;
    disk_unlock(disk);
    if (!disk->name)
        disk_free(disk);
    pthread_mutex_unlock(&registry.lock);
    heap_free(memory->heap, memory, sizeof *memory);
}

/* Nothing was lost, so that there is nothing to recover. */
static pawl_status memory_reopen(struct store *store, struct scope *scope)
{
    (void)store;
    (void)scope;
    return PAWL_OK;
}

const struct store_ops memory_store_ops = {
    .scheme = "memory",
    .reopen = memory_reopen,
    .open = memory_open,
    .close = memory_close,
    .begin = memory_begin,
    .commit = memory_commit,
    .rollback = memory_rollback,
    STORE_READ_OPS(memory),
};
