/* fuzz_store.c - a store's file, damaged: bytes turned over, rows changed or deleted, its end cut
 * off. Opening, checking, reading and even using it may be refused, but never crash.
 *
 * An input is a list of damages: 'x' offset(3) mask: turn bits of a byte; 'u' table row column
 * kind ...: change a value; 'd' table row: delete; 't' offset(3): cut. */
#include "api/api.h"
#include "fuzz.h"
#include <sqlite3.h>
#include <unistd.h>

#define COLUMNS_MAX 256
#define FILE_MAX    ((size_t)1 << 20)
#define DAMAGE_MAX  8

static const char order[] =
    "name: order\nstates: [new, paid, gone]\ninitial_state: new\n"
    "terminal_states: [gone]\nterminal_kinds: {gone: cancel}\ntransitions:\n"
    "  - {from_state: new, action: pay, to_state: paid}\n"
    "  - {from_state: paid, action: back, to_state: new}\n"
    "  - {from_state: new, action: drop, to_state: gone}\n";
static const char nap[] = "name: nap\nsteps:\n"
                          "  start: {name: doze, tool: sleep, args: {for: 1m}, next: say}\n"
                          "  say: {tool: set, args: {x: \"{{input.x}}\"}, done: true}\n";

/* So that there is a free list, and pages on it. */
static const char free_pages[] =
    "CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(20000)); DROP TABLE filler";

struct column {
    char table[64], name[64], key[64]; /* key: the table's first column */
};

static struct sample { /* an undamaged store, made once */
    char path[256], url[272];
    unsigned char *bytes;
    size_t size;
    char ids[3][27];
    struct column columns[COLUMNS_MAX];
    uint32_t column_count;
} sample;

/* ---- The sample ---- */

static pawl_status open_sample(pawl **out, pawl_error *error)
{
    return pawl_open_env(out, sample.url, &(pawl_options){ .test_clock = true },
                         env_sim_new(FUZZ_NOW_MS, 7), error);
}

/* JSON that overflows its page. */
static const char *large_payload(void)
{
    static char text[12000];

    memset(text, 'x', sizeof text - 1);
    text[0] = text[sizeof text - 2] = '"';
    return text;
}

static void live(pawl *p)
{
    pawl_error error;
    pawl_id id;

    REQUIRE(!pawl_define(p, order, sizeof order - 1, NULL, &error));
    REQUIRE(!pawl_define(p, nap, sizeof nap - 1, NULL, &error));
    for (int i = 0; i < 3; i++) {
        pawl_create_args args = { .definition = i == 2 ? "nap" : "order",
                                  .input = "{\"x\":1}",
                                  .actor_ref = "ann",
                                  .subject_ref = "A-17",
                                  .correlation_id = "c",
                                  .labels = "{\"a\":\"1\"}" };

        REQUIRE(!pawl_create(p, &args, &id, &error));
        memcpy(sample.ids[i], id.text, sizeof id.text);
    }
    for (int i = 0; i < 70; i++) {
        char actor[128]; /* long, so that their index has inner pages */
        pawl_fire_args args = { .action = i % 2 ? "back" : "pay",
                                .actor_ref = actor,
                                .payload = i == 7 ? large_payload() : "[1]",
                                .reason = "r" };

        snprintf(actor, sizeof actor, "bob-%0100d", i);
        REQUIRE(!pawl_fire(p, sample.ids[0], &args, NULL, &error));
    }
    REQUIRE(!pawl_cancel(p, sample.ids[1], "ann", "enough", NULL, &error));
    REQUIRE(!pawl_run_due(p, &error));
}

static int note_column(void *context, int count, char **values, char **names)
{
    struct column *column = &sample.columns[sample.column_count];

    (void)context, (void)names;
    REQUIRE(count == 3 && sample.column_count < COLUMNS_MAX);
    snprintf(column->table, sizeof column->table, "%s", values[0]);
    snprintf(column->name, sizeof column->name, "%s", values[1]);
    snprintf(column->key, sizeof column->key, "%s", values[2]);
    sample.column_count++;
    return 0;
}

