/* ops_access.c - the cost of rejecting a token. Counted, not timed: reads of the store and
 * allocations (a hash is one), for known and unknown ids. */
#include "api/ops_int.h"
#include "lib/test.h"

struct work {
    uint64_t kept_reads, record_reads, allocations;
};

static struct work done;
static const struct store_ops *real_ops;

static pawl_status count_find(struct store *store, struct scope *scope,
                              const struct find_query *query, void *out)
{
    done.kept_reads += query->kind == FIND_STANDING;
    done.record_reads += query->kind == FIND_RECORD;
    return real_ops->find(store, scope, query, out);
}

static void *count_resize(void *context, void *block, size_t old_size, size_t new_size)
{
    (void)context;
    done.allocations += new_size > 0;
    return heap_libc.resize(heap_libc.context, block, old_size, new_size);
}

static const struct heap counting = { .resize = count_resize };

static struct work refuse(pawl *p, const char *bearer)
{
    struct op_principal who = { 0 };
    struct store *store = engine_store(p->engine);
    struct store_ops counted = *store->ops;
    struct scope scope;

    real_ops = store->ops;
    counted.find = count_find;
    store->ops = &counted;
    done = (struct work){ 0 };
    scope_init(&scope, &counting, 0);
    EXPECT_EQ(op_authenticate(p, &scope, str_of(bearer), &who), PAWL_UNAUTHENTICATED);
    scope_fini(&scope);
    store->ops = real_ops;
    return done;
}

static void make_token(pawl *p, char out[128])
{
    char *answer = NULL;
    const char *found;

    EXPECT_OK(pawl_call(p, "token.create", "{\"scopes\":\"read\"}", &answer, NULL));
    found = strstr(answer, "\"token\":\"");
    EXPECT(found != NULL);
    memcpy(out, found + strlen("\"token\":\""), 16 + 1 + 64);
    out[16 + 1 + 64] = 0;
    pawl_free(p, answer);
}

TEST(access, an_unknown_token_id_costs_the_same_work_as_a_known_one)
{
    pawl *p = NULL;
    char token[128];
    struct work known, unknown;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, NULL));
    make_token(p, token);
    token[20] = token[20] == '0' ? '1' : '0'; /* of the secret */
    known = refuse(p, token);
    EXPECT_EQ(known.kept_reads, 1);
    EXPECT_EQ(known.record_reads, 1);
    memcpy(token, "0000000000000000", 16);
    unknown = refuse(p, token);
    EXPECT_EQ(unknown.kept_reads, known.kept_reads);
    EXPECT_EQ(unknown.record_reads, known.record_reads);
    EXPECT_EQ(unknown.allocations, known.allocations);
    pawl_close(p);
}

TEST(access, an_empty_expiry_of_a_token_is_refused_as_the_schema_says)
{
    pawl *p = NULL;
    char *answer = NULL;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, NULL));
    EXPECT_EQ(pawl_call(p, "token.create", "{\"scopes\":\"read\",\"expires\":\"\"}", &answer, NULL),
              PAWL_INVALID_REQUEST);
    EXPECT_OK(
        pawl_call(p, "token.create", "{\"scopes\":\"read\",\"expires\":null}", &answer, NULL));
    pawl_free(p, answer);
    pawl_close(p);
}

/* ---- Names that are reserved for the engine ---- */

#define MACHINE                                                                                    \
    "{\"states\":[\"a\",\"b\"],\"initial_state\":\"a\",\"terminal_states\":[\"b\"],"               \
    "\"transitions\":[{\"from_state\":\"a\",\"action\":\"go\",\"to_state\":\"b\"}]}"
#define CREATE_AS(actor) "{\"declaration\":" MACHINE ",\"actor_ref\":\"" actor "\"}"

static void expect_refused(pawl *p, const char *operation, const char *input, const char *part)
{
    pawl_error error = { 0 };
    char *answer = NULL;

    EXPECT_EQ(pawl_call(p, operation, input, &answer, &error), PAWL_INVALID_REQUEST);
    EXPECT_HAS(error.message, part);
    pawl_free(p, answer);
}

