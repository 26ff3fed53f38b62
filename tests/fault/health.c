/* health.c - a disk that fails or is full: what callers get, and what health reports meanwhile. */
#include "fault/door.h"
#include "fault/scenario.h"
#include "fault/scenario_int.h"
#include "fault/stage.h"
#include "fault/vfs.h"

/* What a fire writes: an owner the page of the log alone, its rows follow later; without an owner
 * the rows of the instance and of the store are in the same commit. */
#define OWNER_PAGES  1
#define SHARED_PAGES 3

static pawl_error error;

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
    p = door_open(true, &error);
    id = door_make(p, &error);
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

/* A disk without room for the n-th write of a commit, for each n: each gives storage-failure, and
 * nothing of the commit is there. */
static void fill_up(bool own, enum disk_fault fault)
{
    uint64_t full = 0, unknown = 0, entries = 0;
    pawl_id id;
    pawl *p;

    disk_load(stage_path);
    p = door_open(own, &error);
    id = door_make(p, &error);
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
        EXPECT_EQ(door_entries(p, &id, &error), entries + (status != PAWL_STORAGE_FAILURE));
        entries = door_entries(p, &id, &error);
        EXPECT_OK(fire(p, &id, next_action(entries)));
        EXPECT_OK(ask_health(p));
        entries++;
    }
    EXPECT_EQ(full, 2 * (own ? OWNER_PAGES : SHARED_PAGES)); /* a frame is a head and a page */
    EXPECT_EQ(unknown, 0);
    pawl_close(p);
    p = door_open(own, &error);
    EXPECT_EQ(door_entries(p, &id, &error), entries);
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
