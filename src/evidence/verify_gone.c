/* verify_gone.c - instances that were moved into an archive file.
 *
 * Of each record its place stays, with time, hash and root: so roots follow from each other as
 * before. A place names the archive record behind it, and that names each instance with how many
 * records it had and the hash of the last one, which covers all of them. So no record can be taken
 * away under the name of another. */
#include "base/node.h"
#include "evidence/verify_int.h"

#define NAMED_MEMBERS 3u /* an id, how many records, the hash of the last one */

static pawl_status add_departed(struct verify *v, const struct departed *departed)
{
    uint32_t at = v->departed_count;

    TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, v->departed, v->departed_capacity, at + 1));
    v->departed[at] = *departed;
    v->departed[at].before = map_get(&v->last_map, commitment_key(departed->last));
    TRY_MEMORY(&v->scope, map_put(&v->departed_map, departed->number, at) &&
                              map_put(&v->last_map, commitment_key(departed->last), at));
    v->departed_count++;
    return PAWL_OK;
}

/* [ID,RECORDS,HASH] */
static bool read_named(const struct node *item, struct departed *out, uint64_t *records)
{
    int64_t count;

    if (item->kind != NODE_ARRAY || item->count != NAMED_MEMBERS ||
        node_at(item, 0)->kind != NODE_STRING || node_at(item, 2)->kind != NODE_STRING ||
        !node_to_i64(node_at(item, 1), &count) || count < 1)
        return false;
    *records = (uint64_t)count;
    return id_parse(node_at(item, 0)->text, &out->number, out->random) && out->number &&
           sha_unhex(node_at(item, 2)->text, out->last, SHA_SIZE);
}

static pawl_status take_body(struct verify *v, const struct record *record, struct archived *out)
{
    struct node *body = NULL;
    const struct node *list;

    if (node_read_json(&v->scope, record->body, &body) == PAWL_NO_MEMORY)
        return PAWL_NO_MEMORY;
    list = body && body->kind == NODE_OBJECT ? node_find(body, "instances") : NULL;
    if (!list || list->kind != NODE_ARRAY || !list->first)
        return verify_bad(v, "an archive record that names no instances");
    for (const struct node *item = list->first; item; item = item->next) {
        struct departed departed = { .pos = record->pos };
        uint64_t records = 0;

        if (!read_named(item, &departed, &records))
            return verify_bad(v, "an archive record names something that is not an instance");
        out->expected += records;
        TRY(add_departed(v, &departed));
    }
    return PAWL_OK;
}

static pawl_status add_archived(struct verify *v, const struct record *record, uint32_t *out)
{
    struct archived archived = { .pos = record->pos, .first = v->departed_count };

    TRY(take_body(v, record, &archived));
    archived.count = v->departed_count - archived.first;
    *out = v->archived_count;
    TRY_MEMORY(&v->scope, HEAP_GROW(v->heap, v->archived, v->archived_capacity, *out + 1) &&
                              map_put(&v->archived_map, record->pos, *out));
    v->archived[v->archived_count++] = archived;
    return PAWL_OK;
}

/* The first place that names an archive record leads to it. */
static pawl_status find_archived(struct verify *v, uint64_t pos, uint32_t *out)
{
    struct record record;

    *out = map_get(&v->archived_map, pos);
    if (*out != MAP_NONE)
        return PAWL_OK;
    TRY_FOUND(v,
              pos > v->where_pos ? store_record(v->store, &v->scope, pos, &record) : PAWL_NOT_KNOWN,
              "a record has gone, and no archive record is named that says so");
    if (record.what != CONTROL_ARCHIVE || record.instance)
        return verify_bad(v, "a record has gone, and no archive record is named that says so");
    return add_archived(v, &record, out);
}

static bool is_empty(const struct record *record)
{
    return !record->instance && !record->prev && !record->skip && !record->flags &&
           record->fired_at_ms == record->at_ms && !record->step && !record->ordinal &&
           !record->attempt && !record->actor && !record->payload && !record->reason &&
           !record->body.data && !record->key.data;
}

pawl_status verify_gone(struct verify *v, const struct record *record)
{
    uint32_t archived, at;

    if (!is_empty(record))
        return verify_bad(v, "a record has gone, and something of it is left");
    TRY(find_archived(v, record->seq, &archived));
    v->archived[archived].seen++;
    at = map_get(&v->last_map, commitment_key(record->hash));
    for (; at != MAP_NONE; at = v->departed[at].before)
        if (v->departed[at].pos == record->seq &&
            memcmp(v->departed[at].last, record->hash, SHA_SIZE) == 0)
            v->departed[at].is_seen = true;
    v->report->records++;
    return PAWL_OK;
}

