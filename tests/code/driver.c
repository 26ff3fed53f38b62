/* driver.c - plays one example by a script, and can be killed anywhere and begun again: every step
 * carries a key, and time is told, not added. The types that it needs are the first operand. Prints the
 * history and the end of the instance.
 *
 *   C DEFINITION INPUT      S KEY NAME PAYLOAD      U SECONDS (since the creation)      A RESULT */
#include "auction.h"
#include "buff.h"
#include "checkout.h"
#include "combat.h"
#include "conditional.h"
#include "countdown.h"
#include "counter.h"
#include "damage.h"
#include "patrol.h"
#include "production.h"
#include "quest.h"
#include "trade.h"
#include <pawl_test.h>
#include <sqlite3.h>
#include <time.h>

static bool apply_damage(void *context, sqlite3 *db, const char *args, char *words, size_t size)
{
    (void)context;
    (void)args;
    (void)words;
    (void)size;
    return sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS hit (n); INSERT INTO hit VALUES (1)", NULL,
                        NULL, NULL) == SQLITE_OK;
}

static void compute(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    (void)context;
    (void)call;
    pawl_answer_result(answer, "40");
}

/* Down at first; who was called is written down. */
static void charge(void *context, const pawl_tool_call *call, pawl_tool_answer *answer)
{
    FILE *file = fopen("calls.txt", "a");

    (void)context;
    fprintf(file, "%s %s %u\n", call->tool, call->idempotency_key, call->attempt);
    fclose(file);
    if (call->attempt < 3)
        pawl_answer_error(answer, "\"down\"");
}

static void open_all(pawl_kit *kit, const char *names)
{
    const pawl_code_type *const types[] = { buff(),  counter(), conditional(), counting_down(),
                                            auction(), trade(), damage(),      production(),
                                            combat(), patrol(), quest(),       checkout() };

    pawl_kit_open(kit, "sqlite:play.db");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strstr(names, types[i]->name))
            pawl_kit_register(kit, types[i]);
    PAWL_EXPECT_OK(kit, pawl_reduce_register(kit->p, "apply_damage", apply_damage, NULL,
                                             &kit->error));
    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "compute_damage", compute, NULL, &kit->error));
    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "log_death", compute, NULL, &kit->error));
    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "charge_card", charge, NULL, &kit->error));
    PAWL_EXPECT_OK(kit, pawl_tool_register(kit->p, "send_goods", compute, NULL, &kit->error));
}

static int64_t begun_at(pawl_kit *kit, const char *id)
{
    pawl_history *history;
    pawl_entry entry = { 0 };

    PAWL_EXPECT_OK(kit, pawl_history_open(kit->p, id, NULL, &history, &kit->error));
    (void)pawl_history_next(history, &entry);
    PAWL_EXPECT_OK(kit, pawl_history_close(history, &kit->error));
    return entry.fired_at_ms;
}

/* What time it is, by an instance of something that does nothing else. */
static int64_t now(pawl_kit *kit)
{
    pawl_id id;
    pawl_create_args args = { .definition = "conditional", .test = true };

    PAWL_EXPECT_OK(kit, pawl_create(kit->p, &args, &id, &kit->error));
    return begun_at(kit, id.text);
}

/* The kept clock goes on from the real one if that is later, and then what fell due meanwhile happens late: a
 * day ahead of it, a slow machine between two lives changes nothing. */
static void leap(pawl_kit *kit)
{
    if (now(kit) < (int64_t)time(NULL) * 1000 + PAWL_HOURS(12))
        pawl_kit_advance(kit, PAWL_DAYS(1));
}

static void signal_once(pawl_kit *kit, const char *id, const char *key, const char *name,
                        const char *payload)
{
    char input[512], *out = NULL;
    pawl_status status;

    snprintf(input, sizeof input,
             "{\"instance_id\":\"%s\",\"name\":\"%s\",\"payload\":%s,\"idempotency_key\":\"%s\"}", id,
             name, payload, key);
    status = pawl_call(kit->p, "signal.send", input, &out, &kit->error);
    pawl_free(kit->p, out);
    PAWL_EXPECT_OK(kit, status);
}

static void play(pawl_kit *kit, char *line, pawl_id *id)
{
    char *save = NULL, *word = strtok_r(line, " \n", &save), *one = strtok_r(NULL, " \n", &save);
    char *two = strtok_r(NULL, " \n", &save), *three = strtok_r(NULL, " \n", &save);
    pawl_create_args args = { .definition = one, .input = two, .idempotency_key = "create" };

    if (*word == 'C')
        PAWL_EXPECT_OK(kit, pawl_create(kit->p, &args, id, &kit->error));
    else if (*word == 'S')
        signal_once(kit, id->text, one, two, three);
    else if (*word == 'A') {
        pawl_status status = pawl_kit_answer(kit, id->text, one, NULL);

        if (status != PAWL_LEASE_LOST) /* it was answered before the death */
            PAWL_EXPECT_OK(kit, status);
    } else {
        int64_t left_ms = begun_at(kit, id->text) + PAWL_SECS(atoi(one)) - now(kit);

        pawl_kit_advance(kit, left_ms > 0 ? left_ms : 0);
    }
}

int main(int argc, char **argv)
{
    static pawl_kit kit;
    char line[256];
    pawl_id id = { "" };

    open_all(&kit, argc > 1 ? argv[1] : "");
    leap(&kit);
    while (fgets(line, sizeof line, stdin))
        play(&kit, line, &id);
    puts(pawl_kit_history(&kit, id.text));
    puts(pawl_kit_member(&kit, "instance.get", id.text, "result"));
    puts(pawl_kit_state(&kit, id.text));
    pawl_kit_close(&kit);
    return 0;
}
