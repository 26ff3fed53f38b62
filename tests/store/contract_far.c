/* contract_far.c - what a store that is far away, or one of several shards, needs: expectations,
 * commits that answer IN_USE, and numbers with a stride. */
#include "contract.h"
#include "model/live_rows.h"

/* ---- expect ---- */

struct seen {
    struct head_row head;
    struct instance_row row;
    struct record record;
    struct live live;
    struct value value;
    pawl_status of_key, of_text, of_name;
};

static struct seen look(struct stand *s)
{
    static const uint8_t key[KEY_ID_SIZE] = { 9 };
    struct seen seen = { 0 };
    struct definition_row definition;
    struct key_row known;
    struct value text;

    EXPECT_OK(store_head(s->store, s->scope, 1, false, &seen.head));
    EXPECT_OK(store_instance(s->store, s->scope, 1, &seen.row));
    EXPECT_OK(store_record(s->store, s->scope, seen.head.pos, &seen.record));
    EXPECT_OK(store_live(s->store, s->scope, 1, &seen.live));
    EXPECT_OK(store_value(s->store, s->scope, 1, &seen.value));
    seen.of_key = store_key(s->store, s->scope, key, &known);
    seen.of_text = store_find_value(s->store, s->scope, STR("nobody wrote this"), &text);
    seen.of_name =
        store_find_definition(s->store, s->scope, STR("no such name"), 0, NULL, &definition);
    return seen;
}

static void expect_all(struct stand *s)
{
    static const uint64_t instances[] = { 1, 2, 77 }, values[] = { 1, 99 };
    static const uint8_t keys[][KEY_ID_SIZE] = { { 9 }, { 1 } };
    const str texts[] = { STR("nobody wrote this") },
              names[] = { STR("order"), STR("no such name") };
    const struct expectation all = {
        .instances = instances,
        .instance_count = 3,
        .rows = EXPECT_HEADS | EXPECT_ROWS | EXPECT_RECORDS | EXPECT_VALUES | EXPECT_LIVE,
        .keys = keys,
        .key_count = 2,
        .texts = texts,
        .text_count = 1,
        .definitions = names,
        .definition_count = 2,
        .values = values,
        .value_count = 2,
    };

    EXPECT_OK(store_expect(s->store, s->scope, &all));
}

static void expect_same(const struct seen *before, const struct seen *after)
{
    EXPECT(before->head.pos == after->head.pos && before->head.seq == after->head.seq);
    EXPECT(before->row.created_pos == after->row.created_pos);
    EXPECT(memcmp(before->record.hash, after->record.hash, SHA_SIZE) == 0);
    EXPECT_EQ(before->live.step_count, after->live.step_count);
    EXPECT(same_bytes(before->value.bytes, after->value.bytes));
    EXPECT(before->of_key == after->of_key && before->of_text == after->of_text);
    EXPECT_EQ(before->of_name, after->of_name);
}

static void put_work(struct stand *s)
{
    struct change c;

    put_orders(s, 2);
    c = change_begin(s);
    add_value(&c, STR("\"a value\""), false);
    add_step(&c, 1, 1, STEP_READY);
    EXPECT_OK(change_commit(&c));
}

/* Contract (13) */
STORE_TEST(nothing_that_is_read_differs_because_it_was_expected)
{
    struct seen before, after;

    put_work(s);
    before = look(s);
    expect_all(s);
    after = look(s);
    expect_same(&before, &after);
    expect_all(s);
    expect_all(s);
    after = look(s);
    expect_same(&before, &after);
}

/* Contracts (13) and (4): an expectation is not a copy that grows old. */
STORE_TEST(what_was_expected_is_read_as_it_was_committed_since)
{
    struct store *other;
    struct change c;
    struct seen before, after;

    put_work(s);
    before = look(s);
    expect_all(s);
    other = stand_another(s);
    c = change_by(s, other);
    add_entry(&c, 1, before.head.seq + 1, 0, 1);
    add_step(&c, 1, 2, STEP_READY);
    EXPECT_OK(change_commit(&c));
    store_close(other);
    after = look(s);
    EXPECT_EQ(after.head.pos, tip_of(s).pos);
    EXPECT_EQ(after.live.step_count, 2);
}

/* ---- IN_USE ---- */

static const struct store_ops *real_ops;
static uint32_t reopened;

static pawl_status commit_taken(struct store *store, struct scope *scope,
                                const struct commit *commit)
{
    (void)commit;
    real_ops->rollback(store);
    return scope_fail(scope, PAWL_IN_USE, "node 2 has claimed this shard");
}

static pawl_status count_reopen(struct store *store, struct scope *scope)
{
    reopened++;
    return real_ops->reopen(store, scope);
}

/* Contract (14) */
STORE_TEST(after_a_commit_that_answered_in_use_the_handle_is_over)
{
    struct store_ops taken = *s->store->ops;
    struct store_tip before, tip;
    struct change c;

    put_orders(s, 1);
    before = tip_of(s);
    real_ops = s->store->ops;
    taken.commit = commit_taken;
    taken.reopen = count_reopen;
    s->store->ops = &taken;
    c = change_begin(s);
    add_entry(&c, 1, 1, 0, 1);
    EXPECT_EQ(change_commit(&c), PAWL_IN_USE);
    s->store->ops = real_ops;
    EXPECT(store_trouble(s->store) == TROUBLE_TAKEN);
    EXPECT_EQ(store_begin(s->store, s->scope, &tip), PAWL_IN_USE);
    EXPECT_EQ(store_reopen(s->store, s->scope), PAWL_IN_USE);
    EXPECT_EQ(reopened, 0);
    EXPECT_EQ(tip_of(s).pos, before.pos);
    stand_reopen(s);
    EXPECT_EQ(tip_of(s).pos, before.pos);
    c = change_begin(s);
    add_entry(&c, 1, 1, 0, 1);
    EXPECT_OK(change_commit(&c));
}

/* ---- Numbers ---- */

STORE_TEST(numbers_of_instances_go_on_one_by_one_where_there_are_no_shards)
{
    struct store_tip tip = tip_of(s);

    EXPECT(tip.stride == 1 && tip.offset == 0);
    EXPECT_EQ(tip_new_instance(&tip, 0), 1);
    put_orders(s, 3);
    tip = tip_of(s);
    EXPECT_EQ(tip_new_instance(&tip, 0), 4);
    EXPECT_EQ(tip_new_instance(&tip, 2), 6);
}

TEST(store_tip, numbers_of_a_shard_are_its_offset_modulo_the_stride)
{
    struct store_tip tip = { .stride = 64, .offset = 17 };

    (void)t;
    EXPECT_EQ(tip_new_instance(&tip, 0), 17);
    EXPECT_EQ(tip_new_instance(&tip, 2), 17 + 128);
    tip.last_instance = 17;
    EXPECT_EQ(tip_new_instance(&tip, 0), 17 + 64);
    tip.offset = 0;
    EXPECT_EQ(tip_new_instance(&tip, 0), 64);
}
