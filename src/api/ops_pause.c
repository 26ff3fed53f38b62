/* ops_pause.c - hold an instance, and let it go on. */
#include "api/ops_int.h"

static pawl_status run(struct op_call *call, bool resume, struct buf *out)
{
    enum instance_status held;

    TRY(engine_pause(op_engine(call), call->scope,
                     &(struct pause_args){ .id = op_text(call, "instance_id"),
                                           .actor = op_ref(call, "actor_ref"),
                                           .reason = op_told(call, "reason"),
                                           .resume = resume,
                                           .ends_runs = !resume,
                                           .late = op_ref_defect(call, "actor_ref"),
                                           .key = call->key },
                     &held));
    json_put_text(out, "status", instance_status_name(held));
    return PAWL_OK;
}

pawl_status op_instance_pause(struct op_call *call, struct buf *out)
{
    return run(call, false, out);
}

pawl_status op_instance_resume(struct op_call *call, struct buf *out)
{
    return run(call, true, out);
}
