/* contract_bytes.c - the promises of store/store.h about what comes back byte for byte. */
#include "store/contract.h"

/* ---- (8) and (11): bytes ---- */

/* Contract (8) */
STORE_TEST(an_interned_value_is_found_by_its_exact_bytes)
{
    const str found[] = { STR("ann"), STR("Ann"), STR("ann\0"), STR("ann "), STR("\xc3\xa4") };
    struct change c = change_begin(s);
    struct value value;

    for (size_t i = 0; i < 5; i++)
        add_value(&c, found[i], true);
    add_value(&c, STR("payload"), false);
    EXPECT_OK(change_commit(&c));
    for (size_t i = 0; i < 5; i++) {
        EXPECT_OK(store_find_value(s->store, s->scope, found[i], &value));
        EXPECT(value.id == i + 1 && value.interned && same_bytes(value.bytes, found[i]));
    }
    EXPECT_EQ(store_find_value(s->store, s->scope, STR("an"), &value), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_find_value(s->store, s->scope, STR("payload"), &value), PAWL_NOT_KNOWN);
}

STORE_TEST(an_erased_value_keeps_its_commitment_and_nothing_else)
{
    struct change c = change_begin(s);
    const uint8_t zeros[SALT_SIZE] = { 0 };
    struct value erased = *add_value(&c, STR("ann"), true), value;

    add_value(&c, STR("bob"), true);
    EXPECT_OK(change_commit(&c));
    c = change_begin(s);
    erased.bytes = STR_NONE;
    *add_value(&c, STR_NONE, false) = erased;
    add_value(&c, STR("ann"), true)->id = 3; /* somebody new of the same name */
    EXPECT_OK(change_commit(&c));
    stand_reopen(s);
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    EXPECT(!value.bytes.data && memcmp(value.salt, zeros, SALT_SIZE) == 0);
    EXPECT(memcmp(value.commitment, erased.commitment, SHA_SIZE) == 0);
    EXPECT_OK(store_find_value(s->store, s->scope, STR("ann"), &value));
    EXPECT_EQ(value.id, 3);
    EXPECT_EQ(tip_of(s).last_value, 3);
}

/* An instance with labels, and three records: one without a body stands before one with. */
static void put_private(struct stand *s)
{
    struct change c = change_begin(s);
    struct instance_row *row;

    add_definition(&c, STR("order"), 1, STR("name: order\n"));
    add_value(&c, STR("payload"), false);
    row = add_instance(&c, 1);
    row->correlation = STR("c-1"), row->labels = STR("{\"who\":\"ann\"}"), row->input = 1;
    add_entry(&c, 1, 1, 0, PAID)->body = STR("[[\"state\",{\"who\":\"ann\"}]]");
    add_entry(&c, 1, 2, 1, SHIPPED)->payload = 1;
    c.heads[0] = (struct head_row){ 1, 2, c.tip.pos, SHIPPED };
    c.count[4] = 1;
    add_snapshot(&c, 1, 1, STR("{\"who\":\"ann\"}"));
    EXPECT_OK(change_commit(&c));
}

