/* step_schedule.c - a step that waits for the next slot of a schedule: `schedule`.
 *
 * Its args are {"cron":C,"zone":NAME,...zone...} or {"every":DURATION}, with "jitter" and
 * "catch_up", and "last": the slot of the result that the step has from the round before. The timer
 * is called STEP@SLOT, so that its entry and a list of timers say which slot it is. */
#include "base/time.h"
#include "calendar/calendar.h"
#include "flow/compile.h"

#define CATCH_UP_MAX 100
#define MISSED_MAX   1000 /* more are not counted */
#define EVERY_MIN_MS 1000
#define SLOT_PATH    "result.slot"

/* Keys: a step that waits for a schedule. */
static const struct known_key schedule_step_keys[] = {
    { "schedule", "{cron | every, ...}", "waits for the next slot of a schedule", NULL },
    { 0 },
};

/* Keys: `schedule`. */
static const struct known_key schedule_keys[] = {
    { "cron", "CRON", "minute, hour, day, month and weekday of each slot", NULL },
    { "every", "DURATION", "slots at whole multiples of this; at least 1s", "interval" },
    { "zone", "ZONE", "of `cron`: whose clocks count", "timezone", "UTC" },
    { "jitter", "DURATION", "how much later than its slot it may go on", NULL, "0s" },
    { "catch_up", "NUMBER", "how many missed slots are made up for; at most 100", NULL, "0" },
    { 0 },
};

/* ---- Compiling ------------------------------------------------------------------------------ */

static bool is_template(const struct node *node)
{
    return node->kind == NODE_STRING && template_has(node->text);
}

static void check_cron(const struct source_step *step, const struct node *node)
{
    struct schedule schedule = { .is_cron = true };
    char problem[CRON_PROBLEM_SIZE];

    if (is_template(node) || !step_expect(step, node, NODE_STRING, "a cron expression in quotes"))
        return;
    if (!cron_parse(node->text, &schedule.cron, problem))
        step_error(step, node, "'cron': %s", problem);
    else if (slot_after(&schedule, 0) == SLOT_NONE)
        step_error(step, node, "'cron': expected a date that exists, found '%.*s'",
                   STR_ARG(words_shown(node->text)));
}

static void check_every(const struct source_step *step, const struct node *node)
{
    int64_t ms;

    if (!is_template(node) && compile_duration(step, node, "'every'", &ms) &&
        (ms < EVERY_MIN_MS || ms % 1000 != 0))
        step_error(step, node, "'every': expected whole seconds, at least 1s, found '%.*s'",
                   STR_ARG(words_shown(node->text)));
}

/* The members of its zone; NULL, and said so, if there is no such zone. */
static const char *find_zone(const struct source_step *step, const struct node *node)
{
    const char *members = NULL;

    if (!node)
        return zone_members(STR("UTC"));
    if (!step_expect(step, node, NODE_STRING, "the name of a time zone"))
        return NULL;
    members = zone_members(node->text);
    if (!members)
        step_error(step, node,
                   "'zone': expected a time zone like Europe/Berlin or UTC, found '%.*s'",
                   STR_ARG(words_shown(node->text)));
    return members;
}

static void check_rest(const struct source_step *step, const struct node *node)
{
    const struct node *jitter = node_find(node, "jitter"), *catch_up = node_find(node, "catch_up");
    uint32_t count;
    int64_t ms;

    if (jitter)
        (void)compile_duration(step, jitter, "'jitter'", &ms);
    if (catch_up && !node_to_u32(catch_up, CATCH_UP_MAX, &count))
        step_error(step, catch_up, "'catch_up': expected a number of 0 to %d", CATCH_UP_MAX);
}

static str print_args(struct source_step *step, const struct node *node, const char *members)
{
    struct buf buf;

    buf_init(&buf, step->compiler->scope->arena.heap, 0);
    json_open(&buf, '{');
    for (const struct node *member = node->first; member; member = member->next)
        if (keys_have(schedule_keys, member->key)) {
            json_key_str(&buf, member->key);
            node_print(member, &buf);
        }
    if (members)
        buf_fmt(&buf, ",%s", members);
    json_key(&buf, "last");
    buf_fmt(&buf, "\"{{steps.%.*s." SLOT_PATH "}}\"", STR_ARG(step->plan.name));
    json_close(&buf, '}');
    return compile_take(step->compiler, &buf);
}

