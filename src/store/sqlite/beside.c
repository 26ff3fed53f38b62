/* beside.c - the other stores of a file: FILE-stores/NAME.db, and nothing that lists them but the
 * folder itself. */
#include "store/beside.h"
#include "base/assert.h"
#include "base/grow.h"
#include "base/sort.h"
#include "sqlite_int.h"
#include "store/owner.h"
#include "store/store.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEME  "sqlite:"
#define STORES  "-stores"
#define SHARDS  "-shards"
#define ENDING  ".db"
#define URL_MAX (PATH_MAX + 256)

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool store_name_is_valid(str name)
{
    if (name.size == 0 || name.size > STORE_NAME_MAX || !is_alphanumeric(name.data[0]))
        return false;
    for (size_t i = 0; i < name.size; i++)
        if (!is_alphanumeric(name.data[i]) && name.data[i] != '.' && name.data[i] != '_' &&
            name.data[i] != '-')
            return false;
    return true;
}

static bool is_file(str url)
{
    return str_starts(url, STR(SCHEME));
}

/* Beside the file itself, whatever links led to it, as FILE-owner is. */
static pawl_status find_folder(struct scope *scope, str url, const char *ending, char out[PATH_MAX])
{
    char given[PATH_MAX], real[PATH_MAX];
    str path = str_from(url, strlen(SCHEME));

    ASSERT(is_file(url));
    if (path.size >= sizeof given)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "the path of the store is too long");
    snprintf(given, sizeof given, "%.*s", STR_ARG(path));
    if (!realpath(given, real))
        return sqlite_fail_file(scope, "finding", given);
    if (snprintf(out, PATH_MAX, "%.*s%s", PATH_MAX - 512, real, ending) >= PATH_MAX - 256)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "the path of the store is too long");
    return PAWL_OK;
}

/* There a store is a schema, and each has a server of its own. */
static pawl_status fail_far(struct scope *scope)
{
    return scope_fail(scope, PAWL_INVALID_REQUEST,
                      "a store in PostgreSQL has no stores beside it: another one is another "
                      "schema, postgres://...?schema=NAME, with a server of its own");
}

pawl_status store_beside(struct scope *scope, str url, str name, const char **out)
{
    char folder[PATH_MAX], text[URL_MAX];

    ASSERT(store_name_is_valid(name));
    if (url_is_postgres(url))
        return fail_far(scope);
    if (!is_file(url)) {
        *out = "memory:";
        return PAWL_OK;
    }
    TRY(find_folder(scope, url, STORES, folder));
    snprintf(text, sizeof text, SCHEME "%s/%.*s" ENDING, folder, STR_ARG(name));
    *out = arena_text(&scope->arena, str_of(text));
    return *out ? PAWL_OK : scope_no_memory(scope);
}

bool store_is_beside(struct scope *scope, str url, str name)
{
    const char *found;
    struct stat info;

    return is_file(url) && store_beside(scope, url, name, &found) == PAWL_OK &&
           stat(found + strlen(SCHEME), &info) == 0 && S_ISREG(info.st_mode);
}

static pawl_status make_folder(struct scope *scope, const char *folder)
{
    char above[PATH_MAX];

    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return sqlite_fail_file(scope, "making", folder);
    /* A folder is there for good when the one above it has been synced; also if it was there: its
     * maker may have died. */
    sqlite_folder_of(folder, above);
    return sqlite_sync(scope, above, O_DIRECTORY);
}

pawl_status store_make_room_beside(struct scope *scope, str url)
{
    char folder[PATH_MAX];

    if (url_is_postgres(url))
        return fail_far(scope);
    if (!is_file(url))
        return PAWL_OK;
    TRY(find_folder(scope, url, STORES, folder));
    return make_folder(scope, folder);
}

/* ---- Shards ---- */

pawl_status sqlite_shard_url(struct scope *scope, str url, uint32_t shard, bool make,
                             const char **out)
{
    char folder[PATH_MAX], text[URL_MAX];

    ASSERT(shard > 0);
    TRY(find_folder(scope, url, SHARDS, folder));
    if (make)
        TRY(make_folder(scope, folder));
    snprintf(text, sizeof text, SCHEME "%s/%u" ENDING, folder, shard);
    *out = arena_text(&scope->arena, str_of(text));
    return *out ? PAWL_OK : scope_no_memory(scope);
}

/* ---- The list ---- */

/* The name in "NAME.db"; data NULL: another kind of file (NAME.db-wal, NAME.db-owner). */
static str name_of(const char *file)
{
    str name = str_of(file);

    if (name.size <= strlen(ENDING) || strcmp(file + name.size - strlen(ENDING), ENDING) != 0)
        return STR_NONE;
    name.size -= strlen(ENDING);
    return store_name_is_valid(name) && !str_is(name, STORE_DEFAULT) ? name : STR_NONE;
}

static pawl_status read_names(struct scope *scope, DIR *folder, str **out, uint32_t *count)
{
    uint32_t capacity = 0;
    struct dirent *file;

    while ((file = readdir(folder)) != NULL) {
        str name = name_of(file->d_name);

        if (!name.data)
            continue;
        name = arena_str(&scope->arena, name);
        TRY_MEMORY(scope, name.data && GROW(&scope->arena, *out, *count, capacity));
        (*out)[(*count)++] = name;
    }
    return PAWL_OK;
}

pawl_status store_names_beside(struct scope *scope, str url, str **out, uint32_t *count)
{
    char path[PATH_MAX];
    pawl_status status;
    DIR *folder;

    *out = NULL;
    *count = 0;
    if (!is_file(url))
        return PAWL_OK;
    TRY(find_folder(scope, url, STORES, path));
    folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? PAWL_OK : sqlite_fail_file(scope, "reading", path);
    status = read_names(scope, folder, out, count);
    closedir(folder);
    if (status == PAWL_OK && *count > 1)
        qsort(*out, *count, sizeof **out, compare_strs);
    return status;
}
