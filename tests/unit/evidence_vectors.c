/* evidence_vectors.c - tests/vectors/format.json, which tools/verify.py computed from
 * docs/format.md: this side of the page must come to the same hashes. */
#include "base/buf.h"
#include "base/limits.h"
#include "base/node.h"
#include "evidence/evidence.h"
#include "lib/test.h"
#include "model/erased_body.h"
#include <stdio.h>

/* ---- reading the vectors ---- */

static FILE *open_vectors(void)
{
    static const char beside[] = __FILE__;
    const char *slash = strrchr(beside, '/');
    char path[1024];
    FILE *file;

    (void)snprintf(path, sizeof path, "%.*s/../vectors/format.json", (int)(slash - beside), beside);
    file = fopen(path, "rb");
    return file ? file : fopen("tests/vectors/format.json", "rb");
}

static struct node *read_group(struct test *t, const char *group)
{
    FILE *file = open_vectors();
    char *text = arena_alloc(&t->scope.arena, LIMIT_TEXT);
    struct node *root, *found;
    size_t size;

    EXPECT(file && text);
    size = fread(text, 1, LIMIT_TEXT, file);
    (void)fclose(file);
    EXPECT(size < LIMIT_TEXT);
    EXPECT_OK(node_read_json(&t->scope, (str){ text, size }, &root));
    found = node_find(root, group);
    EXPECT(found && found->count > 0);
    return found;
}

static int64_t number_of(const struct node *row, const char *key)
{
    int64_t n = 0;

    EXPECT(node_to_i64(node_find(row, key), &n));
    return n;
}

static uint8_t digit(char c)
{
    const char *at = c ? strchr("0123456789abcdef", c) : NULL;

    EXPECT(at);
    return (uint8_t)(at - "0123456789abcdef");
}

static str unhex(struct test *t, const struct node *node)
{
    char *out;

    EXPECT(node);
    if (node->kind == NODE_NULL)
        return STR_NONE;
    EXPECT(node->kind == NODE_STRING && node->text.size % 2 == 0);
    out = arena_alloc(&t->scope.arena, node->text.size / 2 + 1);
    for (size_t i = 0; i < node->text.size / 2; i++)
        out[i] = (char)(digit(node->text.data[2 * i]) << 4 | digit(node->text.data[2 * i + 1]));
    return (str){ out, node->text.size / 2 };
}

static str bytes_of(struct test *t, const struct node *row, const char *key)
{
    return unhex(t, node_find(row, key));
}

static const uint8_t *hash_of(struct test *t, const struct node *row, const char *key)
{
    str bytes = bytes_of(t, row, key);

    EXPECT(!bytes.data || bytes.size == SHA_SIZE);
    return (const uint8_t *)bytes.data;
}

static void expect_hash(struct test *t, const struct node *row, const char *key,
                        const uint8_t found[SHA_SIZE])
{
    char hex[2 * SHA_SIZE + 1], wanted[2 * SHA_SIZE + 1];

    sha_hex(found, SHA_SIZE, hex);
    sha_hex(hash_of(t, row, key), SHA_SIZE, wanted);
    EXPECT_TEXT(hex, wanted);
}

static struct sha *new_sha(void)
{
    struct sha *sha = sha_new(&heap_libc);

    EXPECT(sha);
    return sha;
}

/* ---- what they say ---- */

TEST(evidence_vectors, values_commit_to_salt_and_bytes)
{
    struct sha *sha = new_sha();
    uint8_t hash[SHA_SIZE];

    for (const struct node *row = read_group(t, "values")->first; row; row = row->next) {
        str salt = bytes_of(t, row, "salt");

        EXPECT(salt.size == SALT_SIZE);
        value_commit(sha, (const uint8_t *)salt.data, bytes_of(t, row, "bytes"), hash);
        expect_hash(t, row, "commitment", hash);
    }
    sha_free(sha);
}

TEST(evidence_vectors, ids_are_printed_and_read_back_alike)
{
    for (const struct node *row = read_group(t, "ids")->first; row; row = row->next) {
        str random = bytes_of(t, row, "random");
        uint8_t back[ID_RANDOM_SIZE];
        uint64_t number = 0;
        char id[ID_SIZE + 1];

        EXPECT(random.size == ID_RANDOM_SIZE);
        id_print((uint64_t)number_of(row, "number"), (const uint8_t *)random.data, id);
        EXPECT_STR(node_find(row, "id")->text, id);
        EXPECT(id_parse(str_of(id), &number, back));
        EXPECT_EQ(number, number_of(row, "number"));
        EXPECT(memcmp(back, random.data, ID_RANDOM_SIZE) == 0);
    }
}

