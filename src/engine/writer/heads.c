/* heads.c - where each instance stands, in memory, and which rows lag behind.
 *
 * A hash table of indices into chunks, so that a million heads cost a million heads and
 * little more. Rows are swept in cycles: those that lag when a cycle begins are sorted by
 * number once and then written a slice at a time; what falls behind meanwhile waits for the
 * next cycle. When a cycle ends, all rows are right up to where the log ended as it began. */
#include "engine/parts.h"

#define HEAD_CHUNK 4096u

static struct head *at(const struct heads *heads, uint32_t index)
{
    return &heads->chunks[index / HEAD_CHUNK][index % HEAD_CHUNK];
}

/* The highest bits of the product: they lay numbers that follow each other evenly apart, so that
 * hardly two of them meet. */
static uint32_t slot_of(uint64_t instance, uint32_t slot_count)
{
    return (uint32_t)((instance * UINT64_C(0x9E3779B97F4A7C15)) >>
                      (64 - __builtin_ctz(slot_count)));
}

/* Room for twice as many lagging rows. */
static bool grow_dirty(struct heads *heads)
{
    size_t old_size = sizeof(uint64_t) * heads->dirty_capacity;
    size_t new_size = old_size ? 2 * old_size : sizeof(uint64_t) * 1024;
    uint64_t **lists[] = { &heads->dirty, &heads->cycle, &heads->scratch };
    uint64_t *grown[3];
    bool all = true;

    for (size_t i = 0; i < 3; i++)
        all = (grown[i] = heap_new(heads->heap, new_size)) && all;
    for (size_t i = 0; i < 3; i++) {
        if (all && old_size)
            memcpy(grown[i], *lists[i], old_size);
        heap_free(heads->heap, all ? *lists[i] : grown[i], all ? old_size : new_size);
        if (all)
            *lists[i] = grown[i];
    }
    if (!all)
        return false;
    heads->dirty_capacity = (uint32_t)(new_size / sizeof(uint64_t));
    return true;
}

uint8_t head_flags(const struct instance_row *fixed, bool is_paused)
{
    return (uint8_t)((fixed->test ? HEAD_TEST : 0u) | (is_paused ? HEAD_PAUSED : 0u) |
                     (fixed->parent ? HEAD_CHILD : 0u) | (fixed->metadata ? HEAD_TOLD : 0u));
}

struct head head_of_rows(const struct head_row *row, const struct instance_row *fixed)
{
    struct head head = { .instance = fixed->number,
                         .pos = row->pos,
                         .seq = (uint32_t)row->seq,
                         .state = (uint16_t)row->state,
                         .definition = fixed->definition,
                         .skip = SKIP_UNKNOWN,
                         .flags = head_flags(fixed, row->paused) };

    memcpy(head.random, fixed->random, ID_RANDOM_SIZE);
    return head;
}

struct head_row row_of_head(const struct head *head)
{
    return (struct head_row){ .instance = head->instance,
                              .seq = head->seq,
                              .pos = head->pos,
                              .state = head->state,
                              .paused = (head->flags & HEAD_PAUSED) != 0 };
}

bool heads_init(struct heads *heads, const struct heap *heap)
{
    *heads = (struct heads){ .heap = heap, .slot_count = 1024 };
    heads->slots = heap_new(heap, sizeof *heads->slots * heads->slot_count);
    return heads->slots && grow_dirty(heads);
}

void heads_fini(struct heads *heads)
{
    const struct heap *heap = heads->heap;

    for (uint32_t i = 0; i < heads->chunk_count; i++)
        heap_free(heap, heads->chunks[i], sizeof(struct head) * HEAD_CHUNK);
    heap_free(heap, heads->chunks, sizeof(struct head *) * heads->chunk_count);
    heap_free(heap, heads->slots, sizeof *heads->slots * heads->slot_count);
    heap_free(heap, heads->free_list, sizeof *heads->free_list * heads->free_capacity);
    heap_free(heap, heads->dirty, sizeof *heads->dirty * heads->dirty_capacity);
    heap_free(heap, heads->cycle, sizeof *heads->cycle * heads->dirty_capacity);
    heap_free(heap, heads->scratch, sizeof *heads->scratch * heads->dirty_capacity);
    *heads = (struct heads){ 0 };
}

void heads_clear(struct heads *heads)
{
    memset(heads->slots, 0, sizeof *heads->slots * heads->slot_count);
    heads->count = heads->free_count = heads->hand = 0;
    heads->dirty_count = heads->cycle_count = heads->cycle_next = 0;
    heads->is_whole = false;
}

struct head *heads_find(struct heads *heads, uint64_t instance)
{
    uint32_t slot = slot_of(instance, heads->slot_count);

    while (heads->slots[slot]) {
        struct head *head = at(heads, heads->slots[slot] - 1);

        if (head->instance == instance) {
            head->recent = 1;
            return head;
        }
        slot = (slot + 1) & (heads->slot_count - 1);
    }
    return NULL;
}

/* Among a million heads each is somewhere else in memory, and to wait for it is most of what
 * finding it costs: ask for many at once, first for their slots, then for themselves. */
