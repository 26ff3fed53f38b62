/* frame.c - whole texts over a pipe. */
#include "module/module_int.h"
#include <errno.h>
#include <poll.h>
#include <unistd.h>

static enum frame_end wait_for(int fd, short what, int wait_ms)
{
    struct pollfd look = { .fd = fd, .events = what };
    int count;

    do
        count = poll(&look, 1, wait_ms);
    while (count < 0 && errno == EINTR);
    return count > 0 ? FRAME_OK : count == 0 ? FRAME_LATE : FRAME_CLOSED;
}

static enum frame_end read_all(int fd, int wait_ms, char *out, size_t size)
{
    while (size > 0) {
        enum frame_end end = wait_for(fd, POLLIN, wait_ms);
        ssize_t count;

        if (end != FRAME_OK)
            return end;
        count = read(fd, out, size);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count <= 0)
            return FRAME_CLOSED;
        out += count;
        size -= (size_t)count;
    }
    return FRAME_OK;
}

static enum frame_end write_all(int fd, int wait_ms, const char *data, size_t size)
{
    while (size > 0) {
        enum frame_end end = wait_for(fd, POLLOUT, wait_ms);
        ssize_t count;

        if (end != FRAME_OK)
            return end;
        count = write(fd, data, size);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count <= 0)
            return FRAME_CLOSED;
        data += count;
        size -= (size_t)count;
    }
    return FRAME_OK;
}

enum frame_end frame_read(int fd, int wait_ms, struct scope *scope, str *out)
{
    unsigned char head[4];
    size_t size;
    char *text;
    enum frame_end end = read_all(fd, wait_ms, (char *)head, sizeof head);

    if (end != FRAME_OK)
        return end;
    size = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    if (size > FRAME_MAX)
        return FRAME_CLOSED;
    text = arena_alloc(&scope->arena, size + 1);
    if (!text)
        return FRAME_NO_MEMORY;
    *out = (str){ text, size };
    return read_all(fd, wait_ms, text, size);
}

enum frame_end frame_write(int fd, int wait_ms, const struct buf *frame)
{
    size_t size = frame->size;
    char head[4] = { (char)size, (char)(size >> 8), (char)(size >> 16), (char)(size >> 24) };
    enum frame_end end;

    if (frame->failed)
        return FRAME_NO_MEMORY;
    end = write_all(fd, wait_ms, head, sizeof head);
    return end == FRAME_OK ? write_all(fd, wait_ms, frame->data, size) : end;
}