TEST(evidence_vectors, creations_cover_the_facts_of_their_rows)
{
    for (const struct node *row = read_group(t, "creations")->first; row; row = row->next) {
        struct buf body;
        struct creation_facts facts = {
            .source_sha = hash_of(t, row, "source_sha"),
            .compiled_sha = hash_of(t, row, "compiled_sha"),
            .name = bytes_of(t, row, "name"),
            .version = (uint32_t)number_of(row, "version"),
            .subject = hash_of(t, row, "subject"),
            .input = hash_of(t, row, "input"),
            .metadata = hash_of(t, row, "metadata"),
            .correlation = bytes_of(t, row, "correlation"),
            .labels = bytes_of(t, row, "labels"),
            .parent_id = bytes_of(t, row, "parent_id"),
            .test = number_of(row, "test") != 0,
        };

        buf_init(&body, &heap_libc, LIMIT_TEXT);
        creation_body(&facts, &body);
        EXPECT(!body.failed);
        EXPECT(str_eq(buf_view(&body), bytes_of(t, row, "body")));
        buf_fini(&body);
    }
}

static struct record record_of(struct test *t, const struct node *row)
{
    return (struct record){
        .seq = (uint64_t)number_of(row, "seq"),
        .what = (int32_t)number_of(row, "what"),
        .flags = (uint32_t)number_of(row, "flags"),
        .at_ms = number_of(row, "at"),
        .fired_at_ms = number_of(row, "fired"),
        .step = (uint32_t)number_of(row, "step"),
        .ordinal = (uint32_t)number_of(row, "ordinal"),
        .attempt = (uint32_t)number_of(row, "attempt"),
        .key = bytes_of(t, row, "key"),
    };
}

TEST(evidence_vectors, records_hash_alike_whatever_the_size_of_body_and_key)
{
    struct sha *sha = new_sha();
    uint8_t hash[SHA_SIZE];

    for (const struct node *row = read_group(t, "records")->first; row; row = row->next) {
        struct record record = record_of(t, row);
        struct commitments commitments = {
            .actor = hash_of(t, row, "actor"),
            .payload = hash_of(t, row, "payload"),
            .reason = hash_of(t, row, "reason"),
        };
        str id = node_find(row, "id")->text;

        EXPECT(id.size == ID_SIZE);
        record_hash(sha, hash_of(t, row, "prev"), id.data, &record, bytes_of(t, row, "body"),
                    &commitments, hash);
        expect_hash(t, row, "hash", hash);
    }
    sha_free(sha);
}

TEST(evidence_vectors, what_is_erased_of_a_body_is_the_same_everywhere)
{
    uint32_t private_count = 0, count = 0;

    for (const struct node *row = read_group(t, "erased_bodies")->first; row; row = row->next) {
        struct record record = { .body = node_find(row, "before")->text };
        bool is_private;
        str out;

        EXPECT_OK(redact_body(&t->scope, &record, &is_private, &out));
        EXPECT(str_eq(out, node_find(row, "after")->text));
        EXPECT(is_private == !str_eq(record.body, out));
        private_count += is_private;
        count++;
    }
    EXPECT(count == 4 && private_count == 3);
}

TEST(evidence_vectors, roots_follow_from_one_another)
{
    struct sha *sha = new_sha();
    uint8_t root[SHA_SIZE];

    for (const struct node *row = read_group(t, "roots")->first; row; row = row->next) {
        str store_id = bytes_of(t, row, "store_id");

        EXPECT(store_id.size == STORE_ID_SIZE);
        root_first(sha, (const uint8_t *)store_id.data, root);
        expect_hash(t, row, "first", root);
        for (const struct node *c = node_find(row, "commits")->first; c; c = c->next) {
            root_begin(sha, root);
            for (const struct node *h = node_find(c, "hashes")->first; h; h = h->next)
                root_add(sha, (const uint8_t *)unhex(t, h).data);
            root_end(sha, root);
            expect_hash(t, c, "root", root);
        }
    }
    sha_free(sha);
}
