/* checkpoint_file.c - the checkpoint of a check in a file of its own, beside the store. */
#include "surface/cli/checkpoint_file.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX     "-verify"
#define SUFFIX_NEW "-new"

const char *checkpoint_path(struct cli *cli)
{
    const char *file = store_file(cli->store);
    size_t size = file ? strlen(file) + sizeof SUFFIX : 0;
    char *path = file && *file ? arena_alloc(&cli->scope.arena, size) : NULL;

    if (path)
        snprintf(path, size, "%s%s", file, SUFFIX);
    return path;
}

static bool read_all(int file, char *data, size_t size)
{
    while (size > 0) {
        ssize_t count = read(file, data, size);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        data += count;
        size -= (size_t)count;
    }
    return true;
}

pawl_status checkpoint_read(struct cli *cli, const char *path, str *out)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    char *data = NULL;
    bool ok;

    *out = STR_NONE;
    if (file < 0 && errno == ENOENT)
        return PAWL_OK;
    ok = file >= 0 && fstat(file, &info) == 0 && info.st_size >= 0;
    if (ok)
        data = arena_alloc(&cli->scope.arena, (size_t)info.st_size);
    ok = ok && data && read_all(file, data, (size_t)info.st_size);
    if (file >= 0)
        close(file);
    if (!ok)
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST, "cannot read '%s': %s", path,
                          strerror(errno ? errno : ENOMEM));
    *out = (str){ data, (size_t)info.st_size };
    return PAWL_OK;
}

static bool write_all(int file, str text)
{
    while (text.size > 0) {
        ssize_t count = write(file, text.data, text.size);

        if (count < 0 && errno != EINTR)
            return false;
        if (count > 0)
            text = str_from(text, (size_t)count);
    }
    return fsync(file) == 0;
}

bool checkpoint_write(const char *path, str checkpoint)
{
    char name[4096];
    int file;
    bool ok;

    if (snprintf(name, sizeof name, "%s%s", path, SUFFIX_NEW) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return false;
    }
    file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    ok = write_all(file, checkpoint);
    ok = close(file) == 0 && ok && rename(name, path) == 0;
    if (!ok)
        unlink(name);
    return ok;
}
