/* owner.c - the owner of a store in PostgreSQL, for a process that is about to use it. */
#include "store/owner.h"
#include "base/limits.h"
#include "postgres_int.h"
#include <stdio.h>

static const char select_owner[] =
    "SELECT n.node, n.address, n.secret FROM pawl_shard s JOIN pawl_node n ON n.node = s.node"
    " WHERE s.shard = $1 AND n.state <> 3 AND n.beat + n.ttl_ms * interval '1 ms' >= now()";

bool url_is_postgres(str url)
{
    return str_starts(url, STR("postgres:")) || str_starts(url, STR("postgresql:"));
}

static void copy_cell(const struct pg_rows *rows, int column, char *out, size_t size)
{
    snprintf(out, size, "%.*s", STR_ARG(cell_view(rows, column)));
}

static pawl_status ask(struct postgres_store *store, struct scope *scope,
                       struct postgres_owner *out)
{
    struct params params = { .arena = &scope->arena };
    struct statement statement = { select_owner, &params, NULL, false };
    struct pg_rows rows = { .pq = store->reader->pq };

    params_int4(&params, store->shard);
    TRY(pg_exchange(store, scope, &statement, 1));
    rows.result = statement.result;
    if (rows_count(&rows) > 0) {
        struct pg_link *link = store->writer;
        bool is_gone = false;

        (void)node_is_gone(link, scope, cell_view(&rows, 0), cell_view(&rows, 1), &is_gone);
        rows.row = is_gone ? 1 : 0;
    }
    if (rows_count(&rows) > (uint32_t)rows.row) {
        copy_cell(&rows, 0, out->node, sizeof out->node);
        copy_cell(&rows, 1, out->address, sizeof out->address);
        copy_cell(&rows, 2, out->secret, sizeof out->secret);
    }
    link_clear(store->reader, &statement, 1);
    return PAWL_OK;
}

pawl_status postgres_owner(struct scope *scope, str url, struct postgres_owner *out)
{
    struct env *env = env_os_new(&heap_libc);
    const struct store_options options = { .env = env, .heap = &heap_libc };
    struct store *store = NULL;
    pawl_status status = env ? store_open(url, &options, scope, &store) : scope_no_memory(scope);

    *out = (struct postgres_owner){ 0 };
    if (status == PAWL_OK)
        status = ask(postgres_of(store), scope, out);
    store_close(store);
    if (env)
        env->close(env);
    return status;
}
