/* pg_schema.c - the schema of a store: is it there, is it ours, is it not too new; and making
 * it. */
#include "base/assert.h"
#include "base/buf.h"
#include "model/shard.h"
#include "postgres_int.h"
#include <stdio.h>

static const char has_tables[] =
    "SELECT count(*) FROM information_schema.tables WHERE table_schema = $1"
    " AND table_name = 'pawl_store'";
static const char select_store[] = "SELECT format, schema, shards FROM pawl_store WHERE one = 1";
static const char put_store[] =
    "INSERT INTO pawl_store (one, format, schema, store_id, shards, created_at, secret)"
    " VALUES (1, 1, $2, $3, $4, $5, $6)";
static const char put_shards[] =
    "INSERT INTO pawl_shard (shard, epoch, store_id, pos, flushed, at, last_instance, last_value,"
    " last_definition, test_now) SELECT shard, 0, id, 0, 0, 0, 0, 0, 0, 0"
    " FROM unnest($1, $2) u(shard, id)";
static const char commit[] = "COMMIT";

#define SECRET_SIZE 32

/* ---- Making it ---- */

/* The numbered files, in one transaction. */
static pawl_status make_tables(struct postgres_store *store, struct scope *scope)
{
    struct pg_link *link = store->writer;
    struct buf text;
    enum link_end end;

    buf_init(&text, store->heap, (size_t)1 << 20);
    buf_fmt(&text, "BEGIN; CREATE SCHEMA IF NOT EXISTS \"%s\";\n", store->node->url.schema);
    for (size_t i = 0; postgres_schema[i][0].data; i++)
        buf_str(&text, postgres_schema[i][1]);
    end = text.failed ? LINK_REFUSED : link_script(link, buf_text(&text));
    buf_fini(&text);
    return end == LINK_OK ? PAWL_OK : link_fail(link, scope, "making the store's tables");
}

struct new_shard {
    uint32_t shard;
    uint8_t id[STORE_ID_SIZE];
};

/* A copy of a store that is alone has the id of what it is a copy of. */
static struct new_shard *new_shards(struct postgres_store *store, struct scope *scope,
                                    const uint8_t *whole_id, uint32_t count,
                                    const struct store_options *options)
{
    struct new_shard *shards = ARENA_ARRAY(&scope->arena, struct new_shard, count);

    for (uint32_t i = 0; shards && i < count; i++) {
        shards[i].shard = i;
        shard_store_id(store->sha, whole_id, i, count, shards[i].id);
    }
    if (shards && count == 1 && options->store_id)
        memcpy(shards[0].id, options->store_id, STORE_ID_SIZE);
    return shards;
}

static pawl_status put_rows(struct postgres_store *store, struct scope *scope,
                            const struct store_options *options)
{
    static const struct column columns[] = { COLUMN(struct new_shard, shard, FROM_U32, PG_INT4),
                                             BYTES_OF(struct new_shard, id, STORE_ID_SIZE) };
    const uint32_t count = options->shard.shards > 1 ? options->shard.shards : 1;
    uint8_t id[STORE_ID_SIZE], secret[SECRET_SIZE];
    struct params first = { .arena = &scope->arena }, second = { .arena = &scope->arena };
    struct statement statements[] = { { put_store, &first, NULL },
                                      { put_shards, &second, NULL },
                                      { commit, NULL, NULL } };
    struct new_shard *shards;
    enum link_end end;

    ASSERT(shards_are_valid(count));
    store->env->random(store->env, id, sizeof id);
    if (count > 1 && options->store_id) /* a copy: of each shard, too */
        memcpy(id, options->store_id, STORE_ID_SIZE);
    store->env->random(store->env, secret, sizeof secret);
    shards = new_shards(store, scope, id, count, options);
    TRY_MEMORY(scope, shards);
    params_int4(&first, 0);
    params_int4(&first, SCHEMA_VERSION);
    params_bytes(&first, (str){ (const char *)id, sizeof id });
    params_int4(&first, count);
    params_int(&first, store->env->now_ms(store->env));
    params_bytes(&first, (str){ (const char *)secret, sizeof secret });
    PARAMS_COLUMNS(&second, shards, count, columns);
    TRY_MEMORY(scope, !scope->arena.failed);
    end = link_exchange(store->writer, statements, 3);
    link_clear(store->writer, statements, 3);
    return end == LINK_OK ? PAWL_OK : link_fail(store->writer, scope, "making the store");
}