void heads_expect(const struct heads *heads, const uint64_t *instances, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        __builtin_prefetch(&heads->slots[slot_of(instances[i], heads->slot_count)]);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = heads->slots[slot_of(instances[i], heads->slot_count)];
        const struct head *head = index ? at(heads, index - 1) : NULL;

        if (head) {
            __builtin_prefetch(head);
            __builtin_prefetch((const char *)(head + 1) - 1);
        }
    }
}

static void link_slot(uint32_t *slots, uint32_t slot_count, uint64_t instance, uint32_t index)
{
    uint32_t slot = slot_of(instance, slot_count);

    while (slots[slot])
        slot = (slot + 1) & (slot_count - 1);
    slots[slot] = index + 1;
}

static bool grow_slots(struct heads *heads)
{
    uint32_t slot_count = heads->slot_count * 2;
    uint32_t *slots = heap_new(heads->heap, sizeof *slots * slot_count);

    if (!slots)
        return false;
    for (uint32_t i = 0; i < heads->slot_count; i++)
        if (heads->slots[i])
            link_slot(slots, slot_count, at(heads, heads->slots[i] - 1)->instance,
                      heads->slots[i] - 1);
    heap_free(heads->heap, heads->slots, sizeof *heads->slots * heads->slot_count);
    heads->slots = slots;
    heads->slot_count = slot_count;
    return true;
}

static bool grow_chunks(struct heads *heads)
{
    size_t old_size = sizeof(struct head *) * heads->chunk_count;
    struct head *chunk = heap_new(heads->heap, sizeof *chunk * HEAD_CHUNK);
    struct head **chunks;

    if (!chunk)
        return false;
    chunks = heap_resize(heads->heap, heads->chunks, old_size, old_size + sizeof(struct head *));
    if (!chunks) {
        heap_free(heads->heap, chunk, sizeof *chunk * HEAD_CHUNK);
        return false;
    }
    heads->chunks = chunks;
    chunks[heads->chunk_count++] = chunk;
    return true;
}

/* Take the slot of a head that is there out; what follows it in the run is linked again. Its place
 * is returned. */
static uint32_t unlink_head(struct heads *heads, uint64_t instance)
{
    uint32_t mask = heads->slot_count - 1;
    uint32_t slot = slot_of(instance, heads->slot_count), index;

    while (at(heads, heads->slots[slot] - 1)->instance != instance)
        slot = (slot + 1) & mask;
    index = heads->slots[slot] - 1;
    heads->slots[slot] = 0;
    for (slot = (slot + 1) & mask; heads->slots[slot]; slot = (slot + 1) & mask) {
        uint32_t moved = heads->slots[slot] - 1;

        heads->slots[slot] = 0;
        link_slot(heads->slots, heads->slot_count, at(heads, moved)->instance, moved);
    }
    return index;
}

/* The clock hand: the first clean head that was not used since it last came by. */
static uint32_t evict(struct heads *heads)
{
    for (uint32_t tries = 0; tries < 2 * heads->count; tries++) {
        uint32_t index = heads->hand;
        struct head *head = at(heads, index);

        heads->hand = (heads->hand + 1) % heads->count;
        if (head->flags & HEAD_DIRTY)
            continue;
        if (head->recent) {
            head->recent = 0;
            continue;
        }
        return unlink_head(heads, head->instance);
    }
    return UINT32_MAX; /* all dirty: LIMIT_LAG is far below LIMIT_HEADS, so this is not reached */
}

void heads_release(struct heads *heads, uint64_t instance)
{
    struct head *head = heads_find(heads, instance);

    if (!head || (head->flags & HEAD_DIRTY) ||
        !HEAP_GROW(heads->heap, heads->free_list, heads->free_capacity, heads->free_count + 1))
        return;
    heads->free_list[heads->free_count++] = unlink_head(heads, instance);
    head->instance = 0;
}

/* Takes one number out of a list of rows that lag, whose order stays. */
static bool leave_list(uint64_t *numbers, uint32_t first, uint32_t *count, uint64_t instance)
{
    uint32_t at = first;

    while (at < *count && numbers[at] != instance)
        at++;
    if (at == *count)
        return false;
    memmove(numbers + at, numbers + at + 1, sizeof *numbers * (*count - at - 1));
    --*count;
    return true;
}

void heads_leave(struct heads *heads, uint64_t instance)
{
    struct head *head = heads_find(heads, instance);

    if (!head)
        return;
    if ((head->flags & HEAD_DIRTY) && !leave_list(heads->dirty, 0, &heads->dirty_count, instance))
        (void)leave_list(heads->cycle, heads->cycle_next, &heads->cycle_count, instance);
    ASSERT(heads->free_count < heads->free_capacity);
    heads->free_list[heads->free_count++] = unlink_head(heads, instance);
    head->instance = 0;
    head->flags = 0;
}

static uint32_t take_place(struct heads *heads)
{
    if (heads->free_count)
        return heads->free_list[--heads->free_count];
    if (heads->count >= LIMIT_HEADS)
        return evict(heads);
    if (heads->count == heads->chunk_count * HEAD_CHUNK && !grow_chunks(heads))
        return UINT32_MAX;
    if ((heads->count + 1) * 4 > heads->slot_count * 3 && !grow_slots(heads))
        return UINT32_MAX;
    return heads->count++;
}

