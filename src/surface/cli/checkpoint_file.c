/* checkpoint_file.c - the checkpoint of a check in a file of its own, beside the store. */
#include "surface/cli/checkpoint_file.h"
#include <errno.h>
#include <fcntl.h>
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

pawl_status checkpoint_read(struct cli *cli, const char *path, str *out)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    pawl_status status = PAWL_OK;
    struct buf text;

    *out = STR_NONE;
    if (file < 0 && errno == ENOENT)
        return PAWL_OK;
    buf_init(&text, &heap_libc, CLI_MEMORY_MAX);
    if (file < 0 || !read_to_end(file, &text))
        status = scope_fail(&cli->scope, PAWL_INVALID_REQUEST, "cannot read '%s': %s", path,
                            strerror(text.failed ? ENOMEM : errno));
    else
        *out = buf_keep(&text, &cli->scope.arena);
    if (file >= 0)
        close(file);
    buf_fini(&text);
    return status;
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
    ok = write_whole(file, checkpoint) && fsync(file) == 0;
    ok = close(file) == 0 && ok && rename(name, path) == 0;
    if (!ok)
        unlink(name);
    return ok;
}