static void read_sample(void)
{
    FILE *file = fopen(sample.path, "rb");

    REQUIRE(file);
    sample.bytes = malloc(FILE_MAX);
    REQUIRE(sample.bytes);
    sample.size = fread(sample.bytes, 1, FILE_MAX, file);
    REQUIRE(sample.size > 4096 && sample.size < FILE_MAX);
    fclose(file);
}

static void remove_files(void)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-owner", "-head", "-journal" };
    char path[272];

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(path, sizeof path, "%s%s", sample.path, endings[i]);
        unlink(path);
    }
}

static void make_sample(void)
{
    const char *folder = getenv("PAWL_FUZZ_FOLDER"); /* where it is taken away after a crash */
    pawl_error error;
    sqlite3 *db;
    pawl *p;

    snprintf(sample.path, sizeof sample.path, "%s/pawl-fuzz-%ld.db", folder ? folder : "/tmp",
             (long)getpid());
    snprintf(sample.url, sizeof sample.url, "sqlite:%s", sample.path);
    remove_files();
    REQUIRE(open_sample(&p, &error) == PAWL_OK);
    live(p);
    pawl_close(p);
    REQUIRE(sqlite3_open(sample.path, &db) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db,
                         "SELECT m.name, c.name, k.name FROM sqlite_master m,"
                         " pragma_table_info(m.name) c, pragma_table_info(m.name) k"
                         " WHERE m.type = 'table' AND k.cid = 0 ORDER BY 1, c.cid",
                         note_column, NULL, NULL) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db, free_pages, NULL, NULL, NULL) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL) == SQLITE_OK);
    REQUIRE(sqlite3_close(db) == SQLITE_OK);
    read_sample();
    remove_files();
    (void)atexit(remove_files);
}

/* ---- Damage ---- */

static void bind_any(sqlite3_stmt *statement, struct feed *feed)
{
    uint8_t kind = feed_byte(feed);
    str text;

    switch (kind % 6) {
    case 0:
        sqlite3_bind_null(statement, 1);
        break;
    case 1:
        sqlite3_bind_int64(statement, 1, (int8_t)feed_byte(feed));
        break;
    case 2:
        sqlite3_bind_int64(statement, 1, (sqlite3_int64)feed_number(feed, 8));
        break;
    case 3:
        sqlite3_bind_double(statement, 1, (double)feed_number(feed, 2) / 3);
        break;
    default:
        text = feed_text(feed, feed_byte(feed));
        if (kind % 6 == 4)
            sqlite3_bind_text(statement, 1, text.data, (int)text.size, SQLITE_TRANSIENT);
        else
            sqlite3_bind_blob(statement, 1, text.data, (int)text.size, SQLITE_TRANSIENT);
    }
}

static void damage_row(sqlite3 *db, struct feed *feed, bool delete)
{
    const struct column *column = &sample.columns[feed_byte(feed) % sample.column_count];
    unsigned row = feed_byte(feed);
    sqlite3_stmt *statement;
    char sql[512];

    if (delete)
        snprintf(sql, sizeof sql,
                 "DELETE FROM \"%s\" WHERE \"%s\" = (SELECT \"%s\" FROM \"%s\" LIMIT 1 OFFSET %u)",
                 column->table, column->key, column->key, column->table, row);
    else
        snprintf(sql, sizeof sql,
                 "UPDATE \"%s\" SET \"%s\" = ?1 WHERE \"%s\" = (SELECT \"%s\" FROM \"%s\" LIMIT 1 "
                 "OFFSET %u)",
                 column->table, column->name, column->key, column->key, column->table, row);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        if (!delete)
            bind_any(statement, feed);
        (void)sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
}

static void damage_byte(struct feed *feed)
{
    long offset = (long)(feed_number(feed, 3) % sample.size);
    uint8_t mask = feed_byte(feed);
    FILE *file = fopen(sample.path, "r+b");
    int byte;

    REQUIRE(file);
    if (fseek(file, offset, SEEK_SET) == 0 && (byte = fgetc(file)) != EOF) {
        REQUIRE(fseek(file, offset, SEEK_SET) == 0);
        REQUIRE(fputc(byte ^ mask, file) != EOF);
    }
    REQUIRE(fclose(file) == 0);
}