static void expect_answer(pawl *p, const char *operation, const char *input, const char *part)
{
    pawl_error error = { 0 };
    char *answer = NULL;

    EXPECT_OK(pawl_call(p, operation, input, &answer, &error));
    EXPECT_HAS(answer, part);
    pawl_free(p, answer);
}

TEST(access, an_alarm_with_an_actor_of_the_engines_own_is_refused_when_it_is_set)
{
    pawl *p = NULL;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .test_clock = true }, NULL));
    expect_refused(p, "alarm.set",
                   "{\"after\":\"1s\",\"operation\":\"instance.create\",\"input\":" CREATE_AS(
                       "pawl/al") "}",
                   "reserved");
    expect_refused(p, "alarm.set",
                   "{\"after\":\"1s\",\"operation\":\"alarm.set\",\"input\":{\"after\":\"1s\","
                   "\"operation\":\"instance.create\",\"input\":" CREATE_AS("pawl/al") "}}",
                   "reserved");
    pawl_close(p);
}

/* As an older version recorded it: no caller can set such an alarm today. */
TEST(access, an_alarm_that_was_recorded_with_a_reserved_actor_is_carried_out)
{
    static const char payload[] =
        "{\"operation\":\"instance.create\",\"input\":" CREATE_AS("pawl/al") "}";
    char id[STANDING_ID_SIZE + 1];
    struct scope scope;
    pawl *p = NULL;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .test_clock = true }, NULL));
    scope_init(&scope, &heap_libc, 0);
    EXPECT_OK(engine_keep(p->engine, &scope,
                          &(struct keep_args){ .what = CONTROL_ALARM,
                                               .due_at_ms = engine_now_ms(p->engine) + 1000,
                                               .payload = str_of(payload) },
                          id));
    scope_fini(&scope);
    expect_answer(p, "test.advance", "{\"by\":\"1h\"}", "");
    expect_answer(p, "instance.list", "{}", "\"created_by\":\"pawl/al\"");
    expect_refused(p, "instance.create", CREATE_AS("pawl/al"), "reserved");
    pawl_close(p);
}

TEST(access, a_token_that_was_recorded_with_a_reserved_actor_keeps_working)
{
    struct op_request request = { .who = { STR("old"), STR("read,write"), STR("pawl/tok") } };
    struct scope scope;
    pawl *p = NULL;

    EXPECT_OK(pawl_open(&p, "memory:", NULL, NULL));
    scope_init(&scope, &heap_libc, 0);
    EXPECT_OK(op_authorize(p, &scope, op_find(STR("instance.list")), &request));
    EXPECT_OK(op_authorize(p, &scope, op_find(STR("instance.create")), &request));
    EXPECT_EQ(op_authorize(p, &scope, op_find(STR("token.list")), &request), PAWL_FORBIDDEN);
    scope_fini(&scope);
    expect_refused(p, "token.create", "{\"scopes\":\"read\",\"actor\":\"pawl/tok\"}", "reserved");
    pawl_close(p);
}

TEST(access, an_optional_time_of_white_space_counts_as_not_supplied)
{
    pawl *p = NULL;

    EXPECT_OK(pawl_open(&p, "memory:", &(pawl_options){ .test_clock = true }, NULL));
    expect_answer(p, "alarm.set",
                  "{\"at\":\"  \",\"after\":\"300h\",\"operation\":\"instance.create\",\"input\":"
                  "{\"declaration\":" MACHINE "}}",
                  "alarm_id");
    expect_refused(p, "alarm.set",
                   "{\"at\":\" \",\"operation\":\"instance.create\",\"input\":{}}", "neither");
    expect_answer(p, "instance.list",
                  "{\"created_after\":\" \",\"created_before\":\"\\t\",\"ended_after\":\" \"}",
                  "instances");
    pawl_close(p);
}
