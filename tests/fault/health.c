/* health.c - a disk that fails or is full: what callers get, and what health reports meanwhile. */
#include "fault/scenario.h"
#include "fault/scenario_int.h"
#include "fault/stage.h"
#include "fault/vfs.h"

#define BEGUN_AT INT64_C(1777593600000) /* 2026-05-01T00:00:00Z */

/* What a fire writes: an owner the page of the log alone, its rows follow later; without an owner
 * the rows of the instance and of the store are in the same commit. */
#define OWNER_PAGES  1
#define SHARED_PAGES 3

static pawl_error error;

static pawl *open_one(bool own)
{
    pawl *p = NULL;

    EXPECT_OK(pawl_open_env(&p, stage_url, &(pawl_options){ .own = own, .test_clock = true },
                            env_sim_new(BEGUN_AT, 3), &error));
    return p;
}

static pawl_id make_door(pawl *p)
{
    const char *source = scenario_find("machine")->source;
    pawl_id id;

    EXPECT_OK(pawl_define(p, source, strlen(source), NULL, &error));
    EXPECT_OK(pawl_create(p, &(pawl_create_args){ .definition = "door" }, &id, &error));
    return id;
}

static pawl_status fire(pawl *p, const pawl_id *id, const char *action)
{
    return pawl_fire(p, id->text, &(pawl_fire_args){ .action = action }, NULL, &error);
}

static pawl_status ask_health(pawl *p)
{
    char *answer = NULL;
    pawl_status status = pawl_call(p, "health.get", "{}", &answer, &error);

    if (status == PAWL_OK)
        EXPECT_TEXT(answer, "{\"status\":\"ok\"}");
    pawl_free(p, answer);
    return status;
}

TEST(health, it_fails_from_a_commit_that_failed_until_one_succeeds)
{
    pawl_id id;
    pawl *p;

    stage_begin();
    disk_load(stage_path);
    p = open_one(true);
    id = make_door(p);
    EXPECT_OK(ask_health(p));
    disk_arm((struct disk_plan){ .ops = DISK_SYNC, .fault = FAULT_EIO, .at = 1, .for_ever = true });
    EXPECT_EQ(fire(p, &id, "open"), PAWL_OUTCOME_UNKNOWN);
    EXPECT_EQ(ask_health(p), PAWL_STORAGE_FAILURE);
    EXPECT(strstr(error.message, "commit-failed") != NULL);
    EXPECT(strstr(error.message, "/") == NULL); /* no path: health needs no token */
    disk_disarm();
    fire(p, &id, "open"); /* once; refused if the first one was committed after all */
    EXPECT_OK(fire(p, &id, "shut"));
    EXPECT_OK(ask_health(p));
    pawl_close(p);
}

/* The door's only transitions are open and shut, in turn. */
static const char *next_action(uint64_t entries)
{
    return entries % 2 ? "shut" : "open";
}

static uint64_t count_entries(pawl *p, const pawl_id *id)
{
    pawl_history *history;
    pawl_entry entry;
    uint64_t count = 0;

    EXPECT_OK(pawl_history_open(p, id->text, NULL, &history, &error));
    while (pawl_history_next(history, &entry))
        count++;
    EXPECT_OK(pawl_history_close(history, &error));
    return count;
}

/* A disk without room for the n-th write of a commit, for each n: each gives storage-failure, and
 * nothing of the commit is there. */
static void fill_up(bool own, enum disk_fault fault)
{
    uint64_t full = 0, unknown = 0, entries = 0;
    pawl_id id;
    pawl *p;

    disk_load(stage_path);
    p = open_one(own);
    id = make_door(p);
    for (uint64_t at = 1; at < 12; at++) {
        pawl_status status;

        disk_arm((struct disk_plan){
            .ops = DISK_WRITE, .fault = fault, .at = at, .for_ever = fault == FAULT_FULL });
        status = fire(p, &id, next_action(entries));
        full += status == PAWL_STORAGE_FAILURE;
        unknown += status == PAWL_OUTCOME_UNKNOWN;
        if (status == PAWL_STORAGE_FAILURE) {
            EXPECT(strstr(error.message, "the disk is full") != NULL);
            EXPECT_EQ(ask_health(p), PAWL_STORAGE_FAILURE);
            EXPECT(strstr(error.message, "disk-full") != NULL);
        }
        disk_disarm();
        if (status == PAWL_OUTCOME_UNKNOWN)
            EXPECT_OK(fire(p, &id, next_action(entries)));
        EXPECT_EQ(count_entries(p, &id), entries + (status != PAWL_STORAGE_FAILURE));
        entries = count_entries(p, &id);
        EXPECT_OK(fire(p, &id, next_action(entries)));
        EXPECT_OK(ask_health(p));
        entries++;
    }
    EXPECT_EQ(full, 2 * (own ? OWNER_PAGES : SHARED_PAGES)); /* a frame is a head and a page */
    EXPECT_EQ(unknown, 0);
    pawl_close(p);
    p = open_one(own);
    EXPECT_EQ(count_entries(p, &id), entries);
    pawl_close(p);
}

TEST(health, a_full_disk_is_a_storage_failure_where_nothing_was_written_and_health_says_so)
{
    stage_begin();
    fill_up(true, FAULT_FULL);
    fill_up(true, FAULT_SHORT);
    fill_up(false, FAULT_FULL);
    fill_up(false, FAULT_SHORT);
}
