/* ops_erase.c - what an instance holds leaves the store; a subject's instances, and its name; what
 * may not be erased, and what is due. */
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/limits.h"
#include "base/time.h"
#include "engine/keeping.h"

static void add(struct erased *sum, const struct erased *one)
{
    sum->instances += one->instances;
    sum->values += one->values;
    sum->repeated += one->repeated;
    sum->left += one->left;
    sum->is_name_erased |= one->is_name_erased;
    sum->is_left_in_log |= one->is_left_in_log;
}

static void print_erased(const struct erased *erased, bool has_name, struct buf *out)
{
    json_put_u64(out, "erased", erased->instances);
    json_put_u64(out, "erased_before", erased->repeated);
    json_put_u64(out, "values", erased->values);
    json_put_u64(out, "left", erased->left);
    if (has_name)
        json_put_bool(out, "name_erased", erased->is_name_erased && !erased->left);
    json_put_bool(out, "left_in_log", erased->is_left_in_log);
}

pawl_status op_instance_erase(struct op_call *call, struct buf *out)
{
    struct erased erased;

    TRY(engine_erase(op_engine(call), call->scope,
                     &(struct erase_args){ .id = op_text(call, "instance_id"),
                                           .actor = op_ref(call, "actor_ref"),
                                           .reason = op_told(call, "reason"),
                                           .late = op_ref_defect(call, "actor_ref") },
                     &erased));
    print_erased(&erased, false, out);
    return PAWL_OK;
}

pawl_status op_subject_erase(struct op_call *call, struct buf *out)
{
    struct erase_args args = { .subject = op_ref(call, "subject_ref"),
                               .actor = op_ref(call, "actor_ref"),
                               .reason = op_told(call, "reason"),
                               .late = op_ref_defect(call, "actor_ref") };
    const char *defect = op_ref_defect(call, "subject_ref");
    struct erased sum = { 0 }, one;

    if (!defect && !args.subject.data)
        defect = "subject_ref: expected what the instances are about, found nothing";
    TRY(defect_status(call->scope, defect));
    for (uint32_t i = 0; i < shards_count(call->p); i++) {
        if (!op_has_shard(call, i))
            continue;
        TRY(engine_erase(shard_at(call->p, i)->engine, call->scope, &args, &one));
        add(&sum, &one);
    }
    print_erased(&sum, true, out);
    return PAWL_OK;
}

/* ---- holds ---- */

static pawl_status hold(struct op_call *call, bool is_lift, struct buf *out)
{
    bool has_changed;

    TRY(engine_hold(op_engine(call), call->scope,
                    &(struct hold_args){ .id = op_text(call, "instance_id"),
                                         .actor = op_ref(call, "actor_ref"),
                                         .reason = op_told(call, "reason"),
                                         .is_lift = is_lift,
                                         .late = op_ref_defect(call, "actor_ref") },
                    &has_changed));
    json_put_bool(out, "held", !is_lift);
    json_put_bool(out, "changed", has_changed);
    return PAWL_OK;
}

pawl_status op_instance_hold(struct op_call *call, struct buf *out)
{
    return hold(call, false, out);
}

pawl_status op_instance_lift(struct op_call *call, struct buf *out)
{
    return hold(call, true, out);
}

static void print_hold(const struct standing_hold *held, struct buf *out)
{
    json_open(out, '{');
    json_put_str(out, "instance_id", held->id);
    json_put_time(out, "held_at", held->at_ms);
    json_put_str(out, "actor_ref", held->actor);
    json_put_str(out, "reason", held->reason);
    json_close(out, '}');
}

pawl_status op_hold_list(struct op_call *call, struct buf *out)
{
    uint64_t limit = LIMIT_LIST;
    uint32_t printed = 0;
    bool has, is_over = false;

    TRY(query_count(call, "limit", &has, &limit));
    if (limit < 1 || limit > LIMIT_LIST)
        return query_refuse(call, "limit", "1 to 1000");
    json_put_open(out, "holds", '[');
    for (uint32_t s = 0; s < shards_count(call->p); s++) {
        struct standing_hold *held;
        uint32_t count;

        TRY(engine_holds(shard_at(call->p, s)->engine, call->scope, (uint32_t)limit + 1, &held,
                         &count));
        for (uint32_t i = 0; i < count && printed < limit; i++, printed++)
            print_hold(&held[i], out);
        is_over = is_over || count > limit || (s + 1 < shards_count(call->p) && printed == limit);
    }
    json_close(out, ']');
    json_put_bool(out, "more", is_over);
    return PAWL_OK;
}

/* ---- what is due ---- */

#define RETAINED_MAX 10000u /* instances of a definition that are counted */

static void add_retained(struct retained *sum, const struct retained *one)
{
    sum->due += one->due;
    sum->held += one->held;
    sum->erased += one->erased;
    sum->has_more |= one->has_more;
    if (one->oldest_due_ms && (!sum->oldest_due_ms || one->oldest_due_ms < sum->oldest_due_ms))
        sum->oldest_due_ms = one->oldest_due_ms;
}

static void print_retained(const struct retained *row, struct buf *out)
{
    char after[TIME_TEXT_SIZE];

    duration_print(row->after_ms, after);
    json_open(out, '{');
    json_put_str(out, "definition", row->definition);
    json_put_text(out, "after_end", after);
    json_put_text(out, "then", row->is_archive ? "archive" : "erase");
    json_put_u64(out, "due", row->due);
    json_put_u64(out, "held", row->held);
    json_put_u64(out, "erased", row->erased);
    json_put_time_or_null(out, "oldest_due_at", row->oldest_due_ms);
    json_put_bool(out, "more", row->has_more);
    json_close(out, '}');
}

/* The home shard has all definitions. */
pawl_status op_retention_list(struct op_call *call, struct buf *out)
{
    struct retained *rows, *more;
    uint32_t count, more_count;

    TRY(engine_retained(op_engine(call), call->scope, RETAINED_MAX, &rows, &count));
    for (uint32_t s = 1; s < shards_count(call->p); s++) {
        TRY(engine_retained(shard_at(call->p, s)->engine, call->scope, RETAINED_MAX, &more,
                            &more_count));
        for (uint32_t i = 0; i < more_count; i++)
            for (uint32_t k = 0; k < count; k++)
                if (str_eq(rows[k].definition, more[i].definition))
                    add_retained(&rows[k], &more[i]);
    }
    json_put_open(out, "retention", '[');
    for (uint32_t i = 0; i < count; i++)
        print_retained(&rows[i], out);
    json_close(out, ']');
    return PAWL_OK;
}
