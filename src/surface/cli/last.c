/* last.c - which instance this user made last in a store, for @last.
 *
 * One small file of the user's: "STORE_ID<TAB>ID" lines, the newest first. A store has its id
 * wherever it is called: through a server, its owner, or its file. It is a convenience: where it
 * cannot be written or read, there is no such instance. */
#include "base/ids.h"
#include "surface/cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORES_MAX 64 /* remembered ones */
#define FILE_MAX   ((size_t)512 << 10)

/* $XDG_STATE_HOME/pawl/last, or ~/.local/state/pawl/last. Where $HOME is not set (in a service,
 * say) the system knows it. */
static bool name_file(char out[PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    const struct passwd *user = home && home[0] == '/' ? NULL : getpwuid(getuid());
    int size;

    home = user ? user->pw_dir : home;
    if (state && state[0] == '/')
        size = snprintf(out, PATH_MAX, "%s/pawl/last", state);
    else if (home && home[0] == '/')
        size = snprintf(out, PATH_MAX, "%s/.local/state/pawl/last", home);
    else
        return false;
    return size > 0 && size < PATH_MAX;
}

static void make_folders(const char *path)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = folder + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return;
    }
}

/* The file's text, locked; -1: it cannot be opened. */
static int open_last(bool is_written, struct buf *text)
{
    char path[PATH_MAX];
    int fd;

    if (!name_file(path))
        return -1;
    if (is_written)
        make_folders(path);
    fd = open(path, (is_written ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, is_written ? LOCK_EX : LOCK_SH) != 0)
        return fd < 0 ? -1 : (close(fd), -1);
    read_to_end(fd, text);
    return fd;
}

/* Of half a line, which a write that was interrupted leaves, the size does not fit. */
static bool is_of(str line, str store)
{
    return str_starts(line, store) && line.size == store.size + 1 + ID_SIZE &&
           line.data[store.size] == '\t';
}

void last_write(str store, str id)
{
    struct buf before, after;
    str rest, line;
    int fd, count = 1;
    bool is_noted;

    if (store.size == 0)
        return;
    buf_init(&before, &heap_libc, FILE_MAX);
    buf_init(&after, &heap_libc, FILE_MAX);
    fd = open_last(true, &before);
    buf_fmt(&after, "%.*s\t%.*s\n", STR_ARG(store), STR_ARG(id));
    rest = buf_view(&before);
    while (str_take(&rest, '\n', &line) && count < STORES_MAX)
        if (!is_of(line, store)) {
            buf_fmt(&after, "%.*s\n", STR_ARG(line));
            count++;
        }
    is_noted = fd >= 0 && !before.failed && !after.failed && ftruncate(fd, 0) == 0 &&
               pwrite(fd, after.data, after.size, 0) == (ssize_t)after.size;
    (void)is_noted;
    if (fd >= 0)
        close(fd);
    buf_fini(&before);
    buf_fini(&after);
}

bool last_find(str store, char out[ID_SIZE + 1])
{
    struct buf text;
    str rest, line;
    bool is_found = false;
    int fd;

    if (store.size == 0)
        return false;
    buf_init(&text, &heap_libc, FILE_MAX);
    fd = open_last(false, &text);
    rest = buf_view(&text);
    while (!is_found && str_take(&rest, '\n', &line))
        if (is_of(line, store)) {
            memcpy(out, line.data + line.size - ID_SIZE, ID_SIZE);
            out[ID_SIZE] = '\0';
            is_found = true;
        }
    if (fd >= 0)
        close(fd);
    buf_fini(&text);
    return is_found;
}
