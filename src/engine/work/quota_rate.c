/* quota_rate.c - how much room a bucket has: what works at once, or what began within its time. */
#include "engine/parts.h"

void bucket_forget_starts(struct quota_bucket *bucket, int64_t at_ms)
{
    while (bucket->start_count &&
           (bucket->starts[bucket->first_start] <= at_ms - bucket->per_ms ||
            bucket->start_count > bucket->max)) {
        bucket->first_start = (bucket->first_start + 1) % bucket->start_capacity;
        bucket->start_count--;
    }
}

/* A ring, in order. It grows with what begins, up to the limit. */
static bool grow_starts(struct engine *engine, struct quota_bucket *bucket)
{
    uint32_t capacity = bucket->start_capacity ? 2 * bucket->start_capacity : 4;
    int64_t *starts;

    if (bucket->start_count < bucket->start_capacity)
        return true;
    starts = heap_new(engine->heap, capacity * sizeof *starts);
    if (!starts)
        return false;
    for (uint32_t i = 0; i < bucket->start_capacity; i++) /* it is full */
        starts[i] = bucket->starts[(bucket->first_start + i) % bucket->start_capacity];
    heap_free(engine->heap, bucket->starts, bucket->start_capacity * sizeof *starts);
    bucket->starts = starts;
    bucket->start_capacity = capacity;
    bucket->first_start = 0;
    return true;
}

bool bucket_note_start(struct engine *engine, struct quota_bucket *bucket, int64_t at_ms)
{
    uint32_t place;

    if (!grow_starts(engine, bucket))
        return false;
    place = bucket->start_count++; /* in order: a start of before a restart may come late */
    for (; place > 0 && bucket->starts[(bucket->first_start + place - 1) % bucket->start_capacity] > at_ms; place--)
        bucket->starts[(bucket->first_start + place) % bucket->start_capacity] =
            bucket->starts[(bucket->first_start + place - 1) % bucket->start_capacity];
    bucket->starts[(bucket->first_start + place) % bucket->start_capacity] = at_ms;
    return true;
}

uint32_t bucket_room(struct quota_bucket *bucket, int64_t at_ms)
{
    uint32_t taken = bucket->held;

    if (bucket->per_ms > 0) {
        bucket_forget_starts(bucket, at_ms);
        taken = bucket->start_count + bucket->let_in;
    }
    return taken < bucket->max ? bucket->max - taken : 0;
}

int64_t bucket_opens_ms(const struct quota_bucket *bucket)
{
    return bucket->waiting && bucket->per_ms > 0 && bucket->start_count + bucket->let_in >= bucket->max &&
                   bucket->start_count
               ? bucket->starts[bucket->first_start] + bucket->per_ms
               : INT64_MAX;
}
