/* lock.c - the sidecar FILE-owner: who may write.
 *
 * flock() belongs to the open file, not to the process: two stores opened in one process keep
 * each other out like two processes do, and a death releases it. */
#include "base/assert.h"
#include "sqlite_int.h"
#include "store/owner.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_RETRY_MS 5
#define LOCK_TRIES    400 /* 2 s: longer than any commit or migration of a sane size */
#define OWNER_SIZE    512 /* of the text inside */

struct lock_owner {
    long pid;                 /* 0: none is written there */
    char address[OWNER_SIZE]; /* "": it did not say */
};

static pawl_status open_file(struct sidecar *sidecar, struct scope *scope)
{
    struct stat info;
    int failure;

    if (sidecar->fd < 0)
        sidecar->fd = sqlite_open_beside(sidecar->database, sidecar->path);
    if (sidecar->fd >= 0)
        return PAWL_OK;
    failure = errno;
    /* The sidecar of a new store is the first file to be made. */
    if ((failure == EACCES || failure == EROFS) && stat(sidecar->database, &info) != 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "cannot make a store at %s: this user may not write in its folder (%s)",
                          sidecar->database, strerror(failure));
    errno = failure;
    return sqlite_fail_file(scope, "opening", sidecar->path);
}

/* Is the open file still the one at the path? The lock of a deleted sidecar protects nothing. */
static bool is_current(const struct sidecar *sidecar)
{
    struct stat ours, theirs;

    return fstat(sidecar->fd, &ours) == 0 && stat(sidecar->path, &theirs) == 0 &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

/* Another process holds a lock that conflicts with ours: is it an owner? Holders of a shared lock
 * are not owners, whatever a dead owner left written. */
static bool find_owner(int fd, struct lock_owner *out)
{
    char text[OWNER_SIZE], *rest;
    ssize_t size;

    *out = (struct lock_owner){ 0 };
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        flock(fd, LOCK_UN);
        return false;
    }
    size = pread(fd, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    out->pid = strtol(text, &rest, 10);
    if (out->pid > 0 && *rest == ' ')
        snprintf(out->address, sizeof out->address, "%s", rest + 1);
    return out->pid > 0;
}

/* One attempt. *locked is whether it succeeded. */
static pawl_status try_lock(struct sidecar *sidecar, struct scope *scope, enum sidecar_lock how,
                            bool *locked)
{
    struct lock_owner owner;

    *locked = false;
    TRY(open_file(sidecar, scope));
    if (flock(sidecar->fd, (how == LOCK_SHARED ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) {
        *locked = is_current(sidecar);
        if (!*locked)
            sidecar_close(sidecar);
        return PAWL_OK;
    }
    if (errno != EWOULDBLOCK && errno != EINTR)
        return sqlite_fail_file(scope, "locking", sidecar->path);
    if (find_owner(sidecar->fd, &owner))
        return scope_fail(scope, PAWL_IN_USE, "%s is owned by process %ld%s%s", sidecar->database,
                          owner.pid, owner.address[0] ? " at " : "", owner.address);
    poll(NULL, 0, LOCK_RETRY_MS); /* a writer's turn, or the file is being made: soon over */
    return PAWL_OK;
}

pawl_status sidecar_lock(struct sidecar *sidecar, struct scope *scope, enum sidecar_lock how)
{
    bool locked;

    for (int i = 0; i < LOCK_TRIES; i++) {
        TRY(try_lock(sidecar, scope, how, &locked));
        if (locked)
            return PAWL_OK;
    }
    return scope_fail(scope, PAWL_IN_USE, "%s is locked by other processes for more than %d ms",
                      sidecar->path, LOCK_TRIES * LOCK_RETRY_MS);
}

void sidecar_unlock(struct sidecar *sidecar)
{
    ASSERT(sidecar->fd >= 0);
    flock(sidecar->fd, LOCK_UN);
}

pawl_status sidecar_announce(struct sidecar *sidecar, struct scope *scope, const char *address,
                             bool owned)
{
    char text[OWNER_SIZE];
    int size = 0;

    ASSERT(sidecar->fd >= 0);
    if (owned)
        size = snprintf(text, sizeof text, "%ld%s%s\n", (long)getpid(), address ? " " : "",
                        address ? address : "");
    if (size < 0 || (size_t)size >= sizeof text)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "an owner's address has at most %d characters", OWNER_SIZE - 32);
    if (ftruncate(sidecar->fd, 0) != 0 || pwrite(sidecar->fd, text, (size_t)size, 0) != size)
        return sqlite_fail_file(scope, "writing", sidecar->path);
    return PAWL_OK;
}

/* The file is created again each time: one that is there may belong to another user, or be open. */
static bool write_secret(const char *path, const char *secret)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t size = (ssize_t)strlen(secret);
    bool is_written;

    if (fd < 0)
        return false;
    is_written = fchmod(fd, 0600) == 0 && write(fd, secret, (size_t)size) == size;
    close(fd);
    return is_written;
}

pawl_status sidecar_keep_secret(struct sidecar *sidecar, struct scope *scope, const char *secret)
{
    char path[BESIDE_SIZE];

    ASSERT(sidecar->fd >= 0);
    snprintf(path, sizeof path, "%s-secret", sidecar->database);
    if ((unlink(path) == 0 || errno == ENOENT) && (!secret || write_secret(path, secret)))
        return PAWL_OK;
    return sqlite_fail_file(scope, "writing", path);
}

void sidecar_close(struct sidecar *sidecar)
{
    if (sidecar->fd >= 0)
        close(sidecar->fd);
    sidecar->fd = -1;
}

bool sqlite_name_beside(str path, const char *ending, char out[BESIDE_SIZE])
{
    char given[PATH_MAX], real[PATH_MAX];

    if (path.size == 0 || path.size >= sizeof given || str_has(path, '\0'))
        return false;
    snprintf(given, sizeof given, "%.*s", STR_ARG(path));
    snprintf(out, BESIDE_SIZE, "%s%s", realpath(given, real) ? real : given, ending);
    return true;
}

pawl_status sqlite_owner(str path, char *address, size_t size, int *pid)
{
    struct lock_owner owner = { 0 };
    char sidecar[BESIDE_SIZE];
    int fd;

    ASSERT(address);
    ASSERT(pid);
    if (!sqlite_name_beside(path, "-owner", sidecar))
        return PAWL_INVALID_REQUEST;
    fd = open(sidecar, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
        return PAWL_STORAGE_FAILURE;
    if (fd >= 0) { /* else: no file, no owner, which would have made it */
        find_owner(fd, &owner);
        close(fd);
    }
    if (strlen(owner.address) >= size)
        return PAWL_TOO_LARGE;
    memcpy(address, owner.address, strlen(owner.address) + 1);
    *pid = (int)owner.pid;
    return PAWL_OK;
}

int sqlite_owner_secret(str path, char out[OWNER_SECRET_SIZE])
{
    char secret[BESIDE_SIZE];
    ssize_t size;
    int fd = sqlite_name_beside(path, "-secret", secret) ? open(secret, O_RDONLY | O_CLOEXEC) : -1;
    int failure = errno;

    out[0] = '\0';
    if (fd < 0)
        return failure == ENOENT || failure == ENOTDIR ? 0 : failure;
    size = read(fd, out, OWNER_SECRET_SIZE - 1);
    failure = size < 0 ? errno : 0;
    out[size > 0 ? size : 0] = '\0';
    close(fd);
    return failure;
}
