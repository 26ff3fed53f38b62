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

/* "gzip;q=0" says that it cannot: q is 0, 0.0, 0.00 or 0.000. */
static bool is_gzip(str coding)
{
    str name = str_trim(str_before(coding, ';'), " \t");
    str q = str_trim(str_after(coding, ';'), " \t");
    bool is_refused = q.size >= 3 && strncasecmp(q.data, "q=", 2) == 0 &&
                      str_span(str_from(q, 2), "0.") == q.size - 2;

    return name.size == 4 && strncasecmp(name.data, "gzip", 4) == 0 && !is_refused;
}

static bool accepts_gzip(str header)
{
    str one;

    while (str_take(&header, ',', &one))
        if (is_gzip(one))
            return true;
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