static void schedule_compile(struct source_step *step, const struct node *node)
{
    const struct node *cron = node_find(node, "cron"), *every = node_find(node, "every");
    const struct node *zone = node_find(node, "zone");
    const char *members = NULL;

    if (!step_expect(step, node, NODE_OBJECT, "an object with cron or every"))
        return;
    compile_keys(step->compiler, step, node, schedule_keys, "schedule.");
    if (!cron == !every)
        step_error(step, node, "expected one of {cron: ...} and {every: DURATION}, found %s",
                   cron ? "both" : "neither");
    if (zone && !cron)
        step_error(step, zone, "'zone' belongs to 'cron'");
    if (cron) {
        members = find_zone(step, zone);
        check_cron(step, cron);
    }
    if (every)
        check_every(step, every);
    check_rest(step, node);
    step->plan.args_node = node;
    step->plan.args = print_args(step, node, members);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

struct awaited_slot {
    struct schedule schedule;
    int64_t jitter_ms;
    uint32_t catch_up;
    bool has_last;
    int64_t last; /* slot */
};

static pawl_status read_schedule(struct turn *turn, const struct node *args, struct schedule *out)
{
    const struct node *cron = node_find(args, "cron"), *every = node_find(args, "every");
    char problem[CRON_PROBLEM_SIZE] = "no text";
    int64_t ms;

    *out = (struct schedule){ .is_cron = cron != NULL };
    if (!cron) {
        if (!every || every->kind != NODE_STRING || !duration_parse(every->text, &ms) ||
            ms < EVERY_MIN_MS || ms % 1000 != 0)
            return begin_refuse(turn, "every", "a duration of whole seconds like \"15m\"", every);
        out->every = ms / 1000;
        return PAWL_OK;
    }
    if (!zone_read(args, &turn->scope->arena, &out->zone))
        return turn->scope->arena.failed
                   ? scope_no_memory(turn->scope)
                   : scope_fail(turn->scope, PAWL_INVALID_REQUEST, "'zone': its rules are damaged");
    if (cron->kind != NODE_STRING || !cron_parse(cron->text, &out->cron, problem))
        return scope_fail(turn->scope, PAWL_INVALID_REQUEST, "'cron': %s", problem);
    return PAWL_OK;
}

static pawl_status read_args(struct turn *turn, const struct node *args, struct awaited_slot *out)
{
    const struct node *jitter = node_find(args, "jitter"), *catch_up = node_find(args, "catch_up");
    str last = node_text(args, "last");
    int64_t last_ms = 0;

    *out = (struct awaited_slot){ 0 };
    if (jitter && (jitter->kind != NODE_STRING || !duration_parse(jitter->text, &out->jitter_ms)))
        return begin_refuse(turn, "jitter", "a duration like \"30s\"", jitter);
    if (catch_up && !node_to_u32(catch_up, CATCH_UP_MAX, &out->catch_up))
        return begin_refuse(turn, "catch_up", "a number of 0 to 100", catch_up);
    out->has_last = last.data && time_parse(last, &last_ms);
    out->last = last_ms / 1000;
    return read_schedule(turn, args, &out->schedule);
}

/* The next one; or, of those that were missed since the last, as many as are made up for. */
static int64_t choose_slot(const struct awaited_slot *waiting, int64_t now)
{
    int64_t slot = SLOT_NONE, after = now;

    if (waiting->has_last && waiting->last > now)
        after = waiting->last; /* the clock went back: no slot comes twice */
    if (waiting->has_last)
        slot = slot_of_last(&waiting->schedule, waiting->last, now, waiting->catch_up);
    return slot == SLOT_NONE ? slot_after(&waiting->schedule, after) : slot;
}

/* It need not be random, only differ between instances and slots. */
static int64_t spread(int64_t jitter_ms, uint64_t seed)
{
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 27) * 0x94d049bb133111ebu;
    return jitter_ms > 0 ? (int64_t)((seed ^ seed >> 31) % (uint64_t)jitter_ms) : 0;
}

