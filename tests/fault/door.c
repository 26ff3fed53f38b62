/* door.c - see door.h. */
#include "fault/door.h"
#include "fault/scenario.h"
#include "fault/scenario_int.h"
#include "fault/stage.h"

#define BEGUN_AT INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */

pawl *door_open(bool own, pawl_error *error)
{
    pawl *p = NULL;

    EXPECT_OK(pawl_open_env(&p, stage_url, &(pawl_options){ .own = own, .test_clock = true },
                            env_sim_new(BEGUN_AT, 3), error));
    EXPECT_OK(scenario_register(p, error));
    return p;
}

pawl_id door_make(pawl *p, pawl_error *error)
{
    const char *source = scenario_find("machine")->source;
    pawl_id id;

    EXPECT_OK(pawl_define(p, source, strlen(source), NULL, error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "door" }, &id, error));
    return id;
}

uint64_t door_entries(pawl *p, const pawl_id *id, pawl_error *error)
{
    pawl_history *history;
    pawl_entry entry;
    uint64_t count = 0;

    EXPECT_OK(pawl_history_open(p, id->text, NULL, &history, error));
    while (pawl_history_next(history, &entry))
        EXPECT_EQ(entry.sequence_number, ++count);
    EXPECT_OK(pawl_history_close(history, error));
    return count;
}
