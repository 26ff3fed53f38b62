/* ops_erase.c - what an instance holds leaves the store; a subject's instances, and its name. */
#include "api/ops_int.h"
#include "api/shards.h"

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
        TRY(engine_erase(shard_at(call->p, i)->engine, call->scope, &args, &one));
        add(&sum, &one);
    }
    print_erased(&sum, true, out);
    return PAWL_OK;
}
