/* chain.c - what each hash covers, and in which order: docs/format.md, "Hashes".
 *
 * Pure. record_hash() is on the path of every fire: everything before a long body goes
 * through one buffer on the stack, because each call of the hasher costs more than a copy. */
#include "base/assert.h"
#include "base/buf.h"
#include "evidence/evidence.h"

#define PREFIX_SIZE_MAX                                                                            \
    320 /* all but body and key: 10 + 32 + 26 + 8 varints + 3 * 33 + 2 lengths */
#define INLINE_SIZE_MAX 448 /* a body and key up to this size travel in the same buffer */

static const char record_tag[] = "pawl.rec.1";
static const char root_tag[] = "pawl.root.1";
static const char store_tag[] = "pawl.store.1";

void value_commit(struct sha *sha, const uint8_t salt[SALT_SIZE], str bytes, uint8_t out[SHA_SIZE])
{
    sha_begin(sha);
    sha_add(sha, salt, SALT_SIZE);
    sha_add(sha, bytes.data, bytes.size);
    sha_end(sha, out);
}

uint64_t commitment_key(const uint8_t commitment[SHA_SIZE])
{
    uint64_t key;

    memcpy(&key, commitment, sizeof key);
    return key ? key : 1; /* a map has no key 0 */
}

/* ---- the body of a creation ---- */

static void add_length_and(struct buf *out, str bytes)
{
    buf_varint(out, bytes.size);
    buf_str(out, bytes);
}

static void add_optional(struct buf *out, const uint8_t *hash)
{
    buf_byte(out, hash ? 1 : 0);
    if (hash)
        buf_add(out, hash, SHA_SIZE);
}

void creation_body(const struct creation_facts *facts, struct buf *out)
{
    buf_add(out, facts->source_sha, SHA_SIZE);
    buf_add(out, facts->compiled_sha, SHA_SIZE);
    add_length_and(out, facts->name);
    buf_varint(out, facts->version);
    add_optional(out, facts->subject);
    add_optional(out, facts->input);
    add_optional(out, facts->metadata);
    add_length_and(out, facts->correlation);
    add_length_and(out, facts->labels);
    add_length_and(out, facts->parent_id);
    buf_varint(out, facts->test ? 1 : 0);
}

/* ---- a record ---- */

static uint8_t *put_bytes(uint8_t *p, const void *data, size_t size)
{
    if (size > 0)
        memcpy(p, data, size);
    return p + size;
}

static uint8_t *put_varint(uint8_t *p, uint64_t n)
{
    while (n >= 0x80) {
        *p++ = (uint8_t)(n | 0x80);
        n >>= 7;
    }
    *p++ = (uint8_t)n;
    return p;
}

static uint8_t *put_zigzag(uint8_t *p, int64_t n)
{
    return put_varint(p, ((uint64_t)n << 1) ^ (n < 0 ? UINT64_MAX : 0));
}

static uint8_t *put_optional(uint8_t *p, const uint8_t *hash)
{
    *p++ = hash ? 1 : 0;
    return hash ? put_bytes(p, hash, SHA_SIZE) : p;
}

static uint8_t *put_fields(uint8_t *p, const struct record *record, const struct commitments *of)
{
    p = put_varint(p, record->seq);
    p = put_zigzag(p, record->what);
    p = put_zigzag(p, record->at_ms);
    p = put_zigzag(p, record->fired_at_ms);
    p = put_varint(p, record->step);
    p = put_varint(p, record->ordinal);
    p = put_varint(p, record->attempt);
    p = put_varint(p, record->flags);
    p = put_optional(p, of->actor);
    p = put_optional(p, of->payload);
    return put_optional(p, of->reason);
}

void record_hash(struct sha *sha, const uint8_t prev[SHA_SIZE], const char id[ID_SIZE],
                 const struct record *record, str body, const struct commitments *commitments,
                 uint8_t out[SHA_SIZE])
{
    uint8_t buffer[PREFIX_SIZE_MAX + INLINE_SIZE_MAX], *p = buffer;

    sha_begin(sha);
    p = put_bytes(p, record_tag, sizeof record_tag - 1);
    p = put_bytes(p, prev, SHA_SIZE);
    p = put_bytes(p, id, ID_SIZE);
    p = put_fields(p, record, commitments);
    p = put_varint(p, body.size);
    if (body.size <= INLINE_SIZE_MAX && record->key.size <= INLINE_SIZE_MAX - body.size) {
        p = put_bytes(p, body.data, body.size);
        p = put_varint(p, record->key.size);
        p = put_bytes(p, record->key.data, record->key.size);
        ASSERT(p <= buffer + sizeof buffer);
        sha_add(sha, buffer, (size_t)(p - buffer));
    } else {
        sha_add(sha, buffer, (size_t)(p - buffer));
        sha_add(sha, body.data, body.size);
        p = put_varint(buffer, record->key.size);
        sha_add(sha, buffer, (size_t)(p - buffer));
        sha_add(sha, record->key.data, record->key.size);
    }
    sha_end(sha, out);
}

/* ---- roots ---- */

void root_first(struct sha *sha, const uint8_t store_id[STORE_ID_SIZE], uint8_t out[SHA_SIZE])
{
    sha_begin(sha);
    sha_add(sha, store_tag, sizeof store_tag - 1);
    sha_add(sha, store_id, STORE_ID_SIZE);
    sha_end(sha, out);
}

void root_begin(struct sha *sha, const uint8_t prev[SHA_SIZE])
{
    sha_begin(sha);
    sha_add(sha, root_tag, sizeof root_tag - 1);
    sha_add(sha, prev, SHA_SIZE);
}

void root_add(struct sha *sha, const uint8_t hash[SHA_SIZE])
{
    sha_add(sha, hash, SHA_SIZE);
}

void root_end(struct sha *sha, uint8_t out[SHA_SIZE])
{
    sha_end(sha, out);
}

/* ---- keys ---- */

static void add_text(struct sha *sha, str text)
{
    uint8_t length[10];

    sha_add(sha, length, (size_t)(put_varint(length, text.size) - length));
    sha_add(sha, text.data, text.size);
}

void key_part(struct sha *sha, const uint8_t key[KEY_SIZE], uint64_t n, uint8_t out[KEY_SIZE])
{
    static const char tag[] = "pawl.key.2";
    uint8_t id[SHA_SIZE], number[10];

    sha_begin(sha);
    sha_add(sha, tag, sizeof tag - 1);
    sha_add(sha, key, KEY_ID_SIZE);
    sha_add(sha, number, (size_t)(put_varint(number, n) - number));
    sha_end(sha, id);
    memcpy(out, key, KEY_SIZE);
    memcpy(out, id, KEY_ID_SIZE);
}

void key_make(struct sha *sha, str principal, str key, str operation, str request,
              uint8_t out[KEY_SIZE])
{
    static const char key_tag[] = "pawl.key.1", request_tag[] = "pawl.req.1";
    uint8_t id[SHA_SIZE];

    sha_begin(sha);
    sha_add(sha, key_tag, sizeof key_tag - 1);
    add_text(sha, principal);
    add_text(sha, key);
    sha_end(sha, id);
    memcpy(out, id, KEY_ID_SIZE);
    sha_begin(sha);
    sha_add(sha, request_tag, sizeof request_tag - 1);
    add_text(sha, operation);
    add_text(sha, request);
    sha_end(sha, out + KEY_ID_SIZE);
}
