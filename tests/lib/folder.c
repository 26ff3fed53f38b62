/* folder.c - the folders of one test: TMPDIR/pawl-PID/a, b, ... */
#include "lib/folder.h"
#include "lib/test.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static char root[TEST_FOLDER_SIZE - 2];
static char next = 'a';

static void name_root(char out[sizeof root], long pid)
{
    const char *base = getenv("TMPDIR");
    int size = snprintf(out, sizeof root, "%s/pawl-%ld", base ? base : "/tmp", pid);

    EXPECT(size > 0 && (size_t)size < sizeof root);
}

void test_folders_begin(long pid)
{
    name_root(root, pid);
    next = 'a';
}

void test_folder(char out[TEST_FOLDER_SIZE])
{
    EXPECT(next <= 'z');
    (void)mkdir(root, 0755); /* it may be there */
    snprintf(out, TEST_FOLDER_SIZE, "%s/%c", root, next++);
    EXPECT_EQ(mkdir(out, 0700), 0);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    return remove(path);
}

void test_folders_end(long pid)
{
    char path[sizeof root];

    name_root(path, pid);
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