static void damage_rows(struct feed *feed)
{
    uint8_t kind = feed_byte(feed);
    sqlite3 *db;

    if (sqlite3_open(sample.path, &db) == SQLITE_OK) {
        sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
        damage_row(db, feed, kind == 'd');
        sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    }
    sqlite3_close(db);
}

static void damage(struct feed *feed)
{
    for (int i = 0; i < DAMAGE_MAX && feed->size > 0; i++)
        switch (*feed->data) {
        case 'u':
        case 'd':
            damage_rows(feed);
            break;
        case 't':
            (void)feed_byte(feed);
            REQUIRE(truncate(sample.path, (off_t)(feed_number(feed, 3) % sample.size)) == 0);
            break;
        default:
            (void)feed_byte(feed);
            damage_byte(feed);
        }
}

/* ---- Use ---- */

/* With PAWL_FUZZ_KEPT the damaged file is kept under that name, for another verifier. */
static void keep_file(void)
{
    const char *kept = getenv("PAWL_FUZZ_KEPT");
    FILE *from, *to;
    int byte;

    if (!kept)
        return;
    from = fopen(sample.path, "rb");
    to = fopen(kept, "wb");
    REQUIRE(from && to);
    while ((byte = fgetc(from)) != EOF)
        REQUIRE(fputc(byte, to) != EOF);
    REQUIRE(fclose(from) == 0);
    REQUIRE(fclose(to) == 0);
}

/* And what ours says of it is said on stderr. */
static void tell_verdict(pawl *p)
{
    pawl_error error;
    char *answer = NULL;
    bool valid;

    if (!getenv("PAWL_FUZZ_KEPT"))
        return;
    valid = p && pawl_call(p, "store.verify", "{}", &answer, &error) == PAWL_OK &&
            strstr(answer, "\"valid\":true");
    fprintf(stderr, "verdict: %s %s\n", valid ? "valid" : "not valid", answer ? answer : "refused");
    pawl_free(p, answer);
}

static void call(pawl *p, const char *operation, const char *id)
{
    char input[64], *answer;
    pawl_error error = { 0 };

    snprintf(input, sizeof input, id ? "{\"instance_id\":\"%s\"}" : "{}", id);
    if (pawl_call(p, operation, input, &answer, &error) == PAWL_OK)
        pawl_free(p, answer);
    else
        REQUIRE(error.message[0]);
}

static void use(pawl *p)
{
    static const char *const reads[] = { "instance.get",    "instance.history",
                                         "instance.why",    "instance.steps",
                                         "instance.verify", "instance.declaration" };
    pawl_error error;

    call(p, "store.verify", NULL);
    call(p, "instance.list", NULL);
    call(p, "definition.list", NULL);
    for (int i = 0; i < 3; i++)
        for (size_t j = 0; j < sizeof reads / sizeof *reads; j++)
            call(p, reads[j], sample.ids[i]);
    for (int i = 0; i < 3; i++) {
        (void)pawl_fire(p, sample.ids[i], &(pawl_fire_args){ .action = "pay" }, NULL, &error);
        (void)pawl_fire(p, sample.ids[i], &(pawl_fire_args){ .action = "back" }, NULL, &error);
    }
    (void)pawl_test_advance(p, 120000, &error);
    call(p, "store.verify", NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    pawl_error error;
    FILE *file;
    pawl *p;

    if (!sample.bytes)
        make_sample();
    file = fopen(sample.path, "wb");
    REQUIRE(file);
    REQUIRE(fwrite(sample.bytes, 1, sample.size, file) == sample.size);
    REQUIRE(fclose(file) == 0);
    damage(&feed);
    keep_file();
    if (open_sample(&p, &error) == PAWL_OK) {
        tell_verdict(p);
        use(p);
    } else
        tell_verdict(NULL);
    pawl_close(p);
    remove_files();
    return 0;
}
