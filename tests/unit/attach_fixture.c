/* attach_fixture.c - see attach_fixture.h. */
#include "attach_fixture.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static int remove_one(const char *name, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(name);
}

void host_begin(struct host *host)
{
    *host = (struct host){ 0 };
    test_folder(host->folder);
    snprintf(host->path, sizeof host->path, "%s/host.db", host->folder);
    snprintf(host->url, sizeof host->url, "sqlite:%s", host->path);
    EXPECT_EQ(sqlite3_open(host->path, &host->db), SQLITE_OK);
    host_run(host,
             "PRAGMA journal_mode = WAL; PRAGMA application_id = 77; PRAGMA user_version = 12;"
             "CREATE TABLE parcel (id INTEGER PRIMARY KEY, process TEXT)");
}

void host_attach(struct host *host)
{
    pawl_status status = pawl_attach(&host->p, host->db, NULL, &host->error);

    if (status)
        test_fail(__FILE__, __LINE__, "attach: %s", host->error.message);
}

void host_end(struct host *host)
{
    pawl_close(host->p);
    EXPECT_EQ(sqlite3_close(host->db), SQLITE_OK); /* nothing of ours is left on it */
    nftw(host->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void host_run(struct host *host, const char *sql)
{
    char *words = NULL;

    if (sqlite3_exec(host->db, sql, NULL, NULL, &words) != SQLITE_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, words);
}

static int64_t number_of(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t number;

    EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

int64_t host_number(struct host *host, const char *sql)
{
    return number_of(host->db, sql);
}

int64_t other_number(struct host *host, const char *sql)
{
    sqlite3 *other;
    int64_t number;

    EXPECT_EQ(sqlite3_open(host->path, &other), SQLITE_OK);
    number = number_of(other, sql);
    sqlite3_close(other);
    return number;
}

void host_define(struct host *host, const char *text)
{
    if (pawl_define(host->p, text, strlen(text), NULL, &host->error))
        test_fail(__FILE__, __LINE__, "define: %s", host->error.message);
}

const char *host_create(struct host *host, const char *definition)
{
    static pawl_id id;

    if (pawl_create(host->p, &(pawl_create_args){ .definition = definition, .actor_ref = "ann" },
                    &id, &host->error))
        test_fail(__FILE__, __LINE__, "create: %s", host->error.message);
    return id.text;
}

pawl_status host_fire(struct host *host, const char *id, const char *action)
{
    pawl_fired fired;

    return pawl_fire(host->p, id, &(pawl_fire_args){ .action = action, .actor_ref = "bob" }, &fired,
                     &host->error);
}

void host_expect_state(struct host *host, const char *id, const char *state)
{
    const char *found;

    EXPECT_OK(pawl_current(host->p, id, &found, &host->error));
    EXPECT_TEXT(found, state);
}

void host_expect_valid(struct host *host)
{
    pawl *p;
    char *text;

    if (pawl_open(&p, host->url, NULL, &host->error))
        test_fail(__FILE__, __LINE__, "open: %s", host->error.message);
    EXPECT_OK(pawl_call(p, "store.verify", "{}", &text, &host->error));
    EXPECT_HAS(text, "\"valid\":true");
    pawl_free(p, text);
    pawl_close(p);
}
