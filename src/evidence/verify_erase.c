/* verify_erase.c - what was erased, and the erase records that name it.
 *
 * An attacker who can write to the file can remove a value's bytes and leave its commitment, and
 * every hash still matches. So a value without bytes is valid only if an erase record names it, and
 * the last such record stands behind the last record that uses the value. A record whose body was
 * erased in part no longer gives its hash: it is valid only if an erase record behind it names its
 * hash and what it hashes to now, which together have a name of a commitment's form
 * (model/erased_body.h). Uses and erasures are collected along the log and compared at its end. */
#include "base/node.h"
#include "evidence/verify_int.h"
#include "model/erased_body.h"

/* The map leads to the last erasure with these first bytes; each leads to the one before it. */
static pawl_status find_or_add(struct verify *v, const uint8_t commitment[SHA_SIZE],
                               struct erasure **out)
{
    uint32_t last = map_get(&v->erasure_map, commitment_key(commitment)), i = last;

    while (i != MAP_NONE && memcmp(v->erasures[i].commitment, commitment, SHA_SIZE) != 0)
        i = v->erasures[i].before;
    if (i == MAP_NONE) {
        TRY_MEMORY(&v->scope,
                   HEAP_GROW(v->heap, v->erasures, v->erasure_capacity, v->erasure_count + 1) &&
                       map_put(&v->erasure_map, commitment_key(commitment), v->erasure_count));
        i = v->erasure_count++;
        v->erasures[i] = (struct erasure){ .before = last };
        memcpy(v->erasures[i].commitment, commitment, SHA_SIZE);
    }
    *out = &v->erasures[i];
    return PAWL_OK;
}

pawl_status verify_put_erasure(struct verify *v, const struct erasure *erasure)
{
    struct erasure *added;

    TRY(find_or_add(v, erasure->commitment, &added));
    added->is_gone = erasure->is_gone;
    added->used_pos = erasure->used_pos;
    added->erased_pos = erasure->erased_pos;
    return PAWL_OK;
}

pawl_status verify_use_erased(struct verify *v, const uint8_t commitment[SHA_SIZE])
{
    struct erasure *erasure;

    TRY(find_or_add(v, commitment, &erasure));
    erasure->is_gone = true;
    if (v->where_pos > erasure->used_pos)
        erasure->used_pos = v->where_pos;
    return PAWL_OK;
}

pawl_status verify_use_erased_body(struct verify *v, const struct record *record,
                                   const uint8_t now[SHA_SIZE])
{
    uint8_t name[SHA_SIZE];

    redaction_name(v->sha, record->hash, now, name);
    return verify_use_erased(v, name);
}

static pawl_status note_name(struct verify *v, const uint8_t name[SHA_SIZE], uint64_t pos)
{
    struct erasure *erasure;

    TRY(find_or_add(v, name, &erasure));
    erasure->erased_pos = pos;
    return PAWL_OK;
}

static bool read_hash(const struct node *item, uint8_t out[SHA_SIZE])
{
    return item && item->kind == NODE_STRING && sha_unhex(item->text, out, SHA_SIZE);
}

static pawl_status note_value(struct verify *v, const struct node *item, uint64_t pos)
{
    uint8_t commitment[SHA_SIZE];

    return read_hash(item, commitment)
               ? note_name(v, commitment, pos)
               : verify_bad(v, "an erase record names something that is not a commitment");
}

static pawl_status note_body(struct verify *v, const struct node *item, uint64_t pos)
{
    uint8_t hash[SHA_SIZE], now[SHA_SIZE], name[SHA_SIZE];

    if (item->kind != NODE_ARRAY || item->count != 2 || !read_hash(node_at(item, 0), hash) ||
        !read_hash(node_at(item, 1), now))
        return verify_bad(v, "an erase record names something that is not a body");
    redaction_name(v->sha, hash, now, name);
    return note_name(v, name, pos);
}

/* Where one instance is checked, the others are not known. */
static pawl_status note_instance(struct verify *v, const struct node *item, uint64_t pos)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;
    struct chain *chain;

    if (item->kind != NODE_STRING || !id_parse(item->text, &number, random))
        return verify_bad(v, "an erase record names something that is not an instance");
    if (!v->whole)
        return PAWL_OK;
    chain = number ? verify_find_chain(v, number) : NULL;
    if (!chain && number && verify_departed(v, number, random))
        return PAWL_OK;
    if (!chain || memcmp(chain->random, random, sizeof random) != 0 || !chain_has_ended(v, chain))
        return verify_bad(v, "an erase record names an instance that is not here or has not ended");
    chain->erased_pos = pos;
    return PAWL_OK;
}

typedef pawl_status note_item(struct verify *v, const struct node *item, uint64_t pos);

static pawl_status note_list(struct verify *v, const struct record *record, const struct node *list,
                             note_item *note)
{
    if (list && (list->kind != NODE_ARRAY || !list->first))
        return verify_bad(v, "an erase record has a list that names nothing");
    for (const struct node *item = list ? list->first : NULL; item; item = item->next)
        TRY(note(v, item, record->pos));
    return PAWL_OK;
}

pawl_status verify_erase(struct verify *v, const struct record *record)
{
    struct node *body = NULL, *values, *bodies, *instances;

    if (node_read_json(&v->scope, record->body, &body) == PAWL_NO_MEMORY)
        return PAWL_NO_MEMORY;
    values = body ? node_find(body, "values") : NULL;
    bodies = body ? node_find(body, "bodies") : NULL;
    instances = body ? node_find(body, "instances") : NULL;
    if (!values && !bodies && !instances)
        return verify_bad(v, "an erase record that names no values");
    TRY(note_list(v, record, values, note_value));
    TRY(note_list(v, record, bodies, note_body));
    return note_list(v, record, instances, note_instance);
}

