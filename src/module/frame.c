/* frame.c - whole texts over a pipe, with as few system calls and wake-ups as there can be: a test
 * waits for a million of them. */
#include "module/module_int.h"
#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEAD_SIZE  4u    /* of the length */
#define FIRST_READ 4096u /* bytes that are read together with it */

static enum frame_end wait_for(int fd, short what, int wait_ms)
{
    struct pollfd look = { .fd = fd, .events = what };
    int count;

    do
        count = poll(&look, 1, wait_ms);
    while (count < 0 && errno == EINTR);
    return count > 0 ? FRAME_OK : count == 0 ? FRAME_LATE : FRAME_CLOSED;
}

/* At least `least` bytes, at most `most`, to the `*have` that are there. */
static enum frame_end read_some(int fd, int wait_ms, char *out, size_t least, size_t most,
                                size_t *have)
{
    while (*have < least) {
        enum frame_end end = wait_ms < 0 ? FRAME_OK : wait_for(fd, POLLIN, wait_ms);
        ssize_t count;

        if (end != FRAME_OK)
            return end;
        count = read(fd, out + *have, most - *have);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (count <= 0)
            return FRAME_CLOSED;
        *have += (size_t)count;
    }
    return FRAME_OK;
}

static void pass(struct iovec *part, size_t *written)
{
    size_t size = *written < part->iov_len ? *written : part->iov_len;

    part->iov_base = (char *)part->iov_base + size;
    part->iov_len -= size;
    *written -= size;
}

/* Waits only when the pipe is full: it seldom is. */
static enum frame_end write_both(int fd, int wait_ms, struct iovec parts[2])
{
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        ssize_t count = writev(fd, parts, 2);
        size_t written = count > 0 ? (size_t)count : 0;
        enum frame_end end = FRAME_OK;

        if (count < 0 && errno == EAGAIN)
            end = wait_for(fd, POLLOUT, wait_ms);
        else if (count <= 0 && errno != EINTR)
            end = FRAME_CLOSED;
        if (end != FRAME_OK)
            return end;
        pass(&parts[0], &written);
        pass(&parts[1], &written);
    }
    return FRAME_OK;
}

static size_t size_of(const unsigned char *head)
{
    return head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
}

/* Most frames are read whole with their length: each side waits for the other's answer before it
 * says more, so that what follows a length is its frame. */
enum frame_end frame_read(int fd, int wait_ms, struct scope *scope, str *out)
{
    unsigned char first[FIRST_READ];
    size_t size, have = 0;
    char *text;
    enum frame_end end = read_some(fd, wait_ms, (char *)first, HEAD_SIZE, sizeof first, &have);

    if (end != FRAME_OK)
        return end;
    size = size_of(first);
    have -= HEAD_SIZE;
    if (size > FRAME_MAX || have > size)
        return FRAME_CLOSED;
    text = arena_alloc(&scope->arena, size + 1);
    if (!text)
        return FRAME_NO_MEMORY;
    memcpy(text, first + HEAD_SIZE, have);
    *out = (str){ text, size };
    return read_some(fd, wait_ms, text, size, size, &have);
}

enum frame_end frame_read_alone(int fd, int wait_ms, struct scope *scope, str *out)
{
    unsigned char head[HEAD_SIZE];
    size_t size, have = 0;
    char *text;
    enum frame_end end = read_some(fd, wait_ms, (char *)head, HEAD_SIZE, HEAD_SIZE, &have);

    if (end != FRAME_OK)
        return end;
    size = size_of(head);
    if (size > FRAME_MAX)
        return FRAME_CLOSED;
    text = arena_alloc(&scope->arena, size + 1);
    if (!text)
        return FRAME_NO_MEMORY;
    have = 0;
    *out = (str){ text, size };
    return read_some(fd, wait_ms, text, size, size, &have);
}

enum frame_end frame_write(int fd, int wait_ms, const struct buf *frame)
{
    size_t size = frame->size;
    char head[HEAD_SIZE] = { (char)size, (char)(size >> 8), (char)(size >> 16),
                             (char)(size >> 24) };
    struct iovec parts[2] = { { head, sizeof head }, { frame->data, size } };

    return frame->failed ? FRAME_NO_MEMORY : write_both(fd, wait_ms, parts);
}