/* Contract (16) */
STORE_TEST(what_a_commit_erases_is_not_read_again_and_the_rest_of_its_records_stays)
{
    const struct redaction bodies[] = { { 1, RECORD_ERASED, STR_NONE },
                                        { 2, RECORD_ERASED, STR("[[\"state\",{}]]") } };
    const struct instance_row cleared = { .number = 1, .labels = STR("{\"who\":\"ann\"}") };
    struct list_query by_label = {
        .limit = 9, .label_key = { STR("who") }, .label_value = { STR("ann") }, .label_count = 1
    };
    struct value value, gone = { .id = 1 };
    struct snapshot_row snapshot;
    struct instance_row row;
    struct record record;
    struct store_tip tip;
    uint64_t *found;
    uint32_t count;

    put_private(s);
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    memcpy(gone.commitment, value.commitment, SHA_SIZE);
    EXPECT_OK(store_begin(s->store, s->scope, &tip));
    EXPECT_OK(store_commit(s->store, s->scope,
                           &(struct commit){ .erasures = &gone,
                                             .erasure_count = 1,
                                             .redactions = bodies,
                                             .redaction_count = 2,
                                             .cleared = &cleared,
                                             .cleared_count = 1 }));
    EXPECT_OK(store_scrub(s->store, s->scope));
    stand_reopen(s);
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    EXPECT(!value.bytes.data && memcmp(value.commitment, gone.commitment, SHA_SIZE) == 0);
    EXPECT_OK(store_instance(s->store, s->scope, 1, &row));
    EXPECT(!row.correlation.data && !row.labels.data && row.input == 1);
    EXPECT_OK(store_list(s->store, s->scope, &by_label, &found, &count));
    EXPECT_EQ(count, 0);
    EXPECT_EQ(store_snapshot(s->store, s->scope, 1, &snapshot), PAWL_NOT_KNOWN);
    EXPECT_OK(store_record(s->store, s->scope, 1, &record));
    EXPECT(record.flags == RECORD_ERASED && !record.body.data);
    EXPECT_OK(store_record(s->store, s->scope, 2, &record));
    EXPECT(record.flags == RECORD_ERASED && str_is(record.body, "[[\"state\",{}]]"));
    EXPECT(record.hash[0] == 2 && record.seq == 1);
    EXPECT_OK(store_record(s->store, s->scope, 3, &record));
    EXPECT(record.flags == 0 && !record.body.data && record.payload == 1);
}

/* Contract (11) */
STORE_TEST(bytes_come_back_as_they_went_in)
{
    const str odd = STR("a\0b\xff\xfe\"'\n\0");
    struct change c = change_begin(s);
    struct definition_row definition;
    struct instance_row row;
    struct snapshot_row snapshot;
    struct record record;
    struct value value;

    add_definition(&c, STR("order"), 1, odd);
    add_value(&c, odd, false);
    add_value(&c, STR(""), false);
    add_value(&c, STR_NONE, false);
    add_instance(&c, 1)->labels = odd;
    c.instances[0].correlation = odd;
    add_entry(&c, 1, 1, 0, PAID)->body = odd;
    c.records[1].key = odd;
    add_snapshot(&c, 1, 1, odd);
    EXPECT_OK(change_commit(&c));
    stand_reopen(s);
    EXPECT_OK(store_definition(s->store, s->scope, 1, &definition));
    EXPECT(same_bytes(definition.source, odd) && same_bytes(definition.compiled, STR(COMPILED)));
    EXPECT(memcmp(definition.source_sha, c.definitions[0].source_sha, SHA_SIZE) == 0);
    EXPECT_OK(store_value(s->store, s->scope, 1, &value));
    EXPECT(same_bytes(value.bytes, odd) && memcmp(value.salt, c.values[0].salt, SALT_SIZE) == 0);
    EXPECT(memcmp(value.commitment, c.values[0].commitment, SHA_SIZE) == 0);
    EXPECT_OK(store_value(s->store, s->scope, 2, &value));
    EXPECT(same_bytes(value.bytes, STR(""))); /* empty is not absent */
    EXPECT_OK(store_value(s->store, s->scope, 3, &value));
    EXPECT(!value.bytes.data);
    EXPECT_OK(store_instance(s->store, s->scope, 1, &row));
    EXPECT(same_bytes(row.labels, odd) && same_bytes(row.correlation, odd));
    EXPECT(memcmp(row.random, c.instances[0].random, ID_RANDOM_SIZE) == 0);
    EXPECT_OK(store_record(s->store, s->scope, 2, &record));
    EXPECT(same_bytes(record.body, odd) && same_bytes(record.key, odd));
    EXPECT(memcmp(record.hash, c.records[1].hash, SHA_SIZE) == 0);
    EXPECT_OK(store_snapshot(s->store, s->scope, 1, &snapshot));
    EXPECT(same_bytes(snapshot.text, odd));
}

