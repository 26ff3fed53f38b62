/* sha.c - SHA-256. The algorithm is looked up once: that costs more than a short hash. */
#include "base/sha.h"
#include "base/assert.h"
#include <openssl/evp.h>

struct sha {
    struct heap heap;
    EVP_MD *algorithm;
    EVP_MD_CTX *context;
};

struct sha *sha_new(const struct heap *heap)
{
    struct sha *sha = heap_new(heap, sizeof *sha);

    if (!sha)
        return NULL;
    sha->heap = *heap;
    sha->algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    sha->context = EVP_MD_CTX_new();
    /* The first begin is the one that allocates; those after it cannot fail. */
    if (sha->algorithm && sha->context && EVP_DigestInit_ex2(sha->context, sha->algorithm, NULL))
        return sha;
    sha_free(sha);
    return NULL;
}

void sha_free(struct sha *sha)
{
    struct heap heap;

    if (!sha)
        return;
    heap = sha->heap;
    EVP_MD_CTX_free(sha->context);
    EVP_MD_free(sha->algorithm);
    heap_free(&heap, sha, sizeof *sha);
}

void sha_begin(struct sha *sha)
{
    ASSERT(EVP_DigestInit_ex2(sha->context, NULL, NULL) == 1);
}

void sha_add(struct sha *sha, const void *data, size_t size)
{
    if (size > 0)
        ASSERT(EVP_DigestUpdate(sha->context, data, size) == 1);
}

void sha_end(struct sha *sha, uint8_t out[SHA_SIZE])
{
    unsigned size = 0;

    ASSERT(EVP_DigestFinal_ex(sha->context, out, &size) == 1);
    ASSERT(size == SHA_SIZE);
}

void sha_once(struct sha *sha, str bytes, uint8_t out[SHA_SIZE])
{
    sha_begin(sha);
    sha_add(sha, bytes.data, bytes.size);
    sha_end(sha, out);
}

void sha_hex(const uint8_t *bytes, size_t size, char *out)
{
    for (size_t i = 0; i < size; i++) {
        *out++ = "0123456789abcdef"[bytes[i] >> 4];
        *out++ = "0123456789abcdef"[bytes[i] & 15];
    }
    *out = '\0';
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sha_unhex(str hex, uint8_t *out, size_t size)
{
    bool is_good = hex.size == 2 * size;

    for (size_t i = 0; is_good && i < size; i++) {
        int high = hex_digit(hex.data[2 * i]), low = hex_digit(hex.data[2 * i + 1]);

        is_good = high >= 0 && low >= 0;
        out[i] = (uint8_t)(high * 16 + low);
    }
    return is_good;
}

/* ---- HMAC ---- */

#define HMAC_BLOCK 64

static void begin_padded(struct sha *sha, const uint8_t key[HMAC_BLOCK], uint8_t fill)
{
    uint8_t pad[HMAC_BLOCK];

    for (size_t i = 0; i < HMAC_BLOCK; i++)
        pad[i] = key[i] ^ fill;
    sha_begin(sha);
    sha_add(sha, pad, sizeof pad);
}

void sha_hmac(struct sha *sha, str key, str text, uint8_t out[SHA_SIZE])
{
    uint8_t block[HMAC_BLOCK] = { 0 }, inner[SHA_SIZE];

    if (key.size > HMAC_BLOCK)
        sha_once(sha, key, block);
    else if (key.size > 0)
        memcpy(block, key.data, key.size);
    begin_padded(sha, block, 0x36);
    sha_add(sha, text.data, text.size);
    sha_end(sha, inner);
    begin_padded(sha, block, 0x5c);
    sha_add(sha, inner, sizeof inner);
    sha_end(sha, out);
}
