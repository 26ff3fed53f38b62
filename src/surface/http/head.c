/* head.c - is this the beginning of a request that the library below will hand to us? Pure.
 *
 * What it cannot parse the library answers itself, in HTML and without a reason. So the first
 * bytes of a connection are looked at before it gets them (porter.c). Nothing is decided here that
 * request.c can decide. */
#include "surface/http/head.h"
#include <strings.h>

#define CHUNK_LINE_MAX 1024u

struct judging {
    str rest; /* behind what has been judged */
    size_t cost;
    bool is_chunked, has_length;
    struct head_refusal *refusal;
};

static bool refuse(struct judging *judging, pawl_status status, const char *words)
{
    *judging->refusal = (struct head_refusal){ status, words };
    return false;
}

static bool is_malformed(struct judging *judging, const char *words)
{
    return refuse(judging, PAWL_INVALID_REQUEST, words);
}

/* ---- Lines and words ---- */

/* The next line without its end, which may be a lone LF; false: it is not all there. */
static bool take_line(str *rest, str *line)
{
    const char *end = rest->size > 0 ? memchr(rest->data, '\n', rest->size) : NULL;

    if (!end)
        return false;
    *line = (str){ rest->data, (size_t)(end - rest->data) };
    *rest = str_from(*rest, line->size + 1);
    if (line->size > 0 && line->data[line->size - 1] == '\r')
        line->size--;
    return true;
}

static bool is_token_byte(char c)
{
    return c > ' ' && c < 127 && !strchr("()<>@,;:\\\"/[]?={}", c);
}

static bool is_token(str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_token_byte(text.data[i]))
            return false;
    return text.size > 0;
}

static bool has_control(str text)
{
    for (size_t i = 0; i < text.size; i++)
        if (((unsigned char)text.data[i] < ' ' && text.data[i] != '\t') || text.data[i] == 127)
            return true;
    return false;
}

static str trimmed(str text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = str_from(text, 1);
    while (text.size > 0 && strchr(" \t", text.data[text.size - 1]))
        text.size--;
    return text;
}

static size_t count_bytes(str text, char wanted)
{
    size_t count = 0;

    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == wanted;
    return count;
}

/* ---- The request line ---- */

static str take_word(str *line)
{
    const char *blank = line->size > 0 ? memchr(line->data, ' ', line->size) : NULL;
    str word = { line->data, blank ? (size_t)(blank - line->data) : line->size };

    *line = str_from(*line, word.size + (blank ? 1 : 0));
    return word;
}

static bool is_version(str word)
{
    return word.size == 8 && memcmp(word.data, "HTTP/1.", 7) == 0 && word.data[7] >= '0' &&
           word.data[7] <= '9';
}

static bool judge_first_line(struct judging *judging, str line)
{
    str method = take_word(&line), target = take_word(&line), version = take_word(&line);

    if (!is_token(method))
        return is_malformed(judging, "the request line: expected METHOD TARGET HTTP/1.1, found no "
                                     "method (TLS is not spoken here)");
    if (target.size == 0 || has_control(target) || line.size > 0)
        return is_malformed(judging, "the request line: expected METHOD TARGET HTTP/1.1, each "
                                     "behind one space");
    if (!is_version(version))
        return is_malformed(judging, "the version: expected HTTP/1.1 or HTTP/1.0; no other is "
                                     "spoken here");
    judging->cost += HEAD_PIECE_COST * count_bytes(target, '&');
    return true;
}

/* ---- Headers ---- */

static bool judge_length(struct judging *judging, str value)
{
    uint64_t length;

    judging->has_length = true;
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < '0' || value.data[i] > '9')
            return is_malformed(judging, "Content-Length: expected a number of bytes");
    if (value.size == 0)
        return is_malformed(judging, "Content-Length: expected a number of bytes, found nothing");
    if (!str_to_u64(value, &length) || length > INT64_MAX)
        return refuse(judging, PAWL_TOO_LARGE, "Content-Length: more than any body may have");
    return true;
}

static bool name_is(str name, const char *text)
{
    return name.size == strlen(text) && strncasecmp(name.data, text, name.size) == 0;
}

static bool judge_header(struct judging *judging, str line)
{
    const char *colon = memchr(line.data, ':', line.size);
    str name = { line.data, colon ? (size_t)(colon - line.data) : line.size };
    str value = colon ? trimmed(str_from(line, name.size + 1)) : STR("");

    if (line.data[0] == ' ' || line.data[0] == '\t')
        return is_malformed(judging, "a header line begins with a blank: headers are not folded");
    if (!colon)
        return is_malformed(judging, "a header line: expected NAME: VALUE, found no colon");
    if (!is_token(name))
        return is_malformed(judging,
                            "a header's name: expected letters, digits and -, found others");
    if (has_control(value))
        return is_malformed(judging, "a header's value has control characters");
    if (name_is(name, "Cookie")) /* the library takes it apart, in the same memory */
        judging->cost += value.size + HEAD_PIECE_COST * count_bytes(value, ';');
    if (name_is(name, "Transfer-Encoding"))
        judging->is_chunked = true;
    judging->cost += HEAD_PIECE_COST;
    return name_is(name, "Content-Length") ? judge_length(judging, value) : true;
}

