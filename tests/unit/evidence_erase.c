/* evidence_erase.c - values without bytes are valid only if an erase record behind their last use
 * names them. */
#include "evidence_world.h"
#include <stdio.h>

#define BODY_SIZE 512

static void take_bytes(struct value *value)
{
    memset(value->salt, 0, SALT_SIZE);
    value->bytes = STR_NONE;
}

/* All values of the world have one salt, so each text has one commitment. */
static void commitment_hex(struct world *w, str bytes, char out[2 * SHA_SIZE + 1])
{
    static const uint8_t salt[SALT_SIZE] = { 1, 2, 3 };
    uint8_t commitment[SHA_SIZE];

    value_commit(w->sha, salt, bytes, commitment);
    sha_hex(commitment, SHA_SIZE, out);
}

/* Names all values that the records of two orders use, except `without`. */
static const char *erase_body(struct world *w, const char *without, char out[BODY_SIZE])
{
    static const char *const texts[] = { "ann", "{\"n\":1}", "cart/1" };
    int size = snprintf(out, BODY_SIZE, "{\"values\":[");
    const char *comma = "";

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char hex[2 * SHA_SIZE + 1];

        if (without && strcmp(texts[i], without) == 0)
            continue;
        commitment_hex(w, str_of(texts[i]), hex);
        size += snprintf(out + size, BODY_SIZE - (size_t)size, "%s\"%s\"", comma, hex);
        comma = ",";
    }
    snprintf(out + size, BODY_SIZE - (size_t)size, "]}");
    return out;
}

static void check_erased(struct world *w, const struct verify_request *request,
                         struct verify_report *report)
{
    struct liar liar;
    pawl_error error;

    liar_init(&liar, w->store);
    liar.value = take_bytes;
    EXPECT_OK(verify_run(&liar.store, &heap_libc, request, report, &error));
}

static const struct verify_request asked[] = {
    { 0 },
    { .instance = 1 },
    { .definition = STR_INIT("order") },
};
#define ASKED_COUNT (sizeof asked / sizeof *asked)

TEST(verify, a_value_without_bytes_that_no_erase_record_names_is_seen)
{
    struct verify_report report;
    struct world w;

    world_two_orders(&w, t);
    for (size_t i = 0; i < ASKED_COUNT; i++) {
        check_erased(&w, &asked[i], &report);
        EXPECT(!report.valid);
        EXPECT_HAS(report.what, "no erase record names it");
        EXPECT(report.bad_pos > 0);
    }
    world_close(&w);
}

TEST(verify, values_that_an_erase_record_names_leave_the_store_valid)
{
    struct verify_report report;
    char body[BODY_SIZE];
    struct world w;

    world_two_orders(&w, t);
    world_record(&w, 0, CONTROL_ERASE, erase_body(&w, NULL, body));
    world_record(&w, 0, CONTROL_KEYED, "{}");
    world_commit(&w);
    for (size_t i = 0; i < ASKED_COUNT; i++) {
        check_erased(&w, &asked[i], &report);
        EXPECT_TEXT(report.what, "");
        EXPECT(report.valid);
    }
    world_close(&w);
}

TEST(verify, an_erase_record_may_stand_in_the_chain_of_the_instance)
{
    struct verify_report report;
    char body[BODY_SIZE];
    struct world w;

    world_two_orders(&w, t);
    world_record(&w, 1, CONTROL_ERASE, erase_body(&w, NULL, body));
    world_commit(&w);
    for (size_t i = 0; i < 2; i++) {
        check_erased(&w, &asked[i], &report);
        EXPECT_TEXT(report.what, "");
    }
    world_close(&w);
}

TEST(verify, an_erase_record_that_leaves_one_out_or_stands_before_a_use_is_not_enough)
{
    struct verify_report report;
    char body[BODY_SIZE];
    struct world w;

    world_two_orders(&w, t);
    world_record(&w, 0, CONTROL_ERASE, erase_body(&w, "cart/1", body));
    world_commit(&w);
    for (size_t i = 0; i < ASKED_COUNT; i++) {
        check_erased(&w, &asked[i], &report);
        EXPECT(!report.valid);
        EXPECT_HAS(report.what, "no erase record names it");
    }
    world_record(&w, 0, CONTROL_ERASE, erase_body(&w, NULL, body));
    world_commit(&w);
    world_record(&w, 2, ORDER_NOTE, NULL);
    world_commit(&w);
    check_erased(&w, &asked[0], &report);
    EXPECT(!report.valid);
    EXPECT_HAS(report.what, "comes before this one");
    world_close(&w);
}

TEST(verify, a_forged_erase_record_is_refused)
{
    static const char *const bodies[] = { NULL, "{}", "{\"values\":[]}", "{\"values\":[7]}",
                                          "{\"values\":[\"0123\"]}", "[]" };
    struct verify_report report;
    char body[BODY_SIZE];
    struct record *record;
    struct world w;

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        world_two_orders(&w, t);
        world_record(&w, 0, CONTROL_ERASE, bodies[i]);
        world_commit(&w);
        world_expect_bad(&w, 8, 0, "an erase record");
        world_close(&w);
    }
    world_two_orders(&w, t);
    record = world_record(&w, 0, CONTROL_ERASE, "{}");
    record->body = str_of(erase_body(&w, NULL, body)); /* and not hashed again */
    world_commit(&w);
    for (size_t i = 0; i < ASKED_COUNT; i++) {
        check_erased(&w, &asked[i], &report);
        EXPECT(!report.valid);
        EXPECT_HAS(report.what, "does not match its hash");
    }
    world_close(&w);
}

/* ---- interrupted and resumed ---- */

struct kept_checkpoint {
    char bytes[8192];
    size_t size;
};

static void keep(void *context, str checkpoint)
{
    struct kept_checkpoint *kept = context;

    if (checkpoint.size <= sizeof kept->bytes) {
        memcpy(kept->bytes, checkpoint.data, checkpoint.size);
        kept->size = checkpoint.size;
    }
}

TEST(verify, a_check_that_is_stopped_remembers_what_was_erased)
{
    struct kept_checkpoint kept = { .size = 0 };
    struct verify_request first = { .limit = 1, .keep = keep, .context = &kept };
    struct verify_report report;
    char body[BODY_SIZE];
    struct world w;

    world_two_orders(&w, t);
    for (int is_named = 0; is_named < 2; is_named++) {
        for (first.limit = 1; first.limit < 8; first.limit++) {
            kept.size = 0;
            check_erased(&w, &first, &report);
            EXPECT(!report.stopped || kept.size > 0);
            check_erased(&w,
                         &(struct verify_request){
                             .checkpoint = kept.size ? (str){ kept.bytes, kept.size } : STR_NONE },
                         &report);
            EXPECT_EQ(report.valid, is_named);
            EXPECT(report.resumed > 0 || kept.size == 0);
        }
        world_record(&w, 0, CONTROL_ERASE, erase_body(&w, NULL, body));
        world_commit(&w);
    }
    world_close(&w);
}
