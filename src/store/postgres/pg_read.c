/* pg_read.c - exchanges that only read, the tip, and rows of results as structs. */
#include "base/assert.h"
#include "base/grow.h"
#include "postgres_int.h"

/* Reading is repeated where the connection was lost: nothing has changed. */
static pawl_status read_on(struct pg_link *link, struct scope *scope, struct statement *statements,
                           size_t count)
{
    enum link_end end = LINK_LOST;

    for (int i = 0; i < 2 && end == LINK_LOST; i++) {
        TRY(link_connect(link, scope));
        link_clear(link, statements, count);
        end = link_exchange(link, statements, count);
    }
    if (end == LINK_OK)
        return PAWL_OK;
    link_clear(link, statements, count);
    return link_fail(link, scope, "reading");
}

pawl_status pg_exchange(struct postgres_store *store, struct scope *scope,
                        struct statement *statements, size_t count)
{
    pawl_status status;

    TRY(postgres_check(store, scope));
    TRY_MEMORY(scope, !scope->arena.failed);
    pthread_mutex_lock(store->read_lock);
    status = read_on(store->reader, scope, statements, count);
    pthread_mutex_unlock(store->read_lock);
    return status;
}

pawl_status pg_exchange_long(struct postgres_store *store, struct scope *scope,
                             struct statement *statement)
{
    struct pg_link link;
    pawl_status status;

    TRY(postgres_check(store, scope));
    TRY_MEMORY(scope, !scope->arena.failed);
    pg_node_link(store->node, &link, LONG_DEADLINE_MS);
    link.may_read_only = true;
    status = read_on(&link, scope, statement, 1);
    link_close(&link);
    return status;
}

pawl_status pg_read_all(struct scope *scope, struct pg_rows *rows, pg_row_reader *read, size_t size,
                        void *out, uint32_t *count)
{
    uint32_t found = rows_count(rows);
    char *all = arena_alloc(&scope->arena, size * (found ? found : 1));

    TRY_MEMORY(scope, all);
    for (uint32_t i = 0; i < found && !scope->arena.failed; i++) {
        rows->row = (int)i;
        read(rows, &scope->arena, all + size * i);
    }
    TRY_MEMORY(scope, !scope->arena.failed);
    memcpy(out, &all, sizeof all);
    *count = found;
    return PAWL_OK;
}

void pg_read_number(const struct pg_rows *rows, struct arena *arena, void *out)
{
    (void)arena;
    *(uint64_t *)out = cell_u64(rows, 0);
}

/* Other processes may have written where there is no owner: then nothing that was known before
 * can be relied on, and each look counts as a change. */
pawl_status postgres_tip(struct store *base, struct scope *scope, struct store_tip *out)
{
    struct postgres_store *store = postgres_of(base);
    struct shard_row row;
    pawl_status status;

    TRY(postgres_check(store, scope));
    pthread_mutex_lock(store->read_lock);
    status = link_connect(store->reader, scope);
    if (status == PAWL_OK)
        status = shard_read(store->reader, scope, store->shard, &row);
    if (status != PAWL_OK && !store->reader->conn) { /* lost: once more */
        status = link_connect(store->reader, scope);
        if (status == PAWL_OK)
            status = shard_read(store->reader, scope, store->shard, &row);
    }
    pthread_mutex_unlock(store->read_lock);
    TRY(status);
    if (!row.is_there)
        return postgres_fail_no_row(scope, store->shard);
    *out = row.tip;
    out->changes =
        store->own ? atomic_load(&store->changes) : atomic_fetch_add(&store->changes, 1) + 1;
    return PAWL_OK;
}
