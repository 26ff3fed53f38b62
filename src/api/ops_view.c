/* ops_view.c - instance.view: all that is shown of an instance, from one read and one fold of its
 * newest entries: its state, what it waits for, its steps, its picture, its last entries, its
 * children. */
#include "api/step_reader.h"

#define ENTRIES_DEFAULT  20u
#define STEPS_DEFAULT    100u
#define CHILDREN_DEFAULT 20u
#define VIEW_MAX         1000u

struct view_asked { /* at most so many of each */
    uint64_t entries, steps, children;
};

static pawl_status read_most(const struct op_call *call, const char *name, uint64_t usual,
                             uint64_t *out)
{
    bool has;

    *out = usual;
    TRY(query_count(call, name, &has, out));
    return *out <= VIEW_MAX
               ? PAWL_OK
               : scope_fail(call->scope, PAWL_INVALID_REQUEST, "'%s': expected 0..%u, found %llu",
                            name, VIEW_MAX, (unsigned long long)*out);
}

static pawl_status read_asked(const struct op_call *call, struct view_asked *out)
{
    TRY(read_most(call, "entries", ENTRIES_DEFAULT, &out->entries));
    TRY(read_most(call, "steps", STEPS_DEFAULT, &out->steps));
    return read_most(call, "children", CHILDREN_DEFAULT, &out->children);
}

/* ---- Steps ---- */

/* The ordinal of the first attempt that one of the entries makes; 0: none does. */
static uint32_t first_made(const struct story *story)
{
    for (uint32_t i = 0; i < story->entry_count; i++)
        for (uint32_t k = 0; k < story->effects[i].count; k++)
            if (story->effects[i].items[k].kind == EFFECT_STEP)
                return story->effects[i].items[k].ordinal;
    return 0;
}

static pawl_status fold_steps(struct scope *scope, const struct story *story,
                              struct flow_attempts *out)
{
    uint32_t first = first_made(story), after = first ? first - 1 : 0;

    if (!first && !story->is_whole) /* all were made before the entries: none can be folded */
        after = UINT32_MAX - 1;
    *out = (struct flow_attempts){ .after = after, .max = UINT32_MAX - after };
    for (uint32_t i = 0; i < story->entry_count; i++) {
        struct entry_view view = entry_to_fold(&story->entries[i], &story->effects[i]);

        out->pos = story->entries[i].record->pos;
        TRY(flow_attempts_apply(scope, out, &view));
    }
    return PAWL_OK;
}

/* A live attempt that was made before the entries: what its row says. */
static struct flow_attempt attempt_of_row(const struct live_step *row)
{
    return (struct flow_attempt){ .ordinal = row->ordinal,
                                  .plan = row->plan,
                                  .attempt = row->attempt,
                                  .status = row->status,
                                  .ready_at_ms = row->ready_at_ms };
}

static const struct entry *entry_numbered(const struct story *story, uint64_t seq)
{
    uint64_t first = story->entry_count ? story->entries[0].record->seq : 0;

    return seq >= first && seq - first < story->entry_count ? &story->entries[seq - first] : NULL;
}

static void put_step(const struct story *story, const struct flow_attempt *attempt, struct buf *out)
{
    struct step_view step = { .attempt = attempt };
    const struct entry *end = attempt->ended_seq ? entry_numbered(story, attempt->ended_seq) : NULL;
    const struct definition *now = story->now;

    step.name = work_step_name(now, attempt->plan);
    step.tool = now->kind == KIND_FLOW ? flow_plan_tool(now, attempt->plan)
                                       : work_step_tool(now, attempt->plan);
    if (end)
        *(attempt->status == STEP_FAILED ? &step.error : &step.result) = end->payload;
    for (uint32_t i = 0; i < story->waiting_count && attempt->status == STEP_PENDING; i++)
        if (story->waiting[i].approval.data && story->waiting[i].ordinal == attempt->ordinal)
            step.gate = &story->waiting[i];
    for (uint32_t i = 0; i < story->waiting_count && attempt->status == STEP_RUNNING; i++)
        if (story->waiting[i].progress.data && story->waiting[i].ordinal == attempt->ordinal) {
            step.progress = story->waiting[i].progress;
            step.progress_ms = story->waiting[i].progress_ms;
        }
    print_step(str_of(story->view.id), &step, out);
}

/* The highest ordinal that entries or live steps name. Ordinals count attempts, so this is how many
 * were made, as far as can be seen. */
static uint32_t highest_named(const struct story *story)
{
    uint32_t last =
        story->live.step_count ? story->live.steps[story->live.step_count - 1].ordinal : 0;

    for (uint32_t i = 0; i < story->entry_count; i++)
        if (story->entries[i].record->ordinal > last)
            last = story->entries[i].record->ordinal;
    return last;
}

