/* url.c - see url.h. */
#include "url.h"
#include "base/buf.h"
#include "base/redact.h"
#include "cluster_rows.h"

static pawl_status fail_parameter(struct scope *scope, const char *name, const char *expected,
                                  str found)
{
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "the store's URL: %s is %s, found"
                      " '%.*s'",
                      name, expected, STR_ARG(found));
}

/* A name that needs no quotes, so that it can stand in search_path. */
static pawl_status read_schema(struct scope *scope, str name, struct pg_url *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";

    if (name.size == 0 || name.size > SCHEMA_MAX || str_span(name, letters) != name.size ||
        str_span(name, "0123456789") > 0 || str_starts(name, STR("pg_")))
        return fail_parameter(scope, "schema",
                              "1 to 48 of a-z, 0-9 and _, not a digit first,"
                              " not pg_",
                              name);
    memcpy(out->schema, name.data, name.size);
    out->schema[name.size] = '\0';
    return PAWL_OK;
}

static pawl_status read_lease(struct scope *scope, str text, struct pg_url *out)
{
    uint64_t ms = 0;

    if (!str_to_u64(text, &ms) || ms < LEASE_MS_MIN || ms > LEASE_MS_MAX)
        return fail_parameter(scope, "lease",
                              "a number of milliseconds from 500 to"
                              " 600000",
                              text);
    out->ttl_ms = (int32_t)ms;
    return PAWL_OK;
}

static pawl_status read_shard(struct scope *scope, str text, struct pg_url *out)
{
    uint64_t shard = 0;

    if (!str_to_u64(text, &shard) || shard >= SHARDS_MAX)
        return fail_parameter(scope, "the part behind #", "a number of a shard, 0 to 1023", text);
    out->shard = (uint32_t)shard;
    return PAWL_OK;
}

/* Ours are taken out: libpq refuses what it does not know. */
static pawl_status read_query(struct scope *scope, str query, struct pg_url *out, struct buf *libpq)
{
    char mark = '?';

    for (str part; str_take(&query, '&', &part);) {
        str value = str_after(part, '=');

        if (str_starts(part, STR("schema="))) {
            TRY(read_schema(scope, value, out));
        } else if (str_starts(part, STR("lease="))) {
            TRY(read_lease(scope, value, out));
        } else {
            buf_byte(libpq, (unsigned char)mark);
            buf_str(libpq, part);
            mark = '&';
        }
    }
    return PAWL_OK;
}

static pawl_status read_parts(struct scope *scope, str rest, struct pg_url *out, struct buf *libpq)
{
    str query, shard = str_after(rest, '#');

    rest = str_before(rest, '#');
    query = str_after(rest, '?');
    if (shard.data)
        TRY(read_shard(scope, shard, out));
    buf_str(libpq, STR("postgresql:"));
    buf_str(libpq, str_before(rest, '?'));
    return query.data ? read_query(scope, query, out, libpq) : PAWL_OK;
}

pawl_status pg_url_read(struct scope *scope, struct arena *arena, str rest, struct pg_url *out)
{
    struct buf libpq;
    pawl_status status;
    str shown;

    *out = (struct pg_url){ .schema = SCHEMA_DEFAULT, .ttl_ms = LEASE_MS };
    if (!str_starts(rest, STR("//")) || rest.size > PG_URL_MAX || memchr(rest.data, 0, rest.size))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "a store in PostgreSQL is postgres://USER@HOST/DATABASE, found"
                          " another URL "
                          "behind postgres:");
    buf_init(&libpq, arena->heap, PG_URL_MAX + 64);
    status = read_parts(scope, rest, out, &libpq);
    out->libpq = buf_take(&libpq, arena).data;
    shown = url_redact(arena, str_of(out->libpq));
    out->shown = shown.data;
    if (status == PAWL_OK && (!out->libpq || !out->shown))
        status = scope_no_memory(scope);
    return status;
}
