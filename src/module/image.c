/* image.c - the bytes of a module's file, read once: all children of one load run the same ones,
 * whatever happens to the file meanwhile. They are in a file without a name, in memory, sealed. */
#include "module/module_int.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* since Linux 6.3; before that every such file may be run */
#endif

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

const char *image_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static pawl_status fail(struct scope *scope, const char *path, int number)
{
    char words[128];

    return scope_fail(scope, PAWL_NOT_KNOWN, "module '%s' cannot be loaded: %s", path,
                      strerror_r(number, words, sizeof words));
}

/* Out of the way of 0 and 1, which a host may have closed. */
static int make_file(const char *name)
{
    int fd, raised;

    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    raised = fcntl(fd, F_DUPFD_CLOEXEC, IMAGE_FD);
    (void)close(fd);
    return raised;
}

static bool write_all(int fd, const char *data, ssize_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, data, (size_t)size);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        data += count;
        size -= count;
    }
    return true;
}

/* False: errno says why. */
static bool copy(int from, int to, struct sha *sha, uint8_t digest[SHA_SIZE])
{
    char block[16384];
    ssize_t count;

    sha_begin(sha);
    while ((count = read(from, block, sizeof block)) != 0) {
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 || !write_all(to, block, count))
            return false;
        sha_add(sha, block, (size_t)count);
    }
    sha_end(sha, digest);
    return true;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

/* A compiler may still be writing: half a file is no module. */
static pawl_status copy_whole(struct scope *scope, const char *path, int from, struct sha *sha,
                              struct image *out)
{
    struct stat before, after;

    if (fstat(from, &before) != 0)
        return fail(scope, path, errno);
    if (!S_ISREG(before.st_mode))
        return scope_fail(scope, PAWL_NOT_KNOWN, "module '%s' cannot be loaded: expected a file",
                          path);
    out->fd = make_file(image_file_name(path));
    if (out->fd < 0 || !copy(from, out->fd, sha, out->sha) || fstat(from, &after) != 0 ||
        fcntl(out->fd, F_ADD_SEALS, SEALS) != 0)
        return fail(scope, path, errno);
    if (is_same(&before, &after))
        return PAWL_OK;
    return scope_fail(scope, PAWL_NOT_KNOWN,
                      "module '%s' cannot be loaded: the file was written while it was read; put "
                      "the new one in its place by mv, then load it again",
                      path);
}

pawl_status image_read(struct scope *scope, const char *path, struct image *out)
{
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct sha *sha = sha_new(scope->arena.heap);
    pawl_status status;

    *out = (struct image){ .fd = -1 };
    if (from < 0)
        status = fail(scope, path, errno);
    else
        status = sha ? copy_whole(scope, path, from, sha, out) : scope_no_memory(scope);
    sha_free(sha);
    if (from >= 0)
        (void)close(from);
    if (status != PAWL_OK)
        image_close(out);
    return status;
}

void image_close(struct image *image)
{
    if (image->fd >= 0)
        (void)close(image->fd);
    image->fd = -1;
}
