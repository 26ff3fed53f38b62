/* kit.c - the test kit itself: what it finds is what is there, all of it, however long it takes. */
#include "lib/test.h"
#include <pawl_code.h>
#include <pawl_test.h>

/* ---- Names that are found elsewhere as well ---- */

#define DECOY(has)                                                                                 \
    has(input, json, given, 1 << 16)                                                               \
    has(var, uint32_t, cents)                                                                      \
    has(timer, End)                                                                                \
    has(result, uint32_t, cents)                                                                   \
    has(await, waiting)

PAWL_CODE(decoy, DECOY)
{
    PAWL_BEGIN(DECOY);
    self->cents = 7;
    PAWL_TIMER(waiting, End, PAWL_SECS(1));
    result->cents = self->cents;
    PAWL_END;
}

static const char *begin(pawl_kit *kit, const char *input)
{
    pawl_kit_open(kit, NULL);
    pawl_kit_register(kit, decoy());
    return pawl_kit_start(kit, "decoy", input);
}

TEST(kit, a_member_is_the_answers_own_and_not_one_within_it)
{
    pawl_kit kit;
    const char *id =
        begin(&kit, "{\"given\":{\"cents\":1,\"error\":\"no\",\"result\":\"\\\"x\\\":2\"}}");

    PAWL_EXPECT_VARIABLE(&kit, id, "cents", "7");
    PAWL_EXPECT_ERROR(&kit, id, "null");
    PAWL_EXPECT_RESULT(&kit, id, "null");
    EXPECT_TEXT(pawl_kit_member(&kit, "instance.get", id, "cents"), "");
    pawl_kit_advance(&kit, PAWL_SECS(1));
    PAWL_EXPECT_RESULT(&kit, id, "{\"cents\":7}");
    PAWL_EXPECT_HISTORY(&kit, id, "start timer:end finish");
    pawl_kit_close(&kit);
}

TEST(kit, nothing_of_a_long_answer_is_cut)
{
    char *input = malloc(60000);
    pawl_kit kit;
    const char *id;

    EXPECT(input);
    memcpy(input, "{\"given\":\"", 10);
    memset(input + 10, 'x', 50000);
    memcpy(input + 50010, "\"}", 3);
    id = begin(&kit, input);
    EXPECT_TEXT(pawl_kit_member(&kit, "instance.get", id, "input"), input);
    PAWL_EXPECT_ERROR(&kit, id, "null"); /* it is behind the input */
    pawl_kit_close(&kit);
    free(input);
}

/* ---- Many turns ---- */

#define TICKS(has)                                                                                 \
    has(input, uint32_t, most)                                                                     \
    has(var, uint32_t, n)                                                                          \
    has(timer, Tick)                                                                               \
    has(await, ticking)

PAWL_CODE(ticks, TICKS)
{
    PAWL_BEGIN(TICKS);
    for (self->n = 0; self->n < self->most; self->n++)
        PAWL_TIMER(ticking, Tick, PAWL_SECS(60));
    PAWL_END;
}

/* Of what is mapped from the files of a store in memory: how large it is, and how much of it is in
 * memory, in KiB. Is there more than one file? */
static void look_at_spill(size_t *size, size_t *resident, bool *has_tables)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512], first[32] = "";
    const char *name = NULL;
    bool is_spill = false;
    size_t from, to, kib;

    EXPECT(maps);
    *size = *resident = 0;
    *has_tables = false;
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%zx-%zx ", &from, &to) == 2) {
            name = strstr(line, "/pawl-memory-");
            is_spill = name != NULL;
        }
        if (name && !first[0])
            snprintf(first, sizeof first, "%.19s", name);
        *has_tables = *has_tables || (name && strncmp(first, name, 19) != 0);
        name = NULL;
        if (is_spill && sscanf(line, "Size: %zu kB", &kib) == 1)
            *size += kib;
        if (is_spill && sscanf(line, "Rss: %zu kB", &kib) == 1)
            *resident += kib;
    }
    fclose(maps);
}

static uint64_t count_entries(pawl_kit *kit, const char *id)
{
    pawl_history *history = NULL;
    pawl_entry entry;
    uint64_t count = 0;

    PAWL_EXPECT_OK(kit, pawl_history_open(kit->p, id, NULL, &history, &kit->error));
    while (pawl_history_next(history, &entry))
        count += entry.sequence_number == count + 1;
    PAWL_EXPECT_OK(kit, pawl_history_close(history, &kit->error));
    return count;
}

/* A timer a minute for thirty days; it ended with no-memory after 10,000 to 27,000 turns. */
TEST(kit, one_advance_takes_as_many_turns_as_there_are_and_does_not_hold_their_log_in_memory)
{
    pawl_kit kit;
    const char *id;
    size_t size, resident;
    bool has_tables;

    pawl_kit_open(&kit, NULL);
    pawl_kit_register(&kit, ticks());
    id = pawl_kit_start(&kit, "ticks", "{\"most\":43200}");
    pawl_kit_advance(&kit, PAWL_SECS(60 * 43200));
    PAWL_EXPECT_STATE(&kit, id, "completed");
    look_at_spill(&size, &resident, &has_tables);
    EXPECT(size > 4096);
    EXPECT(has_tables); /* of where the records are */
    EXPECT(resident < size / 3);
    EXPECT_EQ(count_entries(&kit, id), 43202);
    pawl_kit_close(&kit);
}
