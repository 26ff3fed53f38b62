/* sha.h - SHA-256 through libcrypto, fetched once per hasher. */
#ifndef PAWL_BASE_SHA_H
#define PAWL_BASE_SHA_H

#include "base/heap.h"
#include "base/str.h"

#define SHA_SIZE 32

struct sha; /* a reusable hasher; belongs to one thread at a time */

/* NULL if there is no memory. What libcrypto allocates comes from its own. */
struct sha *sha_new(const struct heap *heap);
void sha_free(struct sha *sha); /* NULL is allowed */

void sha_begin(struct sha *sha);
void sha_add(struct sha *sha, const void *data, size_t size);
void sha_end(struct sha *sha, uint8_t out[SHA_SIZE]);

void sha_once(struct sha *sha, str bytes, uint8_t out[SHA_SIZE]);
/* HMAC-SHA256 (RFC 2104). */
void sha_hmac(struct sha *sha, str key, str text, uint8_t out[SHA_SIZE]);
void sha_hex(const uint8_t *bytes, size_t size, char *out); /* 2 * size + 1 characters */
bool sha_unhex(str hex, uint8_t *out, size_t size); /* false: not 2 * size digits 0-9, a-f */

#endif