static str slot_name(struct turn *turn, const struct plan_step *step, int64_t slot)
{
    char text[TIME_TEXT_SIZE];
    struct buf buf;

    time_print(slot * 1000, text);
    buf_init(&buf, turn->scope->arena.heap, 0);
    buf_fmt(&buf, "%.*s@%.19sZ", STR_ARG(step->name), text);
    return turn_take(turn, &buf);
}

static pawl_status schedule_begin(struct turn *turn, const struct plan_step *step, uint32_t ordinal)
{
    struct node *args = NULL;
    struct awaited_slot waiting;
    int64_t at_ms = turn->event->at_ms, slot;

    TRY(begin_args_node(turn, step, &args));
    TRY(read_args(turn, args, &waiting));
    slot = choose_slot(&waiting, at_ms / 1000);
    if (slot == SLOT_NONE || slot > TIME_LAST_MS / 1000)
        return begin_refuse(turn, "cron", "a date that exists", node_find(args, "cron"));
    turn_cause(turn, (struct effect){ .kind = EFFECT_ARM,
                                      .ordinal = ordinal,
                                      .name = slot_name(turn, step, slot),
                                      .due_at_ms =
                                          slot * 1000 + spread(waiting.jitter_ms,
                                                               (uint64_t)(at_ms ^ slot) + ordinal),
                                      .wall = true });
    return turn->status;
}

/* The slot that is in the timer's name; false: there is none. */
static bool slot_of_name(str name, int64_t *out)
{
    size_t at = name.size;
    int64_t ms;

    while (at > 0 && name.data[at - 1] != '@')
        at--;
    if (at == 0 || !time_parse(str_from(name, at), &ms))
        return false;
    *out = ms / 1000;
    return true;
}

static pawl_status schedule_result(struct turn *turn, const struct attempt *attempt, uint32_t arm,
                                   str payload, str *out)
{
    const struct plan_step *step = &turn->plan->steps[attempt->plan];
    struct template_source source = turn_step_source(turn, step);
    char local[LOCAL_TEXT_SIZE];
    struct awaited_slot waiting;
    struct node *args;
    struct buf buf;
    int64_t slot;
    str text;

    (void)arm, (void)payload;
    TRY(template_expand(&source, step, turn->scope, &text));
    TRY(node_read_json(turn->scope, text, &args));
    TRY(read_args(turn, args, &waiting));
    if (!slot_of_name(turn->event->name, &slot))
        return scope_fail(turn->scope, PAWL_INVALID_REQUEST, "its timer names no slot");
    local_print(&waiting.schedule.zone, slot, local);
    buf_init(&buf, turn->scope->arena.heap, 0);
    json_open(&buf, '{');
    json_put_time(&buf, "slot", slot * 1000);
    json_put_text(&buf, "local", local);
    json_put_u64(
        &buf, "missed",
        waiting.has_last ? slot_count(&waiting.schedule, waiting.last, slot - 1, MISSED_MAX) : 0);
    json_close(&buf, '}');
    *out = turn_take(turn, &buf);
    return turn->status;
}

static bool schedule_read_arm(str result, uint32_t *arm, str *payload)
{
    (void)result;
    *arm = 0;
    *payload = RESULT_NULL;
    return true;
}

static void schedule_note(const struct plan_step *step, struct buf *out)
{
    str cron = node_text(step->args_node, "cron"), zone = node_text(step->args_node, "zone");

    if (cron.data)
        buf_fmt(out, "%.*s%s%.*s", STR_ARG(cron), zone.data ? " " : "", STR_ARG(zone));
    else
        buf_fmt(out, "every %.*s", STR_ARG(node_text(step->args_node, "every")));
}

const struct step_kind step_kind_schedule = {
    .word = "schedule",
    .about = "waits for the next slot of a schedule: cron with a time zone, or an interval",
    .key = "schedule",
    .keys = schedule_step_keys,
    .is_alone = true,
    .has_own_args = true,
    .is_tried_once = true,
    .look = LOOK_WAIT,
    .note = schedule_note,
    .compile = schedule_compile,
    .begin = schedule_begin,
    .arm_result = schedule_result,
    .read_arm = schedule_read_arm,
};
