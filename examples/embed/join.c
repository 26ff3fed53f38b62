/* join.c - a shop that keeps its orders in its own SQLite file, and their processes in the same
 * file, in the same transactions: an order and its process are there both, or neither. */
#include <pawl.h>
#include <sqlite3.h>
#include <stdio.h>

static const char process[] =
    "name: order\nstates: [placed, paid, shipped]\ninitial_state: placed\n"
    "terminal_states: [shipped]\nterminal_kinds: {shipped: success}\ntransitions:\n"
    "  - {from_state: placed, action: pay, to_state: paid}\n"
    "  - {from_state: paid, action: ship, to_state: shipped}\n";

struct shop {
    sqlite3 *db;
    pawl *p;
    pawl_error err;
};

static int run(struct shop *shop, const char *sql)
{
    int code = sqlite3_exec(shop->db, sql, NULL, NULL, NULL);

    if (code != SQLITE_OK)
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(shop->db));
    return code;
}

static int open_shop(struct shop *shop, const char *path)
{
    if (sqlite3_open(path, &shop->db) != SQLITE_OK)
        return 1;
    sqlite3_busy_timeout(shop->db, 5000); /* pawl waits for other writers as long as you do */
    if (run(shop, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                  "CREATE TABLE IF NOT EXISTS orders (item TEXT, process TEXT)"))
        return 1;
    return pawl_attach(&shop->p, shop->db, NULL, &shop->err) ||
           pawl_define(shop->p, process, sizeof process - 1, NULL, &shop->err);
}

/* The shop's row. */
static int insert_order(struct shop *shop, const char *item, const char *id)
{
    sqlite3_stmt *insert;
    int code =
        sqlite3_prepare_v2(shop->db, "INSERT INTO orders VALUES (?1, ?2)", -1, &insert, NULL);

    sqlite3_bind_text(insert, 1, item, -1, SQLITE_TRANSIENT);
    sqlite3_bind_text(insert, 2, id, -1, SQLITE_TRANSIENT);
    if (code == SQLITE_OK)
        sqlite3_step(insert);
    return sqlite3_finalize(insert);
}

/* Both, or neither. Whatever fails on the way, ROLLBACK takes all of it back; if COMMIT itself
 * fails, only the file knows: close the connection, open and attach again, and look. */
static int place(struct shop *shop, const char *item, int is_paid, pawl_id *id)
{
    pawl_fired fired;

    if (run(shop, "BEGIN IMMEDIATE"))
        return 1;
    if (pawl_create(shop->p, &(pawl_create_args){ .definition = "order", .subject_ref = item }, id,
                    &shop->err) == PAWL_OK &&
        insert_order(shop, item, id->text) == SQLITE_OK && is_paid &&
        pawl_fire(shop->p, id->text, &(pawl_fire_args){ .action = "pay" }, &fired, &shop->err) ==
            PAWL_OK)
        return run(shop, "COMMIT");
    if (!sqlite3_get_autocommit(shop->db)) /* a full disk makes SQLite roll back by itself */
        run(shop, "ROLLBACK");
    return 1;
}

static int print_row(void *context, int count, char **values, char **names)
{
    (void)context;
    (void)count;
    (void)names;
    printf("%s is %s\n", values[0], values[1]);
    return 0;
}

/* join [FILE] */
int main(int count, char **words)
{
    struct shop shop = { 0 };
    pawl_id id;
    int failed = open_shop(&shop, count > 1 ? words[1] : "shop.db");

    if (!failed)
        failed = place(&shop, "tea", 1, &id);
    if (!failed && place(&shop, "silver", 0, &id) != 0) {
        const char *state; /* the customer could not pay: nothing of that order is there */

        if (pawl_current(shop.p, id.text, &state, &shop.err) == PAWL_NOT_KNOWN)
            puts("silver was taken back, its process too");
        sqlite3_exec(shop.db,
                     "SELECT o.item, i.current_state FROM orders o"
                     " JOIN pawl_instances i ON i.id = o.process",
                     print_row, NULL, NULL);
    }
    if (failed)
        fprintf(stderr, "%s: %s\n", pawl_status_name(shop.err.status), shop.err.message);
    pawl_close(shop.p); /* first: the connection is yours, and stays open */
    sqlite3_close(shop.db);
    return failed;
}