/* Contract (11): every column of a record, and what is absent stays absent. */
STORE_TEST(a_record_comes_back_field_by_field)
{
    struct change c = change_begin(s);
    struct record in, out;

    add_definition(&c, STR("order"), 1, STR("a"));
    add_instance(&c, 1);
    for (int i = 0; i < 3; i++)
        add_value(&c, STR("v"), false);
    in = *add_entry(&c, 1, 1, 0, PAID);
    in.prev = 1, in.skip = 1, in.flags = RECORD_GUARD, in.fired_at_ms = -5;
    in.step = 2, in.ordinal = 3, in.attempt = 4, in.actor = 1, in.payload = 2, in.reason = 3;
    c.records[1] = in;
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_record(s->store, s->scope, 2, &out));
    EXPECT(out.pos == 2 && out.instance == 1 && out.seq == 1 && out.prev == 1 && out.skip == 1);
    EXPECT(out.what == 0 && out.flags == RECORD_GUARD && out.at_ms == in.at_ms);
    EXPECT(out.fired_at_ms == -5 && out.step == 2 && out.ordinal == 3 && out.attempt == 4);
    EXPECT(out.actor == 1 && out.payload == 2 && out.reason == 3 && out.has_root);
    EXPECT(!out.body.data && !out.key.data);
    EXPECT_OK(store_record(s->store, s->scope, 1, &out));
    EXPECT(out.what == CONTROL_CREATE && out.prev == 0 && out.actor == 0 && !out.has_root);
    EXPECT_EQ(out.fired_at_ms, out.at_ms);
}

struct scanning {
    struct stand *stand;
    uint64_t next, stop_at;
};

static pawl_status see_record(void *context, const struct record *record)
{
    struct scanning *scanning = context;
    struct head_row head;

    EXPECT_EQ(record->pos, scanning->next++);
    EXPECT_OK(store_head(scanning->stand->store, scanning->stand->scope, 1, false, &head));
    return record->pos == scanning->stop_at ? PAWL_PAUSED : PAWL_OK;
}

STORE_TEST(a_scan_goes_in_order_from_any_position_until_it_is_told_to_stop)
{
    struct scanning scanning = { .stand = s, .next = 1 };

    put_orders(s, 30);
    EXPECT_OK(store_scan(s->store, s->scope, 1, see_record, &scanning));
    EXPECT_EQ(scanning.next, 31);
    scanning.next = 10;
    scanning.stop_at = 20;
    EXPECT_EQ(store_scan(s->store, s->scope, 10, see_record, &scanning), PAWL_PAUSED);
    EXPECT_EQ(scanning.next, 21);
    EXPECT_OK(store_scan(s->store, s->scope, 31, see_record, &scanning));
}

/* ---- Definitions ---- */

STORE_TEST(definitions_are_found_by_name_newest_first_and_inline_by_source)
{
    struct change c = change_begin(s);
    struct definition_row row;
    uint8_t sha[SHA_SIZE];

    add_definition(&c, STR("order"), 1, STR("one"));
    add_definition(&c, STR("order"), 2, STR("two"));
    add_definition(&c, STR_NONE, 0, STR("inline"));
    add_definition(&c, STR("ord"), 1, STR("one")); /* the same text, another name */
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_find_definition(s->store, s->scope, STR("order"), 0, NULL, &row));
    EXPECT(row.id == 2 && row.version == 2);
    EXPECT_STR(row.source, "two");
    EXPECT_OK(store_find_definition(s->store, s->scope, STR("order"), 1, NULL, &row));
    EXPECT_EQ(row.id, 1);
    EXPECT_EQ(store_find_definition(s->store, s->scope, STR("order"), 3, NULL, &row),
              PAWL_NOT_KNOWN);
    EXPECT_EQ(store_find_definition(s->store, s->scope, STR("orde"), 0, NULL, &row),
              PAWL_NOT_KNOWN);
    hash_text(STR("inline"), sha);
    EXPECT_OK(store_find_definition(s->store, s->scope, STR_NONE, 0, sha, &row));
    EXPECT(row.id == 3 && !row.name.data && row.version == 0 && row.kind == KIND_MACHINE);
    hash_text(STR("one"), sha);
    EXPECT_EQ(store_find_definition(s->store, s->scope, STR_NONE, 0, sha, &row), PAWL_NOT_KNOWN);
}