/* Two nodes may make it at once: the second finds it when it looks again. */
static pawl_status make(struct postgres_store *store, struct scope *scope,
                        const struct store_options *options, bool *is_raced)
{
    static const char *const taken[] = { "23505", "42P06", "42P07", "40P01", "XX000", NULL };
    pawl_status status = make_tables(store, scope);

    if (status == PAWL_OK)
        status = put_rows(store, scope, options);
    *is_raced = status != PAWL_OK && str_is_one_of(str_of(store->writer->state), taken);
    if (status != PAWL_OK && store->writer->conn) {
        char state[SQLSTATE_SIZE];

        memcpy(state, store->writer->state, sizeof state);
        (void)link_script(store->writer, "ROLLBACK");
        memcpy(store->writer->state, state, sizeof state);
    }
    return status;
}

/* ---- Looking ---- */

static pawl_status look(struct postgres_store *store, struct scope *scope, bool *is_there)
{
    struct params params = { .arena = &scope->arena };
    struct statement statement = { has_tables, &params, NULL };
    enum link_end end;

    params_text(&params, str_of(store->node->url.schema));
    TRY_MEMORY(scope, !scope->arena.failed);
    end = link_exchange(store->writer, &statement, 1);
    *is_there = end == LINK_OK &&
                cell_i64(&(struct pg_rows){ store->writer->pq, statement.result, 0 }, 0) > 0;
    link_clear(store->writer, &statement, 1);
    return end == LINK_OK ? PAWL_OK : link_fail(store->writer, scope, "looking for the store");
}

static pawl_status check_version(struct postgres_store *store, struct scope *scope, uint32_t format,
                                 uint32_t schema, uint32_t shards)
{
    if (format != 1 || schema > SCHEMA_VERSION)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: expected schema %d of format 1 or an older one, found schema %u"
                          " of "
                          "format %u: it was made by a newer pawl; use that one",
                          store->node->url.shown, SCHEMA_VERSION, schema, format);
    if (!shards_are_valid(shards))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: pawl_store: expected 1, 2, 4, ... or %u shards, found %u",
                          store->node->url.shown, SHARDS_MAX, shards);
    store->node->shards = shards;
    return PAWL_OK;
}

static pawl_status check_store(struct postgres_store *store, struct scope *scope)
{
    struct statement statement = { select_store, NULL, NULL };
    enum link_end end = link_exchange(store->writer, &statement, 1);
    struct pg_rows rows = { store->writer->pq, statement.result, 0 };
    pawl_status status = PAWL_OK;

    if (end != LINK_OK)
        status = link_fail(store->writer, scope, "reading the store's row");
    else if (rows_count(&rows) == 0)
        status = scope_fail(scope, PAWL_STORAGE_FAILURE,
                            "%s: schema %s has pawl's tables and no row in pawl_store",
                            store->node->url.shown, store->node->url.schema);
    else
        status =
            check_version(store, scope, cell_u32(&rows, 0), cell_u32(&rows, 1), cell_u32(&rows, 2));
    link_clear(store->writer, &statement, 1);
    return status;
}

#define MAKE_TRIES 5

pawl_status postgres_find_schema(struct postgres_store *store, struct scope *scope,
                                 const struct store_options *options)
{
    bool is_there = false, is_raced = true;

    TRY(look(store, scope, &is_there));
    if (!is_there && !options->create)
        return scope_fail(scope, PAWL_NOT_KNOWN, "%s: there is no store in schema %s",
                          store->node->url.shown, store->node->url.schema);
    for (int i = 0; !is_there && i < MAKE_TRIES; i++) {
        pawl_status status = make(store, scope, options, &is_raced);

        if (status == PAWL_OK)
            break;
        if (!is_raced)
            return status;
        TRY(look(store, scope, &is_there));
    }
    return check_store(store, scope);
}
