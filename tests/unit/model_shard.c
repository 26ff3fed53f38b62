/* model_shard.c - what belongs to which shard, and the texts and hashes of a store that has several:
 * tests/vectors/shards.json, which make_shards.py computed, must come out here as well. */
#include "base/limits.h"
#include "base/node.h"
#include "lib/test.h"
#include "model/shard.h"
#include <stdio.h>

static struct node *read_group(struct test *t, const char *group)
{
    static const char beside[] = __FILE__;
    const char *slash = strrchr(beside, '/');
    char path[1024], *text = arena_alloc(&t->scope.arena, LIMIT_TEXT);
    struct node *root, *found;
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof path, "%.*s/../vectors/shards.json", (int)(slash - beside), beside);
    file = fopen(path, "rb");
    file = file ? file : fopen("tests/vectors/shards.json", "rb");
    EXPECT(file && text);
    size = fread(text, 1, LIMIT_TEXT, file);
    (void)fclose(file);
    EXPECT(size < LIMIT_TEXT);
    EXPECT_OK(node_read_json(&t->scope, (str){ text, size }, &root));
    found = node_find(root, group);
    EXPECT(found && found->count > 0);
    return found;
}

static uint64_t number_of(const struct node *row, const char *key)
{
    int64_t n = 0;

    EXPECT(node_to_i64(node_find(row, key), &n));
    return (uint64_t)n;
}

static void bytes_of(const struct node *row, const char *key, uint8_t *out, size_t size)
{
    EXPECT(sha_unhex(node_text(row, key), out, size));
}

TEST(model_shard, a_shards_id_belongs_to_its_store_its_place_and_their_number)
{
    struct sha *sha = sha_new(&heap_libc);
    uint8_t whole[STORE_ID_SIZE], wanted[STORE_ID_SIZE], found[STORE_ID_SIZE];

    for (struct node *row = read_group(t, "ids")->first; row; row = row->next) {
        bytes_of(row, "store_id", whole, sizeof whole);
        bytes_of(row, "shard_id", wanted, sizeof wanted);
        shard_store_id(sha, whole, (uint32_t)number_of(row, "shard"),
                       (uint32_t)number_of(row, "shards"), found);
        EXPECT(memcmp(found, wanted, sizeof found) == 0);
    }
    sha_free(sha);
}

TEST(model_shard, the_root_of_a_store_covers_every_shards_end)
{
    struct sha *sha = sha_new(&heap_libc);
    uint8_t whole[STORE_ID_SIZE], wanted[SHA_SIZE], found[SHA_SIZE];
    struct shard_tip tips[8];

    for (struct node *row = read_group(t, "roots")->first; row; row = row->next) {
        uint32_t count = 0;

        for (struct node *tip = node_find(row, "tips")->first; tip; tip = tip->next) {
            tips[count].pos = number_of(tip, "pos");
            bytes_of(tip, "root", tips[count++].root, SHA_SIZE);
        }
        bytes_of(row, "store_id", whole, sizeof whole);
        bytes_of(row, "root", wanted, sizeof wanted);
        shards_root(sha, whole, tips, count, found);
        EXPECT(memcmp(found, wanted, sizeof found) == 0);
    }
    sha_free(sha);
}

TEST(model_shard, numbers_keys_and_alarms_name_their_shard)
{
    for (struct node *row = read_group(t, "places")->first; row; row = row->next) {
        uint32_t shards = (uint32_t)number_of(row, "shards"), found;
        uint8_t key[KEY_ID_SIZE];

        bytes_of(row, "key", key, sizeof key);
        EXPECT(shard_of_number(number_of(row, "number"), shards) == number_of(row, "of_number"));
        EXPECT(shard_of_key(key, shards) == number_of(row, "of_key"));
        EXPECT(shard_of_alarm(node_text(row, "alarm"), shards, &found));
        EXPECT(found == number_of(row, "of_alarm"));
    }
}

TEST(model_shard, an_alarms_id_is_marked_with_its_shard)
{
    (void)t;
    for (uint32_t shards = 1; shards <= SHARDS_MAX; shards *= 2)
        for (uint32_t shard = 0; shard < shards; shard += 1 + shards / 5) {
            uint8_t id[2] = { 0xfe, 0xdc };
            char hex[5];
            uint32_t found;

            shard_mark_alarm(id, shard, shards);
            sha_hex(id, 2, hex);
            EXPECT(shard_of_alarm(str_of(hex), shards, &found) && found == shard);
        }
}

TEST(model_shard, what_is_no_alarms_id_has_no_shard)
{
    uint32_t shard;

    (void)t;
    EXPECT(!shard_of_alarm(STR(""), 8, &shard));
    EXPECT(!shard_of_alarm(STR("12"), 8, &shard));
    EXPECT(!shard_of_alarm(STR("12x4"), 8, &shard));
}

TEST(model_shard, a_cursor_is_one_text_for_one_vector)
{
    struct shard_vector *made = ARENA_NEW(&t->scope.arena, struct shard_vector);
    struct shard_vector *read = ARENA_NEW(&t->scope.arena, struct shard_vector);
    struct buf buf;

    for (struct node *row = read_group(t, "cursors")->first; row; row = row->next) {
        *made = (struct shard_vector){ 0 };
        for (struct node *at = node_find(row, "at")->first; at; at = at->next)
            EXPECT(str_to_u64(at->text, &made->at[made->count++]));
        buf_init(&buf, &heap_libc, SHARD_VECTOR_TEXT);
        shard_vector_print(made, &buf);
        EXPECT(!buf.failed && str_eq(buf_view(&buf), node_text(row, "text")));
        *read = (struct shard_vector){ 0 };
        EXPECT(shard_vector_parse(buf_view(&buf), read));
        EXPECT(memcmp(read, made, sizeof *read) == 0);
        buf_fini(&buf);
    }
}

TEST(model_shard, what_is_forged_or_cut_is_no_cursor)
{
    struct shard_vector *read = ARENA_NEW(&t->scope.arena, struct shard_vector);

    for (struct node *row = read_group(t, "bad")->first; row; row = row->next)
        EXPECT(!shard_vector_parse(row->text, read));
}

/* Every change of one character is refused, or is the one text of another vector. */
TEST(model_shard, a_changed_cursor_is_refused_or_another_one)
{
    static const char tried[] = "0189AZvI \n\377";
    struct shard_vector *read = ARENA_NEW(&t->scope.arena, struct shard_vector);
    struct shard_vector vector = { 4, { 9, 1u << 20, 3, 77 } };
    struct buf good, again;

    buf_init(&good, &heap_libc, SHARD_VECTOR_TEXT);
    buf_init(&again, &heap_libc, SHARD_VECTOR_TEXT);
    shard_vector_print(&vector, &good);
    for (size_t i = 0; i < good.size; i++)
        for (const char *c = tried; *c; c++) {
            char kept = good.data[i];

            good.data[i] = *c;
            if (shard_vector_parse(buf_view(&good), read)) {
                buf_clear(&again);
                shard_vector_print(read, &again);
                EXPECT(str_eq(buf_view(&again), buf_view(&good)));
            }
            good.data[i] = kept;
        }
    buf_fini(&good);
    buf_fini(&again);
}
