/* files.c - files and streams that are read or written whole. */
#include "surface/cli/files.h"
#include "base/limits.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_is_readable(const char *path)
{
    if (strcmp(path, "-") == 0 || access(path, R_OK) == 0)
        return true;
    fprintf(stderr, "pawl: cannot read '%s': %s\n", path, strerror(errno));
    return false;
}

bool word_is_file(const char *word)
{
    const char *dot = strrchr(word, '.');
    struct stat found;

    if (strcmp(word, "-") == 0)
        return true;
    if (stat(word, &found) == 0)
        return !S_ISDIR(found.st_mode);
    return dot &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

/* A file of a language in which durable code is written: it is a module. */
bool word_is_code(const char *word)
{
    static const char *const suffixes[] = { ".py", ".js", ".mjs", ".ts", ".lua" };
    const char *dot = strrchr(word, '.');

    for (size_t i = 0; dot && i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(dot, suffixes[i]) == 0)
            return true;
    return false;
}

bool read_to_end(int fd, struct buf *out)
{
    char block[65536];

    for (;;) {
        ssize_t size = read(fd, block, sizeof block);

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0 || out->failed)
            return size == 0 && !out->failed;
        buf_add(out, block, (size_t)size);
    }
}

bool write_whole(int fd, str bytes)
{
    while (bytes.size > 0) {
        ssize_t size = write(fd, bytes.data, bytes.size);

        if (size < 0 && errno != EINTR)
            return false;
        if (size > 0)
            bytes = str_from(bytes, (size_t)size);
    }
    return true;
}

/* Bytes of the character that `text` begins with; 0: it does not begin with one. */
static size_t character_size(str text)
{
    for (size_t size = 1; size <= 4 && size <= text.size; size++)
        if (str_is_utf8((str){ text.data, size }, false))
            return size;
    return 0;
}

/* Texts go to a store byte for byte: what is no UTF-8 is refused here, with its place, for on the
 * way it could only be changed. */
static pawl_status check_text(struct scope *scope, const char *path, str text)
{
    unsigned line = 1, column = 1;

    for (size_t i = 0, size; i < text.size; i += size, column++) {
        size = character_size(str_from(text, i));
        if (size == 0)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "%s:%u:%u: expected UTF-8, found the byte 0x%02X", path, line, column,
                              (unsigned char)text.data[i]);
        if (text.data[i] == '\n') {
            line++;
            column = 0;
        }
    }
    return PAWL_OK;
}

pawl_status file_read(struct scope *scope, const char *path, str *out)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    pawl_status status;
    struct buf text;

    buf_init(&text, scope->arena.heap, LIMIT_TEXT + 1);
    if (fd >= 0 && read_to_end(fd, &text))
        status = check_text(scope, path, buf_view(&text));
    else if (text.failed)
        status = scope_fail(scope, PAWL_TOO_LARGE, "'%s' is larger than 1 MiB", path);
    else
        status =
            scope_fail(scope, PAWL_INVALID_REQUEST, "cannot read '%s': %s", path, strerror(errno));
    if (status == PAWL_OK)
        *out = buf_keep(&text, &scope->arena);
    if (fd > STDIN_FILENO)
        close(fd);
    buf_fini(&text);
    return status;
}
