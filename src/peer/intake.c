/* intake.c - an answer of HTTP/1.1, taken apart as it comes. Pure. */
#include "peer/peer_int.h"
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#define LEFT_OPEN UINT64_MAX

static void take_off(struct buf *held, size_t size)
{
    memmove(held->data, held->data + size, held->size - size);
    held->size -= size;
}

/* The first line of what is held; data NULL: it is not whole yet. */
static str first_line(str held)
{
    const char *end = held.size ? memmem(held.data, held.size, "\r\n", 2) : NULL;

    return end ? (str){ held.data, (size_t)(end - held.data) } : STR_NONE;
}

static bool is_named(str name, const char *text)
{
    return name.size == strlen(text) && strncasecmp(name.data, text, name.size) == 0;
}

static void take_header(struct peer_intake *intake, str line)
{
    str name = str_before(line, ':'), value = str_trim(str_after(line, ':'), " ");

    if (is_named(name, "Transfer-Encoding"))
        intake->is_chunked = true;
    else if (is_named(name, "Connection"))
        intake->is_kept = !is_named(value, "close");
    else if (is_named(name, "Content-Type"))
        intake->type = arena_text(&intake->scope->arena, value);
    else if (is_named(name, "Content-Length")) {
        intake->has_length = str_to_u64(value, &intake->left);
        intake->is_bad = intake->is_bad || !intake->has_length;
    }
}

static bool take_head(struct peer_intake *intake)
{
    const char *end =
        intake->held.size ? memmem(intake->held.data, intake->held.size, "\r\n\r\n", 4) : NULL;
    str head, line;
    uint64_t status = 0;

    if (!end)
        return false;
    head = (str){ intake->held.data, (size_t)(end - intake->held.data) + 2 };
    line = first_line(head);
    intake->is_bad = line.size < 12 || !str_starts(line, STR("HTTP/1.1 ")) ||
                     !str_to_u64((str){ line.data + 9, 3 }, &status);
    intake->status = (int)status;
    intake->left = LEFT_OPEN;
    intake->is_kept = true;
    for (head = str_from(head, line.size + 2); head.size > 0;
         head = str_from(head, line.size + 2)) {
        line = first_line(head);
        take_header(intake, line);
    }
    if (intake->is_chunked)
        intake->left = 0;
    intake->is_kept = intake->is_kept && (intake->has_length || intake->is_chunked);
    take_off(&intake->held, (size_t)(end - intake->held.data) + 4);
    intake->has_head = true;
    return true;
}

/* The line with the size of the next chunk, and the end of the one before. */
static bool take_size(struct peer_intake *intake)
{
    str line = first_line(buf_view(&intake->held));

    if (!line.data)
        return false;
    if (line.size > 0) {
        intake->is_bad = !isxdigit((unsigned char)line.data[0]);
        intake->left = strtoull(line.data, NULL, 16);
        if (intake->left == 0) { /* then an empty line */
            if (intake->held.size < line.size + 4)
                return false;
            take_off(&intake->held, 2);
            intake->is_whole = true;
        }
    }
    take_off(&intake->held, line.size + 2);
    return !intake->is_whole && !intake->is_bad;
}

static bool take_some(struct peer_intake *intake)
{
    size_t size = intake->held.size < intake->left ? intake->held.size : (size_t)intake->left;

    if (intake->is_chunked && intake->left == 0)
        return take_size(intake);
    if (!intake->is_chunked && intake->left == 0)
        intake->is_whole = true;
    if (size == 0)
        return false;
    buf_add(intake->body, intake->held.data, size);
    if (intake->left != LEFT_OPEN)
        intake->left -= size;
    take_off(&intake->held, size);
    return true;
}

bool intake_take(struct peer_intake *intake, str bytes)
{
    buf_add(&intake->held, bytes.data, bytes.size);
    if (intake->held.failed || intake->body->failed)
        intake->is_bad = true;
    if (!intake->is_bad && (intake->has_head || take_head(intake)))
        while (!intake->is_bad && !intake->is_whole && take_some(intake))
            continue;
    return intake->is_whole || intake->is_bad;
}

bool intake_end(struct peer_intake *intake)
{
    intake->is_whole = intake->is_whole || (intake->has_head && !intake->is_bad &&
                                            !intake->has_length && !intake->is_chunked);
    return intake->is_whole;
}