STORE_TEST(definitions_lists_each_name_once_with_its_newest_version)
{
    struct change c = change_begin(s);
    struct definition_row *rows;
    uint32_t count;

    add_definition(&c, STR("b"), 1, STR("1"));
    add_definition(&c, STR("a/x"), 1, STR("2"));
    add_definition(&c, STR("b"), 2, STR("3"));
    add_definition(&c, STR_NONE, 0, STR("4"));
    add_definition(&c, STR("Z"), 1, STR("5"));
    EXPECT_OK(change_commit(&c));
    EXPECT_OK(store_definitions(s->store, s->scope, STR_NONE, 2, &rows, &count));
    EXPECT_EQ(count, 2);
    EXPECT_STR(rows[0].name, "Z");
    EXPECT_STR(rows[1].name, "a/x");
    EXPECT_OK(store_definitions(s->store, s->scope, STR("a/x"), 2, &rows, &count));
    EXPECT(count == 1 && rows[0].version == 2 && rows[0].id == 3);
    EXPECT_STR(rows[0].name, "b");
}

/* ---- the log of an instance ---- */

/* Instance 1 with `count` entries, the n-th of which has the payload "n"; its input is value 1. */
static void make_log(struct stand *s, uint64_t count, uint64_t snapshot_seq)
{
    struct change c = change_begin(s);
    uint64_t prev;

    add_definition(&c, STR("order"), 1, STR("x"));
    add_value(&c, STR("the input"), false);
    add_value(&c, STR("ann"), true);
    add_instance(&c, 1)->input = 1;
    c.instances[0].creator = 2;
    prev = c.records[0].pos;
    for (uint64_t n = 1; n <= count; n++) {
        char text[24];
        struct record *record;

        snprintf(text, sizeof text, "%llu", (unsigned long long)n);
        add_value(&c, arena_str(&s->scope->arena, str_of(text)), false);
        record = add_entry(&c, 1, n, 0, PAID);
        record->payload = 2 + n;
        record->prev = prev;
        prev = record->pos;
    }
    if (snapshot_seq)
        add_snapshot(&c, 1, snapshot_seq, STR("{}"));
    EXPECT_OK(change_commit(&c));
}

static void expect_log(uint64_t last, uint64_t first, uint32_t count, bool has_snapshot,
                       const struct instance_log *log)
{
    EXPECT(same_bytes(log->input, STR("the input")) && same_bytes(log->creator, STR("ann")));
    EXPECT_EQ(log->head.seq, last);
    EXPECT_EQ(log->record_count, count);
    EXPECT_EQ(log->snapshot.text.data != NULL, has_snapshot);
    for (uint32_t i = 0; i < count; i++) {
        char text[24];

        EXPECT_EQ(log->records[i].record.seq, last - i);
        snprintf(text, sizeof text, "%llu", (unsigned long long)(last - i));
        EXPECT(same_bytes(log->records[i].payload, str_of(text)));
    }
    EXPECT_EQ(log->records[count - 1].record.seq, first);
}

static pawl_status read_log(struct stand *s, uint64_t instance, bool trust_rows,
                            struct instance_log *out)
{
    struct instance_log_query query = { .instance = instance,
                                        .trust_rows = trust_rows,
                                        .out = out };

    return store_instance_logs(s->store, s->scope, &query, 1);
}

STORE_TEST(the_log_of_an_instance_is_all_of_it_where_there_is_no_snapshot)
{
    struct instance_log log;

    make_log(s, 20, 0);
    EXPECT_OK(read_log(s, 1, false, &log));
    expect_log(20, 1, 20, false, &log);
    EXPECT_EQ(log.instance.number, 1);
    EXPECT_EQ(read_log(s, 2, false, &log), PAWL_NOT_KNOWN);
}

STORE_TEST(the_log_of_an_instance_goes_back_to_the_entry_of_its_snapshot)
{
    struct instance_log log;

    make_log(s, 20, 15);
    EXPECT_OK(read_log(s, 1, true, &log));
    expect_log(20, 15, 6, true, &log);
    EXPECT_EQ(log.snapshot.seq, 15);
}

