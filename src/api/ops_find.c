/* ops_find.c - instance.find: which instance is meant by the beginning of an id. An id begins with
 * the instance's number, so a beginning is a range of numbers: two rows at most are looked at. */
#include "api/ops_int.h"
#include "api/shards.h"

static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

#define NUMBER_SIZE 10 /* characters; the rest of an id is random */
#define DIGIT_BITS  5

/* The numbers of ids that begin so, the random part left aside. False: no id does. */
static bool read_range(str prefix, uint64_t *low, uint64_t *high)
{
    uint64_t number = 0;

    for (size_t i = 0; i < NUMBER_SIZE; i++) {
        const char *digit =
            i < prefix.size && prefix.data[i] ? strchr(digits, prefix.data[i]) : digits;

        if (!digit)
            return false;
        number = number << DIGIT_BITS | (uint64_t)(digit - digits);
    }
    *low = number;
    *high = number;
    if (prefix.size < NUMBER_SIZE)
        *high += ((uint64_t)1 << DIGIT_BITS * (NUMBER_SIZE - prefix.size)) - 1;
    return true;
}

static pawl_status unknown(const struct op_call *call, str prefix)
{
    return scope_fail(call->scope, PAWL_NOT_KNOWN, "no instance's id begins with '%.*s'",
                      STR_ARG(prefix));
}

/* The newest below `after`, of all shards. */
struct newest {
    uint64_t numbers[2];
    uint32_t count;
};

static pawl_status find_newest(const struct op_call *call, uint64_t after, uint32_t limit,
                               struct newest *out)
{
    struct list_query query = { .after = after, .limit = limit };
    uint64_t *numbers = NULL;
    uint32_t count = 0;

    *out = (struct newest){ .count = 0 };
    for (uint32_t s = 0; s < shards_count(call->p); s++) {
        TRY(engine_list(shard_at(call->p, s)->engine, call->scope, &query, &numbers, &count));
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = out->count > 0 && numbers[i] < out->numbers[0] ? 1 : 0;

            if (at == 1 && out->count == 2 && numbers[i] < out->numbers[1])
                continue;
            if (at == 0)
                out->numbers[1] = out->numbers[0];
            out->numbers[at] = numbers[i];
            out->count = out->count < 2 ? out->count + 1 : 2;
        }
    }
    return PAWL_OK;
}

static pawl_status print_id(const struct op_call *call, uint64_t number, char out[ID_SIZE + 1])
{
    return engine_id_of(shard_of_instance(call->p, number)->engine, call->scope, number, out);
}

/* The newest ones of the range: the second, if there is one, is too many. */
static pawl_status find(const struct op_call *call, str prefix, uint64_t low, uint64_t high,
                        char out[ID_SIZE + 1])
{
    struct newest newest;
    char second[ID_SIZE + 1];

    TRY(find_newest(call, high + 1, 2, &newest));
    if (newest.count == 0 || newest.numbers[0] < low)
        return unknown(call, prefix);
    TRY(print_id(call, newest.numbers[0], out));
    if (newest.count == 2 && newest.numbers[1] >= low) {
        TRY(print_id(call, newest.numbers[1], second));
        return scope_fail(call->scope, PAWL_INVALID_REQUEST,
                          "'%.*s' begins more than one id: %s and %s", STR_ARG(prefix), second,
                          out);
    }
    return str_starts(str_of(out), prefix) ? PAWL_OK : unknown(call, prefix);
}

/* Without a prefix: the newest of all. */
pawl_status op_instance_find(struct op_call *call, struct buf *out)
{
    str prefix = op_ref(call, "prefix");
    uint64_t low = 1, high = ID_NUMBER_MAX;
    char id[ID_SIZE + 1] = "";
    struct store_tip tip = { 0 };
    struct newest newest;

    if (prefix.data && (prefix.size > ID_SIZE || !read_range(prefix, &low, &high)))
        return unknown(call, prefix);
    if (prefix.data) {
        TRY(find(call, prefix, low, high, id));
    } else {
        TRY(find_newest(call, 0, 1, &newest));
        if (newest.count == 0)
            return scope_fail(call->scope, PAWL_NOT_KNOWN, "there is no instance yet");
        TRY(print_id(call, newest.numbers[0], id));
    }
    TRY(store_tip(engine_store(op_engine(call)), call->scope, &tip));
    json_put_text(out, "instance_id", id);
    /* The same by whatever address the store is called, and for a copy of its file. */
    json_put_hex(out, "store_id", tip.whole_id, STORE_ID_SIZE);
    return PAWL_OK;
}
