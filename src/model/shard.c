/* shard.c - what belongs to which shard; ids, roots and cursors of a store that has several. */
#include "model/shard.h"
#include "base/assert.h"
#include <string.h>

bool shards_are_valid(uint64_t count)
{
    return count > 0 && count <= SHARDS_MAX && (count & (count - 1)) == 0;
}

/* ---- which shard? ---- */

uint32_t shard_of_number(uint64_t number, uint32_t shards)
{
    return (uint32_t)(number % shards);
}

uint32_t shard_of_key(const uint8_t key[KEY_ID_SIZE], uint32_t shards)
{
    uint32_t first =
        (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];

    return first % shards;
}

bool shard_of_alarm(str id, uint32_t shards, uint32_t *out)
{
    uint8_t first[2];

    if (id.size < 4 || !sha_unhex((str){ id.data, 4 }, first, sizeof first))
        return false;
    *out = ((uint32_t)first[0] << 8 | first[1]) % shards;
    return true;
}

void shard_mark_alarm(uint8_t id[2], uint32_t shard, uint32_t shards)
{
    uint32_t first = (uint32_t)id[0] << 8 | id[1];

    first = first - first % shards + shard;
    id[0] = (uint8_t)(first >> 8);
    id[1] = (uint8_t)first;
}

/* ---- identity ---- */

static void add_varint(struct sha *sha, uint64_t n)
{
    uint8_t bytes[10];
    size_t size = 0;

    for (; n > 127; n >>= 7)
        bytes[size++] = (uint8_t)(n | 128);
    bytes[size++] = (uint8_t)n;
    sha_add(sha, bytes, size);
}

void shard_store_id(struct sha *sha, const uint8_t store_id[STORE_ID_SIZE], uint32_t shard,
                    uint32_t shards, uint8_t out[STORE_ID_SIZE])
{
    static const char name[] = "pawl.shard.1";
    uint8_t hash[SHA_SIZE];

    ASSERT(shard < shards);
    sha_begin(sha);
    sha_add(sha, name, sizeof name - 1);
    sha_add(sha, store_id, STORE_ID_SIZE);
    add_varint(sha, shard);
    add_varint(sha, shards);
    sha_end(sha, hash);
    memcpy(out, hash, STORE_ID_SIZE);
}

void shards_root(struct sha *sha, const uint8_t store_id[STORE_ID_SIZE],
                 const struct shard_tip *tips, uint32_t shards, uint8_t out[SHA_SIZE])
{
    static const char name[] = "pawl.cluster.1";

    sha_begin(sha);
    sha_add(sha, name, sizeof name - 1);
    sha_add(sha, store_id, STORE_ID_SIZE);
    add_varint(sha, shards);
    for (uint32_t i = 0; i < shards; i++) {
        add_varint(sha, tips[i].pos);
        sha_add(sha, tips[i].root, SHA_SIZE);
    }
    sha_end(sha, out);
}

/* ---- cursors ---- */

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* Bits on their way to or from digits of five. */
struct bits {
    uint32_t held;
    unsigned count;
};

static void put_byte(struct bits *bits, uint8_t byte, struct buf *out)
{
    bits->held = bits->held << 8 | byte;
    for (bits->count += 8; bits->count >= 5;) {
        bits->count -= 5;
        buf_byte(out, (unsigned char)digits[bits->held >> bits->count & 31]);
    }
}

static void put_varint(struct bits *bits, uint64_t n, struct buf *out)
{
    for (; n > 127; n >>= 7)
        put_byte(bits, (uint8_t)(n | 128), out);
    put_byte(bits, (uint8_t)n, out);
}

static uint64_t zigzag(int64_t n)
{
    return (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t n)
{
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

void shard_vector_print(const struct shard_vector *vector, struct buf *out)
{
    struct bits bits = { 0 };
    uint64_t before = 0;

    buf_byte(out, 'v');
    put_varint(&bits, vector->count, out);
    for (uint32_t i = 0; i < vector->count; i++) {
        put_varint(&bits, zigzag((int64_t)vector->at[i] - (int64_t)before), out);
        before = vector->at[i];
    }
    if (bits.count > 0)
        buf_byte(out, (unsigned char)digits[bits.held << (5 - bits.count) & 31]);
}

struct digits_left {
    str text; /* what is left */
    struct bits bits;
};

static bool take_byte(struct digits_left *reading, uint8_t *out)
{
    struct bits *bits = &reading->bits;

    while (bits->count < 8) {
        const char *digit = reading->text.size > 0 && reading->text.data[0]
                                ? strchr(digits, reading->text.data[0])
                                : NULL;

        if (!digit)
            return false;
        bits->held = bits->held << 5 | (uint32_t)(digit - digits);
        bits->count += 5;
        reading->text = str_from(reading->text, 1);
    }
    bits->count -= 8;
    *out = (uint8_t)(bits->held >> bits->count);
    return true;
}

/* In its shortest form, and no more than 64 bits. */
static bool take_varint(struct digits_left *reading, uint64_t *out)
{
    uint64_t n = 0;
    uint8_t byte = 128;

    for (unsigned shift = 0; byte & 128; shift += 7) {
        if (!take_byte(reading, &byte) || (shift == 63 && byte > 1) || (shift > 0 && byte == 0))
            return false;
        n |= (uint64_t)(byte & 127) << shift;
    }
    *out = n;
    return true;
}

/* What is left of the last digit is no whole byte, and 0. */
static bool is_at_end(const struct digits_left *reading)
{
    uint32_t rest = reading->bits.held & ((UINT32_C(1) << reading->bits.count) - 1);

    return reading->text.size == 0 && reading->bits.count < 5 && rest == 0;
}

bool shard_vector_parse(str text, struct shard_vector *out)
{
    struct digits_left reading = { .text = str_from(text, text.size > 0 ? 1 : 0) };
    uint64_t count, difference;
    int64_t at = 0;

    if (text.size == 0 || text.data[0] != 'v' || text.size > SHARD_VECTOR_TEXT ||
        !take_varint(&reading, &count) || !shards_are_valid(count))
        return false;
    out->count = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        if (!take_varint(&reading, &difference) ||
            __builtin_add_overflow(at, unzigzag(difference), &at) || at < 0)
            return false;
        out->at[i] = (uint64_t)at;
    }
    return is_at_end(&reading);
}