STORE_TEST(a_short_log_is_read_without_its_snapshot)
{
    struct instance_log log;

    make_log(s, INSTANCE_LOG_SHORT, 3);
    EXPECT_OK(read_log(s, 1, false, &log));
    expect_log(INSTANCE_LOG_SHORT, 1, INSTANCE_LOG_SHORT, false, &log);
}

STORE_TEST(a_log_begins_where_the_caller_knows_the_instance_to_stand)
{
    struct instance_log log;
    struct instance_log_query query = { .instance = 1, .is_known = true, .out = &log };
    struct record tenth;

    make_log(s, 20, 15);
    EXPECT_OK(read_log(s, 1, false, &log));
    tenth = log.records[0].record;
    while (tenth.seq > 10)
        EXPECT_OK(store_record(s->store, s->scope, tenth.prev, &tenth));
    query.head = (struct head_row){ .instance = 1, .seq = 10, .pos = tenth.pos };
    EXPECT_OK(store_instance_logs(s->store, s->scope, &query, 1));
    EXPECT_EQ(log.record_count, 1); /* the snapshot is newer: whoever asks sees that it is */
    EXPECT(log.records[0].record.seq == 10 && log.snapshot.seq == 15);
}

STORE_TEST(several_logs_are_read_until_one_is_not_there)
{
    struct instance_log logs[4];
    struct instance_log_query queries[4];
    const uint64_t instances[] = { 1, 1, 2, 1 };

    make_log(s, 3, 0);
    for (int i = 0; i < 4; i++)
        queries[i] = (struct instance_log_query){ .instance = instances[i], .out = &logs[i] };
    EXPECT_EQ(store_instance_logs(s->store, s->scope, queries, 4), PAWL_NOT_KNOWN);
    EXPECT(queries[0].is_read && queries[1].is_read && !queries[2].is_read && !queries[3].is_read);
    expect_log(3, 1, 3, false, &logs[0]);
    expect_log(3, 1, 3, false, &logs[1]);
}

/* So that nobody waits for the store for long, and no memory is taken for what may not be used. */
STORE_TEST(no_more_logs_are_read_at_one_go_than_a_few_megabytes)
{
    struct instance_log logs[8];
    struct instance_log_query queries[8];
    char *text = calloc(1, INSTANCE_LOG_BYTES / 3);
    struct change c;

    EXPECT(text);
    memset(text, 'x', INSTANCE_LOG_BYTES / 3 - 1);
    make_log(s, 3, 0);
    c = change_begin(s);
    add_value(&c, str_of(text), false)->id = 6;
    add_entry(&c, 1, 4, 0, PAID)->payload = 6;
    c.records[0].prev = 4;
    EXPECT_OK(change_commit(&c));
    for (int i = 0; i < 8; i++)
        queries[i] = (struct instance_log_query){ .instance = 1, .out = &logs[i] };
    EXPECT_OK(store_instance_logs(s->store, s->scope, queries, 8));
    EXPECT(queries[0].is_read && queries[1].is_read && !queries[7].is_read);
    free(text);
}

/* A number that is larger than any can be is not there, whatever it is a number of. */
STORE_TEST(what_has_too_large_a_number_is_not_known)
{
    const uint64_t huge = UINT64_MAX;
    struct record records[1];
    uint32_t count;

    put_orders(s, 1);
    EXPECT_EQ(store_head(s->store, s->scope, huge, false, &(struct head_row){ 0 }), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_head(s->store, s->scope, huge, true, &(struct head_row){ 0 }), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_instance(s->store, s->scope, huge, &(struct instance_row){ 0 }),
              PAWL_NOT_KNOWN);
    EXPECT_EQ(store_record(s->store, s->scope, huge, &(struct record){ 0 }), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_value(s->store, s->scope, huge, &(struct value){ 0 }), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_snapshot(s->store, s->scope, huge, &(struct snapshot_row){ 0 }),
              PAWL_NOT_KNOWN);
    EXPECT_EQ(store_records(s->store, s->scope, &huge, 1, records, &count), PAWL_NOT_KNOWN);
    EXPECT_EQ(store_records_of(s->store, s->scope, &(struct chain_query){ .pos = huge }, records, 1,
                               &count),
              PAWL_NOT_KNOWN);
}
