/* ops_find.c - instance.find: which instance is meant by the beginning of an id. An id begins with
 * the instance's number, so a beginning is a range of numbers: two rows at most are looked at. */
#include "api/ops_int.h"

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

/* The newest ones of the range: the second, if there is one, is too many. */
static pawl_status find(const struct op_call *call, str prefix, uint64_t low, uint64_t high,
                        char out[ID_SIZE + 1])
{
    struct list_query query = { .after = high + 1, .limit = 2 };
    uint64_t *numbers = NULL;
    uint32_t count = 0;
    char second[ID_SIZE + 1];

    TRY(engine_list(op_engine(call), call->scope, &query, &numbers, &count));
    if (count == 0 || numbers[0] < low)
        return unknown(call, prefix);
    TRY(engine_id_of(op_engine(call), call->scope, numbers[0], out));
    if (count == 2 && numbers[1] >= low) {
        TRY(engine_id_of(op_engine(call), call->scope, numbers[1], second));
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
    uint64_t *numbers;
    uint32_t count = 0;

    if (prefix.data && (prefix.size > ID_SIZE || !read_range(prefix, &low, &high)))
        return unknown(call, prefix);
    if (prefix.data) {
        TRY(find(call, prefix, low, high, id));
    } else {
        TRY(engine_list(op_engine(call), call->scope, &(struct list_query){ .limit = 1 }, &numbers,
                        &count));
        if (count == 0)
            return scope_fail(call->scope, PAWL_NOT_KNOWN, "there is no instance yet");
        TRY(engine_id_of(op_engine(call), call->scope, numbers[0], id));
    }
    TRY(store_tip(engine_store(op_engine(call)), call->scope, &tip));
    json_put_text(out, "instance_id", id);
    /* The same by whatever address the store is called, and for a copy of its file. */
    json_put_hex(out, "store_id", tip.store_id, STORE_ID_SIZE);
    return PAWL_OK;
}
