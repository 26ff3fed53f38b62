/* memory_int.h - private to the memory store: its shapes, and how things are found in them.
 *
 * memory.c opens, closes and gives turns; memory_stage.c, memory_blocks.c and memory_commit.c
 * write; the others read. All that handles of one store share is its disk, guarded by one mutex. On
 * it, what is never taken back (records, values, definitions, instances) stands in tables by
 * number; what comes and goes, and what is looked up by text, is a row in a tree. Records, once
 * there, never move, and change only where their bodies are erased. */
#ifndef PAWL_STORE_MEMORY_MEMORY_INT_H
#define PAWL_STORE_MEMORY_MEMORY_INT_H

#include "base/assert.h"
#include "model/definition.h"
#include "store/instance_log.h"
#include <pthread.h>
#include <stdalign.h>

/* ---- By number ---- */

struct slot {
    uint64_t id;
    void *item;
};

struct table { /* ordered by id */
    struct slot *slots;
    size_t count, capacity;
    bool is_mapped; /* the slots are in the file `fd` (memory_blocks.c) */
    int fd;
};

/* The place of the first that is not below `id`; count if all are below. */
static inline size_t table_seek(const struct table *table, uint64_t id)
{
    size_t low = 0, high = table->count;
    uint64_t guess = high > 0 ? id - table->slots[0].id : 0; /* positions have no gaps */

    if (guess < high && table->slots[guess].id == id)
        return (size_t)guess;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table->slots[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline void *table_find(const struct table *table, uint64_t id) /* NULL if absent */
{
    size_t at = table_seek(table, id);

    return at < table->count && table->slots[at].id == id ? table->slots[at].item : NULL;
}

/* Numbers nearly always come in order: then this only appends. */
static inline void table_put(struct table *table, uint64_t id, void *item)
{
    size_t at = table->count++;

    ASSERT(table->count <= table->capacity);
    for (; at > 0 && table->slots[at - 1].id > id; at--)
        table->slots[at] = table->slots[at - 1];
    ASSERT(at == 0 || table->slots[at - 1].id != id);
    table->slots[at] = (struct slot){ id, item };
}

/* ---- Rows, in trees ---- */

/* The live kinds come first, so that they can be cleared in one go. */
enum row_kind {
    ROW_STEP,
    ROW_TIMER,
    ROW_PAUSE, /* number: the position of its record */
    ROW_WAIT,
    ROW_CHILD, /* of which it is the row: number: its parent; plan: that one's step row; test: it
                  outlives it; attempt 1: it has ended */
    ROW_SNAPSHOT,
    ROW_VALUE,    /* name: the bytes of an interned value; number: its id */
    ROW_NAMED,    /* name: of a definition; number: its id; tie: newest version first */
    ROW_INLINE,   /* name: source_sha of an inline definition; number: its id */
    ROW_STANDING, /* ordinal: its `what`, negated; name: its id; number: the position */
    ROW_KEY,      /* name: id of an idempotency key; number: the position; due_at_ms: its time */
};

struct row;
struct link {
    struct row *left, *right;
    uint64_t weight; /* never above that of the row over it */
};

struct row {
    struct link link[2]; /* in the tree of all rows; in that of the due or of the busy */
    /* The key, in this order. */
    uint64_t instance; /* 0 where it belongs to none */
    enum row_kind kind;
    uint32_t ordinal;
    str name; /* in the row's own memory */
    uint64_t tie;
    /* What it says. */
    uint64_t number; /* an id, or the seq of a snapshot */
    uint32_t plan, attempt;
    enum step_status status;
    int64_t due_at_ms;
    int64_t firing_ms;   /* of ROW_STANDING */
    int64_t ready_at_ms; /* of ROW_STEP */
    bool test;
    bool wall;        /* ROW_TIMER, ROW_STANDING: due by the wall clock */
    int64_t shift_ms; /* ROW_TIMER */
    str text; /* a snapshot's; in the row's own memory */
};

/* A treap: ordered by key from left to right and by weight from top to bottom. With
 * weights as good as random its depth is logarithmic. */
struct row_tree {
    struct row *root;
    int which; /* of a row's links */
    int (*compare)(const struct row *a, const struct row *b);
};

static inline int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static inline int compare_keys(const struct row *a, const struct row *b)
{
    int order = compare_numbers(a->instance, b->instance);

    order = order ? order : compare_numbers(a->kind, b->kind);
    order = order ? order : compare_numbers(a->ordinal, b->ordinal);
    order = order ? order : str_compare(a->name, b->name);
    return order ? order : compare_numbers(a->tie, b->tie);
}

static inline int compare_due(const struct row *a, const struct row *b)
{
    int order = compare_numbers(a->wall, b->wall);

    order = order ? order : (a->due_at_ms > b->due_at_ms) - (a->due_at_ms < b->due_at_ms);
    return order ? order : compare_keys(a, b);
}

static inline int compare_waits(const struct row *a, const struct row *b)
{
    int order = str_compare(a->name, b->name);

    order = order ? order : compare_numbers(a->instance, b->instance);
    return order ? order : compare_numbers(a->ordinal, b->ordinal);
}

static inline int compare_children(const struct row *a, const struct row *b)
{
    int order = compare_numbers(a->number, b->number);

    return order ? order : compare_numbers(a->instance, b->instance);
}

/* The first row at or after `probe`; with `past`, the first after it. NULL: none. */
static inline struct row *tree_seek(const struct row_tree *tree, const struct row *probe, bool past)
{
    struct row *found = NULL, *at = tree->root;

    while (at) {
        int order = tree->compare(at, probe);

        if (order > 0 || (order == 0 && !past)) {
            found = at;
            at = at->link[tree->which].left;
        } else
            at = at->link[tree->which].right;
    }
    return found;
}

static inline void tree_insert(struct row_tree *tree, struct row *row)
{
    struct row **at = &tree->root, *rest, **low, **high;
    int which = tree->which;

    while (*at && (*at)->link[which].weight > row->link[which].weight)
        at = tree->compare(*at, row) < 0 ? &(*at)->link[which].right : &(*at)->link[which].left;
    /* Split what hangs there into the rows before this one and those after it. */
    rest = *at;
    low = &row->link[which].left;
    high = &row->link[which].right;
    while (rest)
        if (tree->compare(rest, row) < 0) {
            *low = rest;
            low = &rest->link[which].right;
            rest = *low;
        } else {
            *high = rest;
            high = &rest->link[which].left;
            rest = *high;
        }
    *low = *high = NULL;
    *at = row;
}

static inline void tree_remove(struct row_tree *tree, struct row *row)
{
    int which = tree->which;
    struct row **at = &tree->root, *a = row->link[which].left, *b = row->link[which].right;

    while (*at != row) {
        ASSERT(*at);
        at = tree->compare(*at, row) < 0 ? &(*at)->link[which].right : &(*at)->link[which].left;
    }
    while (a && b) /* merge its two halves */
        if (a->link[which].weight > b->link[which].weight) {
            *at = a;
            at = &a->link[which].right;
            a = *at;
        } else {
            *at = b;
            at = &b->link[which].left;
            b = *at;
        }
    *at = a ? a : b;
}

/* ---- The disk ---- */

struct memory_definition {
    struct definition_row row;
    uint32_t compiler, initial;
    const struct state *states;
    uint32_t state_count;
    const uint32_t *to; /* the state each transition leads to */
    uint32_t transition_count;
};

/* All about one instance, or about the store itself (number 0). A cell without row and
 * head says nothing: a commit that failed may leave one behind. */
struct cell {
    bool has_row, has_head;
    struct instance_row row;
    struct head_row head;   /* as it was written: may lag */
    struct head_row latest; /* by the log; pos 0: no record yet */
};

struct block {
    struct block *next;
    bool is_mapped; /* in the file of the disk's spill_fd */
    size_t size, used;
    alignas(max_align_t) unsigned char data[];
};

static inline size_t block_bytes(const struct block *block)
{
    return sizeof *block + block->size;
}

struct memory;

struct disk {
    struct disk *next; /* in the registry */
    char *name;        /* NULL: private */
    size_t name_size;
    uint32_t handle_count; /* under the registry's lock */
    const struct heap *heap;

    pthread_mutex_t lock; /* over all that follows */
    pthread_cond_t turn_over;
    const struct memory *writer; /* has the turn; NULL: no writer */
    pthread_t writer_thread;
    const struct memory *owner; /* NULL: no owner */
    char owner_address[128];

    struct block *blocks; /* bytes that stay for ever */
    size_t heap_bytes, spill_size;
    int spill_fd; /* -1: not needed yet, or it could not be made */
    struct table records, values, definitions, cells;
    struct row_tree rows, due, busy;
    struct row_tree keys;            /* by their time */
    struct row_tree waits, children; /* by signal; by parent */
    uint64_t row_number;         /* rows made so far */
    struct store_tip tip;
};

struct memory { /* a handle */
    struct store store;
    const struct heap *heap;
    struct disk *disk;
};

static inline struct disk *disk_lock(struct store *store)
{
    struct disk *disk = ((struct memory *)store)->disk;

    pthread_mutex_lock(&disk->lock);
    return disk;
}

static inline void disk_unlock(struct disk *disk)
{
    pthread_mutex_unlock(&disk->lock);
}

/* A step that is ready or running? */
static inline bool row_is_busy(const struct row *row)
{
    return row->kind == ROW_STEP && (row->status == STEP_READY || row->status == STEP_RUNNING);
}

/* The row of this key, or NULL. */
static inline struct row *row_find(const struct disk *disk, const struct row *key)
{
    struct row *row = tree_seek(&disk->rows, key, false);

    return row && compare_keys(row, key) == 0 ? row : NULL;
}

static inline size_t row_size(const struct row *row)
{
    return sizeof *row + row->name.size + row->text.size;
}

static inline void row_free(struct disk *disk, struct row *row)
{
    if (row)
        heap_free(disk->heap, row, row_size(row));
}

/* The other tree a row stands in, or NULL. */
static inline struct row_tree *second_tree(struct disk *disk, const struct row *row)
{
    if (row->kind == ROW_TIMER && !row->test)
        return &disk->due;
    if (row->kind == ROW_KEY)
        return &disk->keys;
    if (row->kind == ROW_WAIT)
        return &disk->waits;
    if (row->kind == ROW_CHILD)
        return &disk->children;
    return row_is_busy(row) ? &disk->busy : NULL;
}

static inline void row_drop(struct disk *disk, struct row *row)
{
    struct row_tree *second = second_tree(disk, row);

    tree_remove(&disk->rows, row);
    if (second)
        tree_remove(second, row);
    row_free(disk, row);
}

/* ---- A commit: memory_stage.c, memory_commit.c ---- */

/* What a commit is turned into before anything of it can be seen. */
struct staging {
    struct disk *disk;
    const struct commit *commit;
    bool failed; /* sticky: there was no memory */
    struct record *records;
    struct value *values;
    struct memory_definition *definitions;
    struct instance_row *instances;
    struct redaction *redactions;
    struct row **rows; /* of the live changes that put, in order; then all others */
    size_t row_count;
};

/* Stage the commit whole; if that fails, nothing is left of it. */
pawl_status commit_stage(struct staging *staging, struct scope *scope);

/* The row that a live change is about, and whether it puts one. */
struct row live_row(const struct live_change *change);
bool live_is_put(const struct live_change *change);

/* Write a commit, all or nothing. Under the disk's lock. */
pawl_status disk_commit(struct disk *disk, const struct commit *commit, struct scope *scope);

/* ---- Bytes that stay for ever: memory_blocks.c ---- */

/* Room for so many slots more; false: there is no memory. */
bool table_reserve(const struct heap *heap, struct table *table, size_t extra);
void table_free(const struct heap *heap, struct table *table);

/* A block with room for so many bytes, in front of the others; NULL: there is no memory. */
struct block *disk_add_block(struct disk *disk, size_t room);

/* Give them back, down to the block `until`. */
void disk_free_blocks(struct disk *disk, const struct block *until);

/* ---- Reading: memory_read.c, memory_live.c, memory_rows.c, memory_list.c ---- */

/* How a read ends: unlock, and OK unless something could not be copied. */
pawl_status read_end(struct disk *disk, struct scope *scope);

/* Where an instance really is: the row, unless the log has gone on since. */
struct head_row head_now(const struct cell *cell);

/* The pause that is in force, or NULL. */
const struct row *pause_of(const struct disk *disk, uint64_t instance);

/* The first busy step of this instance or of a later one; NULL: none. */
const struct row *busy_from(const struct disk *disk, uint64_t instance);

/* The newest version of the first name that is `name` or, with `past`, comes after it. */
const struct row *newest_named(const struct disk *disk, str name, bool past);

struct standing_row standing_of(const struct row *row, struct arena *arena);

/* Rows of `size` bytes each, as they are found. */
struct found {
    struct arena *arena; /* its `failed` tells when one could not be added */
    size_t size;
    void *rows;
    uint32_t count, capacity;
};

bool found_add(struct found *found, const void *row); /* a copy of it; false: no memory */
struct live_timer timer_of(const struct row *row, struct arena *arena);
struct live live_of_instance(const struct disk *disk, uint64_t instance, struct arena *arena);
void list_children(const struct disk *disk, const struct child_query *query, struct found *found);

STORE_READS(memory);

#endif
