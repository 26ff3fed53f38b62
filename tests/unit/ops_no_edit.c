/* ops_no_edit.c - store.sql reads, and nothing else (D36): every way to write, on every table and
 * view there is, is refused, and the store stays as it was. */
#include "api/api.h"
#include "base/node.h"
#include "lib/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pawl *p;
static pawl_error error;
static char folder[64], path[96], url[112];

/* `@` in the text stands for the name. */
static pawl_status sql(const char *text, const char *name, char **out)
{
    const char *mark = strchr(text, '@');
    int before = (int)(mark ? mark - text : (long)strlen(text));
    char input[512];

    snprintf(input, sizeof input, "{\"text\":\"%.*s%s%s\"}", before, text, mark ? name : "",
             mark ? mark + 1 : "");
    return pawl_call(p, "store.sql", input, out, &error);
}

static void refuse(const char *text, const char *name)
{
    char *out = NULL;
    pawl_status status = sql(text, name, &out);

    if (status != PAWL_INVALID_REQUEST)
        test_fail(__FILE__, __LINE__, "%s, @ being '%s': expected invalid-request, found %s", text,
                  name, pawl_status_name(status));
    EXPECT(out == NULL);
}

static void begin(void)
{
    static const char order[] = "name: order\nstates: [a, b]\ninitial_state: a\n"
                                "terminal_states: []\ntransitions:\n"
                                "- {from_state: a, action: go, to_state: b}\n";
    pawl_id id;

    test_folder(folder);
    snprintf(path, sizeof path, "%s/store.db", folder);
    snprintf(url, sizeof url, "sqlite:%s", path);
    EXPECT_OK(pawl_open(&p, url, NULL, &error));
    EXPECT_OK(pawl_define(p, order, sizeof order - 1, NULL, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "order" }, &id, &error));
    EXPECT_OK(pawl_fire(p, id.text, &(pawl_fire_args){ .action = "go" }, NULL, &error));
}

static void end(void)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-owner", "-head" };
    struct verify_report report;
    char name[112];

    EXPECT_OK(verify_run(engine_store(p->engine), &heap_libc, &(struct verify_request){ 0 }, &report,
                         &error));
    EXPECT(report.valid);
    EXPECT_EQ(report.entries, 1);
    EXPECT_EQ(report.instances, 1);
    pawl_close(p);
    for (size_t i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
    EXPECT(rmdir(folder) == 0);
}

static const char *const on_each[] = {
    "delete from @",
    "delete from @ where 0",
    "update @ set rowid = rowid",
    "insert into @ default values",
    "replace into @ default values",
    "drop table @",
    "drop view @",
    "alter table @ rename to other",
    "create trigger t after insert on @ begin select 1; end",
    "create temp trigger t instead of delete on @ begin select 1; end",
    "create index i on @ (rowid)",
    "explain delete from @",
    "with x as (select 1) delete from @",
    "select 1; delete from @",
    "create table copy as select * from @",
    "create temp table copy as select * from @",
};

static const char *const once[] = {
    "pragma writable_schema = 1",
    "pragma journal_mode = delete",
    "pragma user_version = 7",
    "pragma query_only = 0",
    "attach 'file:other.db' as other",
    "vacuum",
    "vacuum into 'copy.db'",
    "reindex",
    "analyze",
    "begin immediate",
    "savepoint s",
    "select load_extension('x')",
    "delete from sqlite_master",
    "insert into sqlite_sequence values ('a', 1)",
};

/* D36, D35 inv 10 */
TEST(ops_no_edit, sql_refuses_every_way_to_write_on_every_table_and_view)
{
    struct node *node, *row;
    char *names;
    unsigned count = 0;

    begin();
    EXPECT_OK(sql("select name from sqlite_master where type in ('table', 'view')", "", &names));
    EXPECT_OK(node_read_json(&t->scope, str_of(names), &node));
    for (row = node_find(node, "rows")->first; row; row = row->next, count++) {
        char name[64];

        snprintf(name, sizeof name, "%.*s", STR_ARG(row->first->text));
        for (size_t i = 0; i < sizeof on_each / sizeof *on_each; i++)
            refuse(on_each[i], name);
    }
    EXPECT(count > 10);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        refuse(once[i], "");
    pawl_free(p, names);
    end();
}
