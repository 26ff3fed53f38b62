/* ops_counts.c - instance.counts: how many instances are in each state and status.
 *
 * `definition` is a filter, as it is for instance.list: an unknown one matches nothing,
 * which is no error. States and statuses without an instance are left out. */
#include "api/ops_int.h"
#include "api/shards.h"
#include <stdlib.h>

static int compare_states(const void *a, const void *b)
{
    const struct state_count *left = a, *right = b;

    return str_compare(left->state, right->state);
}

/* States of the same name are one, whichever definition they belong to. */
static void print_states(struct counts *counts, struct buf *out)
{
    uint32_t next;

    if (counts->state_count > 0)
        qsort(counts->states, counts->state_count, sizeof *counts->states, compare_states);
    json_put_open(out, "by_state", '{');
    for (uint32_t i = 0; i < counts->state_count; i = next) {
        uint64_t total = 0;

        for (next = i; next < counts->state_count &&
                       str_eq(counts->states[next].state, counts->states[i].state);
             next++)
            total += counts->states[next].total;
        json_key_str(out, counts->states[i].state);
        json_u64(out, total);
    }
    json_close(out, '}');
}

pawl_status op_instance_counts(struct op_call *call, struct buf *out)
{
    struct counts counts;
    str name = STR_NONE;
    uint32_t version = 0;

    TRY(query_check(call, false));
    TRY(query_definition(call, &name, &version));
    TRY(shards_counts(call->p, call->scope, name, version, &counts));
    print_states(&counts, out);
    json_put_open(out, "by_status", '{');
    for (int i = STATUS_RUNNING; i < STATUS_COUNT; i++)
        json_opt_u64(out, instance_status_name((enum instance_status)i), counts.by_status[i]);
    json_close(out, '}');
    json_put_u64(out, "total", counts.total);
    json_opt_u64(out, "without_kind", counts.without_kind);
    return PAWL_OK;
}