struct head *heads_add(struct heads *heads, const struct head *head)
{
    struct head *known = heads_find(heads, head->instance);
    uint32_t index;

    ASSERT(head->instance != 0);
    if (known) {
        uint8_t was_dirty = known->flags & HEAD_DIRTY;

        *known = *head;
        known->flags = (uint8_t)((head->flags & ~HEAD_DIRTY) | was_dirty);
        return known;
    }
    index = take_place(heads);
    if (index == UINT32_MAX)
        return NULL;
    *at(heads, index) = *head;
    at(heads, index)->flags &= (uint8_t)~HEAD_DIRTY;
    at(heads, index)->recent = 1;
    link_slot(heads->slots, heads->slot_count, head->instance, index);
    return at(heads, index);
}

uint32_t heads_lag(const struct heads *heads)
{
    return heads->dirty_count + heads->cycle_count - heads->cycle_next;
}

bool heads_mark_dirty(struct heads *heads, struct head *head)
{
    if (head->flags & HEAD_DIRTY)
        return true;
    if (heads->dirty_count == heads->dirty_capacity && !grow_dirty(heads))
        return false;
    head->flags |= HEAD_DIRTY;
    heads->dirty[heads->dirty_count++] = head->instance;
    return true;
}

/* Sort by number, least significant digit first: linear, so that no commit waits for it. */
static void sort_numbers(uint64_t *numbers, uint64_t *scratch, uint32_t count)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < count; i++)
        all |= numbers[i];
    for (unsigned shift = 0; shift < 64 && all >> shift; shift += 11) {
        uint32_t start[2049] = { 0 };

        for (uint32_t i = 0; i < count; i++)
            start[((numbers[i] >> shift) & 2047) + 1]++;
        for (uint32_t d = 0; d < 2048; d++)
            start[d + 1] += start[d];
        for (uint32_t i = 0; i < count; i++)
            scratch[start[(numbers[i] >> shift) & 2047]++] = numbers[i];
        memcpy(numbers, scratch, sizeof *numbers * count);
    }
}

static void begin_cycle(struct heads *heads, uint64_t end_pos)
{
    uint64_t *swapped = heads->cycle;

    heads->cycle = heads->dirty;
    heads->cycle_count = heads->dirty_count;
    heads->cycle_next = 0;
    heads->cycle_pos = end_pos;
    heads->dirty = swapped;
    heads->dirty_count = 0;
    sort_numbers(heads->cycle, heads->scratch, heads->cycle_count);
}

uint32_t heads_slice(struct heads *heads, uint32_t limit, uint64_t end_pos, struct head *out,
                     uint64_t *flushed)
{
    uint32_t count = 0;

    *flushed = 0;
    if (heads->cycle_next == heads->cycle_count) {
        if (heads->dirty_count == 0)
            return 0;
        begin_cycle(heads, end_pos);
    }
    while (count < limit && heads->cycle_next < heads->cycle_count) {
        uint32_t left = heads->cycle_count - heads->cycle_next;
        struct head *head;

        if (count % HEADS_EXPECTED == 0)
            heads_expect(heads, heads->cycle + heads->cycle_next,
                         left < HEADS_EXPECTED ? left : HEADS_EXPECTED);
        head = heads_find(heads, heads->cycle[heads->cycle_next++]);

        ASSERT(head); /* a dirty head is never evicted */
        head->flags &= (uint8_t)~HEAD_DIRTY;
        out[count++] = *head;
    }
    if (heads->cycle_next == heads->cycle_count)
        *flushed = heads->cycle_pos;
    return count;
}

void heads_learn(struct heads *heads, const struct head *head)
{
    bool is_full = heads->free_count == 0 && heads->count >= LIMIT_HEADS;

    if (heads->is_whole && !is_full && !heads_find(heads, head->instance))
        heads_add(heads, head);
}

pawl_status head_fixed(struct engine *engine, struct scope *scope, uint64_t number,
                       struct head *out)
{
    struct instance_row row;
    bool trust_rows; /* what is fixed at creation is right in any row */

    if (head_is_cached(engine, number, out, &trust_rows) && !(out->flags & HEAD_RAW))
        return PAWL_OK;
    TRY(store_instance(engine->store, scope, number, &row));
    *out = head_of_rows(&(struct head_row){ 0 }, &row);
    return PAWL_OK;
}

/* *trust_rows: it is not here, and so its row is right. While a store that failed is read again,
 * what is here is not all, and may be half read: then the log has to be asked. */
bool head_is_cached(struct engine *engine, uint64_t number, struct head *out, bool *trust_rows)
{
    const struct head *cached = NULL;

    *trust_rows = false;
    if (!engine->options.own)
        return false;
    guard_lock(&engine->lock);
    *trust_rows = engine->writer.heads.is_whole;
    cached = *trust_rows ? heads_find(&engine->writer.heads, number) : NULL;
    if (cached)
        *out = *cached;
    guard_unlock(&engine->lock);
    return cached != NULL;
}