/* Live ones that are older than the entries, then those that the entries made; the newest. */
static void put_steps(const struct story *story, const struct flow_attempts *attempts,
                      uint64_t most, struct buf *out)
{
    uint32_t first = first_made(story), older = 0, skipped, made;

    while (older < story->live.step_count &&
           (first == 0 || story->live.steps[older].ordinal < first))
        older++;
    made = first ? first - 1 + attempts->count : highest_named(story);
    skipped = older + attempts->count > most ? (uint32_t)(older + attempts->count - most) : 0;
    json_put_open(out, "steps", '[');
    for (uint32_t i = skipped; i < older; i++) {
        struct flow_attempt row = attempt_of_row(&story->live.steps[i]);

        put_step(story, &row, out);
    }
    for (uint32_t i = skipped > older ? skipped - older : 0; i < attempts->count; i++)
        put_step(story, &attempts->items[i], out);
    json_close(out, ']');
    json_put_u64(out, "steps_before", made - (older + attempts->count - skipped));
}

/* ---- Children ---- */

static bool is_live_child(const struct story *story, str id)
{
    uint8_t random[ID_RANDOM_SIZE];
    uint64_t number = 0;

    (void)id_parse(id, &number, random); /* what is no id is no child */
    for (uint32_t i = 0; i < story->live.child_count; i++)
        if (story->live.children[i].child == number)
            return !story->live.children[i].ended;
    return false;
}

static void put_child(const struct story *story, const struct flow_attempts *attempts,
                      const struct effect *spawn, struct buf *out)
{
    bool is_made =
        spawn->ordinal > attempts->after && spawn->ordinal - attempts->after <= attempts->count;

    json_open(out, '{');
    json_put_str(out, "instance_id", spawn->name);
    json_put_fmt(out, "step_id", "%s.%u", story->view.id, spawn->ordinal);
    if (is_made)
        json_put_str(
            out, "step",
            work_step_name(story->now, attempts->items[spawn->ordinal - attempts->after - 1].plan));
    json_put_bool(out, "awaited", is_live_child(story, spawn->name));
    if (spawn->is_abandoned)
        json_put_bool(out, "outlives", true);
    json_close(out, '}');
}

/* The newest that the entries created, the last one first. */
static void put_children(const struct story *story, const struct flow_attempts *attempts,
                         uint64_t most, struct buf *out)
{
    uint64_t found = 0, awaited = 0;

    json_put_open(out, "children", '[');
    for (uint32_t i = story->entry_count; i > 0; i--)
        for (uint32_t k = story->effects[i - 1].count; k > 0; k--)
            if (story->effects[i - 1].items[k - 1].kind == EFFECT_SPAWN && found++ < most)
                put_child(story, attempts, &story->effects[i - 1].items[k - 1], out);
    json_close(out, ']');
    for (uint32_t i = 0; i < story->live.child_count; i++)
        awaited += !story->live.children[i].ended;
    json_put_u64(out, "children_more", found > most ? found - most : 0);
    json_put_u64(out, "children_awaited", awaited);
}

/* ---- The rest ---- */

static void put_waits(const struct op_call *call, const struct story *story, struct buf *out)
{
    uint32_t count = story->waiting_count < STORY_WAITS ? story->waiting_count : STORY_WAITS;

    json_put_open(out, "waiting_for", '[');
    for (uint32_t i = 0; i < count; i++)
        print_waiting(call, str_of(story->view.id), &story->waiting[i], out);
    json_close(out, ']');
    json_put_u64(out, "waiting_more", story->waiting_count - count);
}

static void put_entries(const struct story *story, uint64_t most, struct buf *out)
{
    uint32_t first = story->entry_count > most ? story->entry_count - (uint32_t)most : 0;

    json_put_open(out, "entries", '[');
    for (uint32_t i = first; i < story->entry_count; i++)
        print_entry(str_of(story->view.id), &story->entries[i], false, out);
    json_close(out, ']');
    json_put_u64(out, "entries_before", story->view.seq - (story->entry_count - first));
}

static pawl_status put_flow(struct op_call *call, const struct story *story,
                            const struct view_asked *asked, struct buf *out)
{
    struct flow_attempts attempts;
    str reused = STR_NONE;

    TRY(fold_steps(call->scope, story, &attempts));
    put_steps(story, &attempts, asked->steps, out);
    if (story->view.retry_of.data)
        TRY(read_reused(call, str_of(story->view.id), &reused));
    json_opt_raw(out, "reused", reused);
    put_children(story, &attempts, asked->children, out);
    json_put_raw(out, "variables", story->variables);
    if (story->view.kind != KIND_FLOW)
        return PAWL_OK;
    json_key(out, "graph");
    return print_story_graph(call, story, out);
}

pawl_status op_instance_view(struct op_call *call, struct buf *out)
{
    struct view_asked asked;
    struct story story;

    TRY(read_asked(call, &asked));
    TRY(engine_story(op_engine(call), call->scope, op_text(call, "instance_id"),
                     (uint32_t)asked.entries, &story));
    json_put_open(out, "instance", '{');
    print_instance(&story.view, out);
    json_close(out, '}');
    put_waits(call, &story, out);
    put_entries(&story, asked.entries, out);
    return story.view.kind == KIND_MACHINE ? PAWL_OK : put_flow(call, &story, &asked, out);
}
