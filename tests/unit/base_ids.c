/* base_ids.c - what ids and hashes promise. */
#include "base/ids.h"
#include "base/sha.h"
#include "lib/test.h"

TEST(ids, known_ids_have_their_text)
{
    static const uint8_t zero[ID_RANDOM_SIZE] = { 0 };
    static const uint8_t ones[ID_RANDOM_SIZE] = {
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255
    };
    static const uint8_t steps[ID_RANDOM_SIZE] = { 0x00, 0x44, 0x32, 0x14, 0xC7,
                                                   0x42, 0x54, 0xB6, 0x35, 0xCF };
    char text[ID_SIZE + 1];

    id_print(0, zero, text);
    EXPECT_TEXT(text, "00000000000000000000000000");
    id_print(ID_NUMBER_MAX, ones, text);
    EXPECT_TEXT(text, "ZZZZZZZZZZZZZZZZZZZZZZZZZZ");
    id_print(33, steps, text); /* the five-bit groups of `steps` count 0 to 15 */
    EXPECT_TEXT(text, "00000000110123456789ABCDEF");
}

TEST(ids, what_is_printed_is_parsed_again)
{
    uint64_t seed = 1, number;
    uint8_t random[ID_RANDOM_SIZE], found[ID_RANDOM_SIZE];
    char text[ID_SIZE + 1];

    for (int i = 0; i < 10000; i++) {
        for (int k = 0; k < ID_RANDOM_SIZE; k++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            random[k] = (uint8_t)(seed >> 56);
        }
        id_print(seed >> 14, random, text);
        EXPECT(id_parse(str_of(text), &number, found));
        EXPECT_EQ(number, seed >> 14);
        EXPECT(memcmp(random, found, sizeof found) == 0);
    }
}

TEST(ids, later_numbers_sort_later) /* X10 */
{
    static const uint8_t high[ID_RANDOM_SIZE] = { 255 }, low[ID_RANDOM_SIZE] = { 0 };
    char earlier[ID_SIZE + 1], later[ID_SIZE + 1];

    for (uint64_t number = 1; number < ID_NUMBER_MAX; number = number * 3 + 1) {
        id_print(number, high, earlier);
        id_print(number + 1, low, later);
        EXPECT(strcmp(earlier, later) < 0);
    }
}

TEST(ids, what_is_no_id_is_refused)
{
    char text[] = "00000000110123456789ABCDEF";
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number = 42;

    EXPECT(!id_parse(STR_NONE, &number, random));
    EXPECT(!id_parse(STR(""), &number, random));
    EXPECT(!id_parse((str){ text, ID_SIZE - 1 }, &number, random));
    EXPECT(!id_parse(STR("000000000000000000000000000"), &number, random));
    for (size_t at = 0; at < ID_SIZE; at++) {
        char was = text[at];

        for (const char *bad = "ILOUaz- \x80@["; *bad; bad++) {
            text[at] = *bad;
            EXPECT(!id_parse(str_of(text), &number, random));
        }
        text[at] = '\0';
        EXPECT(!id_parse((str){ text, ID_SIZE }, &number, random));
        text[at] = was;
    }
    EXPECT_EQ(number, 42);
    EXPECT(id_parse(str_of(text), NULL, NULL));
}

TEST(ids, ids_of_transitions_and_steps_are_split_exactly)
{
    static const char *const bad[] = {
        "00000000110123456789ABCDEF",
        "00000000110123456789ABCDEF-",
        "00000000110123456789ABCDEF.7",
        "00000000110123456789ABCDEF-07",
        "00000000110123456789ABCDEF--7",
        "00000000110123456789ABCDEF-7x",
        "00000000110123456789ABCDE-7",
        "00000000110123456789abcdef-7",
        "00000000110123456789ABCDEF-18446744073709551616",
        "-7",
        "",
    };
    uint64_t n = 42;
    str id;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT(!id_split(str_of(bad[i]), '-', &id, &n));
    EXPECT(!id_split(STR_NONE, '-', &id, &n));
    EXPECT_EQ(n, 42);
    EXPECT(id_split(STR("00000000110123456789ABCDEF-7"), '-', &id, &n));
    EXPECT_EQ(n, 7);
    EXPECT_STR(id, "00000000110123456789ABCDEF");
    EXPECT(id_split(STR("00000000110123456789ABCDEF.18446744073709551615"), '.', &id, &n));
    EXPECT(n == UINT64_MAX);
    EXPECT(id_split(STR("00000000110123456789ABCDEF-0"), '-', &id, &n) && n == 0);
}

static void expect_sha(struct sha *sha, str bytes, const char *hex)
{
    uint8_t hash[SHA_SIZE];
    char text[2 * SHA_SIZE + 1];

    sha_once(sha, bytes, hash);
    sha_hex(hash, SHA_SIZE, text);
    EXPECT_TEXT(text, hex);
}

TEST(sha, the_published_vectors_come_out_of_one_reused_hasher)
{
    struct sha *sha = sha_new(&heap_libc);

    EXPECT(sha != NULL);
    for (int round = 0; round < 3; round++) {
        expect_sha(sha, STR(""),
                   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        expect_sha(sha, STR("abc"),
                   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        expect_sha(sha, STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                   "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        expect_sha(sha, STR_NONE,
                   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
    sha_free(sha);
    sha_free(NULL);
}

TEST(sha, parts_hash_like_the_whole_and_begin_forgets_what_was_added)
{
    uint8_t hash[SHA_SIZE];
    char text[2 * SHA_SIZE + 1];
    struct sha *sha = sha_new(&heap_libc);

    sha_begin(sha);
    sha_add(sha, "left over", 9);
    sha_begin(sha);
    for (int i = 0; i < 100000; i++)
        sha_add(sha, "aaaaaaaaaa", 10);
    sha_end(sha, hash);
    sha_hex(hash, SHA_SIZE, text);
    EXPECT_TEXT(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    sha_free(sha);
}

TEST(sha, hexadecimal_is_read_back_and_anything_else_is_refused)
{
    static const char *const wrong[] = { "", "00", "00ff8", "00ff8g", "00FF8a", "00ff8a00", "0x00ff" };
    const uint8_t bytes[] = { 0x00, 0xff, 0x8a };
    uint8_t found[3] = { 1, 1, 1 };
    char text[7];

    sha_hex(bytes, sizeof bytes, text);
    EXPECT(sha_unhex(str_of(text), found, sizeof found));
    EXPECT(memcmp(found, bytes, sizeof bytes) == 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        EXPECT(!sha_unhex(str_of(wrong[i]), found, sizeof found));
}
