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

/* $HOME, or what the system says where that is not set (a service, say). */
static const char *home_folder(void)
{
    const char *home = getenv("HOME");
    const struct passwd *user = home && home[0] == '/' ? NULL : getpwuid(getuid());

    return user ? user->pw_dir : home;
}

/* $XDG_STATE_HOME/pawl/last, or ~/.local/state/pawl/last. */
static bool name_file(char out[PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = home_folder();
    int size;

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
    char path[PATH_MAX], block[8192];
    ssize_t size;
    int fd;

    if (!name_file(path))
        return -1;
    if (is_written)
        make_folders(path);
    fd = open(path, (is_written ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, is_written ? LOCK_EX : LOCK_SH) != 0)
        return fd < 0 ? -1 : (close(fd), -1);
    while ((size = read(fd, block, sizeof block)) > 0)
        buf_add(text, block, (size_t)size);
    return fd;
}

static bool take_line(str *rest, str *line)
{
    const char *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;

    if (!end)
        return false;
    *line = (str){ rest->data, (size_t)(end - rest->data) };
    *rest = str_from(*rest, line->size + 1);
    return true;
}

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
    bool is_noted = false;

    if (store.size == 0)
        return;
    buf_init(&before, &heap_libc, FILE_MAX);
    buf_init(&after, &heap_libc, FILE_MAX);
    fd = open_last(true, &before);
    buf_fmt(&after, "%.*s\t%.*s\n", STR_ARG(store), STR_ARG(id));
    rest = buf_view(&before);
    while (take_line(&rest, &line) && count < STORES_MAX)
        if (!is_of(line, store)) {
            buf_fmt(&after, "%.*s\n", STR_ARG(line));
            count++;
        }
    /* Half a line is not read. */
    if (fd >= 0 && !before.failed && !after.failed && ftruncate(fd, 0) == 0)
        is_noted = pwrite(fd, after.data, after.size, 0) == (ssize_t)after.size;
    if (fd >= 0)
        close(fd);
    (void)is_noted;
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
    while (!is_found && take_line(&rest, &line))
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
