/* ops_health.c - health.get: does it work? The conditions themselves are the engine's: health.h. */
#include "api/ops_int.h"
#include "api/shards.h"
#include "engine/health.h"

static pawl_status fail(struct op_call *call, const struct health_finding *findings, uint32_t count)
{
    struct buf words;
    pawl_status status;

    buf_init(&words, call->scope->arena.heap, HEALTH_COUNT * (HEALTH_WORDS + 64));
    for (uint32_t i = 0; i < count; i++)
        buf_fmt(&words, "%s%s: %s", i ? "; " : "", findings[i].name, findings[i].words);
    status = scope_fail(call->scope, PAWL_STORAGE_FAILURE, "%s", buf_text(&words));
    buf_fini(&words);
    return status;
}

/* Each condition once, as the first shard that has it tells it. */
static uint32_t add_findings(struct engine *engine, struct health_finding all[HEALTH_COUNT],
                             uint32_t count)
{
    struct health_finding some[HEALTH_COUNT];
    uint32_t more = engine_health(engine, some);

    for (uint32_t i = 0; i < more; i++) {
        bool is_known = false;

        for (uint32_t k = 0; k < count && !is_known; k++)
            is_known = strcmp(all[k].name, some[i].name) == 0;
        if (!is_known)
            all[count++] = some[i];
    }
    return count;
}

pawl_status op_health_get(struct op_call *call, struct buf *out)
{
    struct health_finding findings[HEALTH_COUNT];
    uint32_t count = 0;

    for (uint32_t i = 0; i < shards_count(call->p); i++)
        count = add_findings(shard_at(call->p, i)->engine, findings, count);

    for (uint32_t i = 0; i < count; i++)
        if (findings[i].level == HEALTH_FAILING)
            return fail(call, findings, count);
    json_put_text(out, "status", count ? "degraded" : "ok");
    if (count == 0)
        return PAWL_OK;
    json_put_open(out, "conditions", '[');
    for (uint32_t i = 0; i < count; i++) {
        json_open(out, '{');
        json_put_text(out, "condition", findings[i].name);
        json_put_text(out, "what", findings[i].words);
        json_put_time(out, "since", findings[i].since_ms);
        json_close(out, '}');
    }
    json_close(out, ']');
    return PAWL_OK;
}
