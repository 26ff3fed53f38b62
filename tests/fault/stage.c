/* stage.c - the store is made on the real disk, because making one needs more than SQLite. */
#include "fault/stage.h"
#include "fault/sqlite_heap.h"
#include "fault/vfs.h"
#include "lib/test.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char stage_path[96], stage_url[112];
static char folder[64];

static int remove_one(const char *name, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(name);
}

static void end_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void stage_begin(void)
{
    pawl *p = NULL;

    sqlite_heap_install();
    test_folder(folder);
    atexit(end_folder);
    snprintf(stage_path, sizeof stage_path, "%s/store.db", folder);
    snprintf(stage_url, sizeof stage_url, "sqlite:%s", stage_path);
    EXPECT_OK(pawl_open(&p, stage_url, NULL, NULL));
    pawl_close(p);
    EXPECT_EQ(sqlite_heap_live(), 0);
    disk_install();
}