static pawl_status check_departed(struct verify *v, const struct departed *departed)
{
    if (!departed->is_seen)
        return verify_bad(v, "an archive record names an instance that has not gone");
    if (verify_find_chain(v, departed->number))
        return verify_bad(v, "an archive record names an instance that is here");
    return PAWL_OK;
}

/* What ran these again has gone, so no row tells of it. */
static pawl_status drop_redriven(struct verify *v, const struct record *record)
{
    struct node *body = NULL;
    const struct node *list;

    TRY(node_read_json(&v->scope, record->body, &body)); /* as it was read before */
    list = node_find(body, "redriven");
    for (const struct node *item = list ? list->first : NULL; item; item = item->next)
        if (item->kind == NODE_STRING)
            verify_end_standing(v, LIFE_T_START, item->text);
    return PAWL_OK;
}

pawl_status verify_archive(struct verify *v, const struct record *record)
{
    uint32_t at;

    if (record->instance)
        return verify_bad(v, "an archive record in an instance's chain");
    if (!v->whole)
        return PAWL_OK;
    at = map_get(&v->archived_map, record->pos);
    if (at == MAP_NONE)
        TRY(add_archived(v, record, &at));
    v->archived[at].is_read = true;
    if (v->archived[at].seen != v->archived[at].expected)
        return verify_bad(v, "an archive record names %llu records, and %llu have gone",
                          (unsigned long long)v->archived[at].expected,
                          (unsigned long long)v->archived[at].seen);
    for (uint32_t i = 0; i < v->archived[at].count; i++)
        TRY(check_departed(v, &v->departed[v->archived[at].first + i]));
    return drop_redriven(v, record);
}

const struct departed *verify_departed(const struct verify *v, uint64_t number,
                                       const uint8_t random[ID_RANDOM_SIZE])
{
    uint32_t at = map_get(&v->departed_map, number);

    return at != MAP_NONE && memcmp(v->departed[at].random, random, ID_RANDOM_SIZE) == 0
               ? &v->departed[at]
               : NULL;
}

pawl_status verify_all_archived(struct verify *v)
{
    for (uint32_t i = 0; i < v->archived_count; i++) {
        verify_at(v, v->archived[i].pos, 0, 0);
        if (!v->archived[i].is_read)
            return verify_bad(v, "this archive record is not in the log");
    }
    return PAWL_OK;
}

/* ---- rows ---- */

static pawl_status check_row(struct verify *v, const struct standing_row *row)
{
    uint8_t random[ID_RANDOM_SIZE];
    const struct departed *departed = NULL;
    uint64_t number;

    if (id_parse(row->id, &number, random) && number)
        departed = verify_departed(v, number, random);
    if (departed && departed->pos == row->pos && !row->due_at_ms && !row->firing_ms && !row->wall)
        return PAWL_OK;
    return verify_bad(v, "the row of an archived instance is not what the log says: %.*s",
                      STR_ARG(row->id));
}

/* Of one that was moved again, after it had been brought back, the last record has the row. */
pawl_status verify_archive_rows(struct verify *v)
{
    struct standing_row *rows = NULL;
    uint32_t count = 0, expected = 0;

    TRY(store_standing_list(v->store, &v->scope, CONTROL_ARCHIVE, UINT32_MAX, &rows, &count));
    for (uint32_t i = 0; i < count; i++)
        TRY(check_row(v, &rows[i]));
    for (uint32_t i = 0; i < v->departed_count; i++)
        expected += map_get(&v->departed_map, v->departed[i].number) == i;
    if (count != expected)
        return verify_bad(v, "the row of an archived instance is missing");
    return PAWL_OK;
}

void verify_drop_archived(struct verify *v)
{
    heap_free(v->heap, v->archived, v->archived_capacity * sizeof *v->archived);
    heap_free(v->heap, v->departed, v->departed_capacity * sizeof *v->departed);
    v->archived = NULL;
    v->departed = NULL;
    v->archived_count = v->archived_capacity = v->departed_count = v->departed_capacity = 0;
    map_fini(&v->archived_map);
    map_fini(&v->departed_map);
    map_fini(&v->last_map);
}