static bool is_open(const struct erasure *erasure)
{
    return erasure->is_gone &&
           (erasure->erased_pos == 0 || erasure->erased_pos <= erasure->used_pos);
}

pawl_status verify_all_erasures(struct verify *v)
{
    for (uint32_t i = 0; i < v->erasure_count; i++) {
        const struct erasure *erasure = &v->erasures[i];

        if (!is_open(erasure))
            continue;
        verify_at(v, erasure->used_pos, v->where_instance, v->where_seq);
        return verify_bad(v, erasure->erased_pos
                                 ? "a value or body of this record is erased, but the erase "
                                   "record that names it comes before this one"
                                 : "a value or body of this record is erased, and no erase "
                                   "record names it");
    }
    return PAWL_OK;
}

void verify_forget_erasures(struct verify *v)
{
    v->erasure_count = 0;
    map_clear(&v->erasure_map);
}

/* ---- one instance: erase records in the store's own chain count too ---- */

/* The position up to which the store's chain must be read backwards; 0 if nothing is open. */
static uint64_t first_open(const struct verify *v)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < v->erasure_count; i++)
        if (is_open(&v->erasures[i]) && (first == 0 || v->erasures[i].used_pos < first))
            first = v->erasures[i].used_pos;
    return first;
}

/* Checks the record's hash from that of the record before it and from its values' commitments. */
static pawl_status check_hash(struct verify *v, const struct record *record)
{
    struct record before = { 0 };

    if (record->prev)
        TRY(store_record(v->store, &v->scope, record->prev, &before));
    return verify_hash(v, before.hash, STORE_CHAIN_ID, record, record->body, "erase record");
}

/* The last record that names a value counts. Reading backwards finds it first. */
static pawl_status note_erase(struct verify *v, const struct record *record)
{
    struct erasure *kept;
    uint32_t count = v->erasure_count;
    pawl_status status;

    TRY(check_hash(v, record));
    if (count == 0)
        return PAWL_OK;
    kept = ARENA_ARRAY(&v->scope.arena, struct erasure, count);
    TRY_MEMORY(&v->scope, kept);
    memcpy(kept, v->erasures, count * sizeof *kept);
    status = verify_erase(v, record);
    for (uint32_t i = 0; i < count; i++)
        if (kept[i].erased_pos > v->erasures[i].erased_pos)
            v->erasures[i].erased_pos = kept[i].erased_pos;
    return status;
}

/* The last one that names the instance has a row: most often it names all that is open. */
static pawl_status note_by_row(struct verify *v, uint64_t instance)
{
    const struct chain *chain = verify_find_chain(v, instance);
    struct standing_row row = { 0 };
    struct record record;
    char id[ID_SIZE + 1];
    pawl_status status = PAWL_NOT_KNOWN;

    if (chain) {
        id_print(chain->number, chain->random, id);
        status = store_standing(v->store, &v->scope, CONTROL_ERASE, str_of(id), &row);
    }
    if (status == PAWL_OK)
        status = store_record(v->store, &v->scope, row.pos, &record);
    if (status == PAWL_NOT_KNOWN || (!status && (record.what != CONTROL_ERASE || record.instance)))
        return PAWL_OK;
    TRY(status);
    verify_at(v, record.pos, 0, 0);
    return note_erase(v, &record);
}

pawl_status verify_erasures_of_one(struct verify *v)
{
    uint64_t instance = v->where_instance, seq = v->where_seq, first = first_open(v);
    struct record record = { 0 };
    struct head_row head;
    pawl_status status;

    if (v->erasure_count == 0 || (first == 0 && verify_all_erasures(v) == PAWL_OK))
        return PAWL_OK;
    scope_clear(&v->scope);
    TRY(note_by_row(v, instance));
    if (first_open(v) == 0) {
        verify_at(v, 0, instance, seq);
        return verify_all_erasures(v);
    }
    scope_clear(&v->scope);
    status = store_head(v->store, &v->scope, 0, false, &head);
    record.prev = status == PAWL_OK ? head.pos : 0;
    while (record.prev > first && first_open(v) > 0) {
        scope_clear(&v->scope);
        verify_at(v, record.prev, 0, 0);
        status = store_record(v->store, &v->scope, record.prev, &record);
        if (status != PAWL_OK || record.prev >= record.pos)
            return verify_bad(v, "the store's own chain can't be followed here");
        if (record.what == CONTROL_ERASE && record.instance == 0)
            TRY(note_erase(v, &record));
    }
    verify_at(v, 0, instance, seq);
    return verify_all_erasures(v);
}

/* ---- the rows of instances that were erased ---- */

static pawl_status check_row(struct verify *v, const struct standing_row *row)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number;
    const struct chain *chain =
        id_parse(row->id, &number, random) && number ? verify_find_chain(v, number) : NULL;

    if (!chain || memcmp(chain->random, random, sizeof random) != 0 ||
        chain->erased_pos != row->pos || row->due_at_ms || row->firing_ms || row->wall)
        return verify_bad(v, "the row of an erased instance is not what the log says: %.*s",
                          STR_ARG(row->id));
    return PAWL_OK;
}

pawl_status verify_erased_rows(struct verify *v)
{
    struct standing_row *rows = NULL;
    uint32_t count = 0, expected = 0;

    TRY(store_standing_list(v->store, &v->scope, CONTROL_ERASE, UINT32_MAX, &rows, &count));
    for (uint32_t i = 0; i < count; i++)
        TRY(check_row(v, &rows[i]));
    for (uint32_t i = 1; i < v->chain_count; i++)
        expected += v->chains[i].erased_pos != 0;
    if (count != expected)
        return verify_bad(v, "the row of an erased instance is missing");
    return PAWL_OK;
}
