/* gzip.c - answers are made smaller where that pays: over a kilobyte, for clients that say they can
 * read it, by a thread that may take its time or for no longer than a moment. */
#include "surface/http/http_int.h"
#include <strings.h>
#define ZLIB_CONST
#include <zlib.h>

#define GZIP_MIN    1024u              /* below that a packet is a packet */
#define GZIP_QUICK  ((size_t)32 << 10) /* what a thread that serves others may compress */
#define GZIP_LEVEL  1                  /* half of the bytes for a fifth of the work of 6 */
#define GZIP_WINDOW (15 + 16)          /* 32 KiB, with gzip's header */

/* ---- What the client says ---- */

static str trimmed(str text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = str_from(text, 1);
    while (text.size > 0 && strchr(" \t", text.data[text.size - 1]))
        text.size--;
    return text;
}

/* "gzip;q=0" says that it cannot: q is 0, 0.0, 0.00 or 0.000. */
static bool is_refused(str parameters)
{
    str q = trimmed(parameters);

    if (q.size < 3 || strncasecmp(q.data, "q=", 2) != 0)
        return false;
    for (size_t i = 2; i < q.size; i++)
        if (q.data[i] != '0' && q.data[i] != '.')
            return false;
    return true;
}

static bool is_gzip(str coding)
{
    const char *semicolon = memchr(coding.data, ';', coding.size);
    str name = { coding.data, semicolon ? (size_t)(semicolon - coding.data) : coding.size };
    str rest = semicolon ? str_from(coding, name.size + 1) : STR("");

    name = trimmed(name);
    return name.size == 4 && strncasecmp(name.data, "gzip", 4) == 0 && !is_refused(rest);
}

bool accepts_gzip(str header)
{
    while (header.data && header.size > 0) {
        const char *comma = memchr(header.data, ',', header.size);
        str one = { header.data, comma ? (size_t)(comma - header.data) : header.size };

        if (is_gzip(one))
            return true;
        header = str_from(header, one.size + (comma ? 1 : 0));
    }
    return false;
}

/* ---- Making it smaller ---- */

/* False: no memory, or it would not be smaller. */
static bool compress_into(str text, struct buf *out)
{
    z_stream stream = { 0 };
    int code;

    if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    buf_reserve(out, text.size);
    if (out->failed) {
        deflateEnd(&stream);
        return false;
    }
    stream.next_in = (const Bytef *)text.data;
    stream.avail_in = (uInt)text.size;
    stream.next_out = (Bytef *)out->data;
    stream.avail_out = (uInt)text.size;
    code = deflate(&stream, Z_FINISH);
    out->size = stream.total_out;
    deflateEnd(&stream);
    return code == Z_STREAM_END;
}

/* Is this an answer whose coding depends on what the client accepts? */
bool answer_varies(const struct web_request *request)
{
    return request->answer.size >= GZIP_MIN || request->is_gzip;
}

void answer_compress(struct web_request *request, bool may_take_time)
{
    struct buf smaller;

    if (request->answer.size < GZIP_MIN || request->answer.size > UINT32_MAX ||
        (!may_take_time && request->answer.size > GZIP_QUICK) ||
        !accepts_gzip(request_header(request, "Accept-Encoding")))
        return;
    buf_init(&smaller, &heap_libc, LIMIT_SCOPE);
    request->is_gzip = compress_into(buf_view(&request->answer), &smaller);
    if (request->is_gzip) {
        struct buf whole = request->answer;

        request->answer = smaller;
        smaller = whole;
    }
    buf_fini(&smaller);
}