/* ---- Chunks, as far as they are there ---- */

static size_t hex_digits(str line, uint64_t *out)
{
    size_t count = 0;

    for (*out = 0; count < line.size; count++) {
        static const char digits[] = "0123456789abcdef";
        const char *found = line.data[count] ? strchr(digits, line.data[count] | 0x20) : NULL;

        if (!found || line.data[count] < '0')
            break;
        *out = *out * 16 + (uint64_t)(found - digits);
    }
    return count;
}

static bool judge_chunk_line(struct judging *judging, str line, uint64_t *size)
{
    size_t count = hex_digits(line, size);

    if (count == 0 || (count < line.size && !strchr("; \t", line.data[count])))
        return is_malformed(judging, "a chunk: expected its size in hexadecimal digits");
    if (count > 15)
        return refuse(judging, PAWL_TOO_LARGE, "a chunk is larger than any body may be");
    return true;
}

static bool judge_chunks(struct judging *judging)
{
    uint64_t size = 1;
    str line;

    while (size > 0 && take_line(&judging->rest, &line)) {
        if (!judge_chunk_line(judging, line, &size))
            return false;
        if (size == 0 || judging->rest.size < size + 2)
            return true; /* what is not there yet is the library's */
        judging->rest = str_from(judging->rest, (size_t)size);
        if (!take_line(&judging->rest, &line) || line.size > 0)
            return is_malformed(judging, "a chunk is longer than it says");
    }
    if (size > 0 && judging->rest.size > CHUNK_LINE_MAX)
        return is_malformed(judging, "a chunk: expected its size, found a line without end");
    return true;
}

/* ---- All of it ---- */

static void skip_empty_lines(str *rest)
{
    while (rest->size > 0 && (rest->data[0] == '\r' || rest->data[0] == '\n'))
        *rest = str_from(*rest, 1);
}

static enum head_verdict more_or_too_large(struct judging *judging, size_t size)
{
    if (judging->cost + size <= HEAD_MAX)
        return HEAD_MORE;
    refuse(judging, PAWL_TOO_LARGE, "the request line and the headers are over 6,000 bytes");
    return HEAD_BAD;
}

enum head_verdict head_judge(str bytes, struct head_refusal *refusal)
{
    struct judging judging = { .rest = bytes, .refusal = refusal };
    bool is_first = true;
    str line;

    skip_empty_lines(&judging.rest);
    if (judging.rest.size > 0 && !is_token_byte(judging.rest.data[0]))
        return judge_first_line(&judging, judging.rest) ? HEAD_MORE : HEAD_BAD;
    while (take_line(&judging.rest, &line)) {
        if (!is_first && line.size == 0) {
            if (more_or_too_large(&judging, bytes.size - judging.rest.size) == HEAD_BAD)
                return HEAD_BAD;
            if (judging.is_chunked && !judging.has_length && !judge_chunks(&judging))
                return HEAD_BAD;
            return HEAD_SOUND;
        }
        if (!(is_first ? judge_first_line(&judging, line) : judge_header(&judging, line)))
            return HEAD_BAD;
        is_first = false;
    }
    return more_or_too_large(&judging, bytes.size);
}

uint64_t head_request_size(str bytes, bool *is_expecting)
{
    uint64_t length = 0, size;
    int lengths = 0; /* two are refused later */
    bool is_chunked = false;
    str rest = bytes, line;

    *is_expecting = false;
    skip_empty_lines(&rest);
    while (take_line(&rest, &line) && line.size > 0) {
        const char *colon = memchr(line.data, ':', line.size);
        str name = { line.data, colon ? (size_t)(colon - line.data) : line.size };

        if (name_is(name, "Content-Length"))
            lengths += str_to_u64(trimmed(str_from(line, name.size + 1)), &length) ? 1 : 2;
        is_chunked = is_chunked || name_is(name, "Transfer-Encoding");
        *is_expecting = *is_expecting || name_is(name, "Expect");
    }
    size = bytes.size - rest.size;
    return lengths == 1 && !is_chunked && length < UINT64_MAX - size ? size + length : 0;
}

bool head_is_stream(str bytes)
{
    const str get = STR("GET "), events = STR("/events");
    str line, target;
    size_t size = 0;

    skip_empty_lines(&bytes);
    if (!take_line(&bytes, &line) || !str_starts(line, get))
        return false;
    target = str_from(line, get.size);
    while (size < target.size && !strchr(" ?", target.data[size]))
        size++;
    return size >= events.size &&
           memcmp(target.data + size - events.size, events.data, events.size) == 0;
}
