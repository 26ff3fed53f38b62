/* step_spawn.c - a step that runs another definition as a child, and waits for its end: `spawn`. */
#include "base/json_scan.h"
#include "flow/compile.h"

#define ERROR_CHILD_FAILED    STR("\"child-failed\"")
#define ERROR_CHILD_CANCELLED STR("\"child-cancelled\"")
#define ERROR_CHILD_BEGIN     STR("{\"reason\":\"child-failed\",\"error\":")
#define CHILD_COMPILER        3 /* from this compiler on, the step's error holds the child's */

/* The entry of a child that did not end well: NOTE_FAILED, its error, "}"; or NOTE_CANCELLED. */
#define NOTE_FAILED    STR("{\"status\":\"failed\",\"error\":")
#define NOTE_CANCELLED STR("{\"status\":\"cancelled\"}")

/* Keys: a step that runs a child. */
static const struct known_key spawn_step_keys[] = {
    { "spawn", "{definition, input}", "runs another definition as a child", NULL },
    { 0 },
};

/* Keys: `spawn`. */
static const struct known_key spawn_keys[] = {
    { "definition", "NAME or NAME@VERSION", "what is run", NULL, "required" },
    { "input", "TEMPLATE", "its input", NULL, "{}" },
    { "on_parent_end", "cancel | abandon", "what becomes of it when this flow ends first", NULL,
      "cancel" },
    { 0 },
};

/* ---- Compiling ------------------------------------------------------------------------------ */

static void refer(const struct source_step *step, const struct node *definition)
{
    if (!compile_has_template(step, definition->text))
        findings_refer(step->compiler->report.findings, step->compiler->scope,
                       &(struct reference){ .owner = "step",
                                            .key = "spawn",
                                            .of = step->plan.name,
                                            .name = definition->text,
                                            .line = definition->line,
                                            .column = definition->column });
}

static void spawn_compile(struct source_step *step, const struct node *spawn)
{
    const struct node *definition = node_find(spawn, "definition");
    const struct node *end = node_find(spawn, "on_parent_end");

    if (step->compiler->spawn_count++ == LIMIT_SPAWNS)
        compile_error(step->compiler, spawn,
                      "more than %u steps that spawn; let children spawn some of them",
                      LIMIT_SPAWNS);
    if (spawn->kind != NODE_OBJECT || !definition || definition->kind != NODE_STRING ||
        str_is_blank(definition->text)) {
        step_error(step, definition ? definition : spawn,
                   "'spawn' must be {definition: NAME, input}");
        return;
    }
    if (end && (end->kind != NODE_STRING ||
                (!str_is(end->text, "abandon") && !str_is(end->text, "cancel"))))
        step_error(step, end, "'on_parent_end' is cancel or abandon");
    compile_keys(step->compiler, step, spawn, spawn_keys, "spawn.");
    step->plan.args_node = spawn;
    step->plan.args = compile_print_known(step->compiler, spawn);
    refer(step, definition);
}

/* A flow that spawns itself (NAME or NAME@VERSION) without a step that waits before it would spawn
 * as fast as the store can write. */
static void spawn_check(const struct source_step *step)
{
    const struct node *definition = node_find(step->plan.args_node, "definition");
    str own = step->compiler->own_name;

    if (!own.data || !definition || !str_eq(reference_name(definition->text), own))
        return;
    for (uint32_t i = 0; i < step->compiler->count; i++) {
        const struct step_kind *other = step->compiler->steps[i].plan.kind;

        if (other != &step_kind_spawn && !other->is_taken)
            return;
    }
    step_warning(
        step, NULL,
        "it spawns the flow itself, and nothing waits: a cycle without a wait; add a sleep");
}

/* ---- Beginning ------------------------------------------------------------------------------- */

/* Who it is and where it is created is the engine's to know; here it is wanted. */
static pawl_status spawn_begin(struct turn *turn, const struct plan_step *step, uint32_t ordinal)
{
    struct arena *arena = &turn->scope->arena;
    struct node definition = { 0 };
    str args, found, input, end;

    TRY(begin_args(turn, step, ARGS_OF_CHILDREN, &args));
    if (json_member(arena, args, STR("definition"), &found))
        json_peek(arena, found, &definition);
    if (definition.kind != NODE_STRING || str_is_blank(definition.text))
        return begin_refuse(turn, "definition", "the name of a definition", &definition);
    (void)json_member(arena, args, STR("input"), &input);
    (void)json_member(arena, args, STR("on_parent_end"), &end);
    turn_cause(turn, (struct effect){ .kind = EFFECT_SPAWN,
                                      .ordinal = ordinal,
                                      .name = STR(""),
                                      .definition = definition.text,
                                      .input = input,
                                      .is_abandoned = str_is(end, "\"abandon\"") });
    return turn->status;
}

/* ---- The child has ended ----------------------------------------------------------------------
 */

static str enclose(struct turn *turn, str begin, str error)
{
    struct buf buf;

    buf_init(&buf, turn->scope->arena.heap, 2 * (size_t)LIMIT_TEXT);
    buf_str(&buf, begin);
    buf_str(&buf, error);
    buf_str(&buf, STR("}"));
    return turn_take(turn, &buf);
}

/* What the child failed with, for the rescue. That of a grandchild is passed on as it is: it
 * grows with no generation. */
static str child_error(struct turn *turn, str error)
{
    if (turn->event->outcome == TERMINAL_CANCEL)
        return ERROR_CHILD_CANCELLED;
    if (turn->compiler < CHILD_COMPILER || str_eq(error, RESULT_NULL) ||
        error.size > LIMIT_TEXT - ERROR_CHILD_BEGIN.size - 1)
        return ERROR_CHILD_FAILED;
    return str_starts(error, ERROR_CHILD_BEGIN) ? error : enclose(turn, ERROR_CHILD_BEGIN, error);
}

/* A child that ends well ends the step. Of one that does not there is a note, with its error, and
 * the step fails: a fold must not have to guess which it was. */
void child_has_ended(struct turn *turn, const struct attempt *attempt, bool is_bare)
{
    str payload = turn->event->payload.data ? turn->event->payload : RESULT_NULL;
    enum terminal_kind outcome = turn->event->outcome;

    if (outcome != TERMINAL_FAILURE && outcome != TERMINAL_CANCEL) {
        step_succeed(turn, LIFE_T_CHILD, attempt, payload, 0);
        return;
    }
    turn_draft(turn, LIFE_T_CHILD, attempt,
               outcome == TERMINAL_CANCEL ? NOTE_CANCELLED : enclose(turn, NOTE_FAILED, payload));
    step_fail(turn, LIFE_T_STEP_FAIL, attempt, RETRY_FAILED,
              is_bare && outcome == TERMINAL_FAILURE ? payload : child_error(turn, payload));
}

static void spawn_on_child(struct turn *turn, const struct attempt *attempt)
{
    child_has_ended(turn, attempt, false);
}

bool spawn_event(const struct entry_view *entry, uint32_t n, struct event *out)
{
    bool ends = false;

    for (uint32_t i = 0; entry->effects && i < entry->effects->count; i++)
        ends = ends || entry->effects->items[i].kind == EFFECT_END;
    out->kind = EVENT_CHILD;
    out->outcome = ends                                     ? TERMINAL_SUCCESS
                   : str_eq(entry->payload, NOTE_CANCELLED) ? TERMINAL_CANCEL
                                                            : TERMINAL_FAILURE;
    if (out->outcome == TERMINAL_FAILURE && str_starts(entry->payload, NOTE_FAILED)) {
        out->payload = str_from(entry->payload, NOTE_FAILED.size);
        out->payload.size--;
    }
    return n == 0 && entry->transition == LIFE_T_CHILD;
}

const struct step_kind step_kind_spawn = {
    .word = "spawn",
    .about = "runs another definition as a child, and waits for its end",
    .key = "spawn",
    .keys = spawn_step_keys,
    .is_alone = true,
    .why = "child",
    .may_spawn = true,
    .has_own_args = true,
    .compile = spawn_compile,
    .check = spawn_check,
    .begin = spawn_begin,
    .on = { [EVENT_CHILD] = spawn_on_child },
    .event = spawn_event,
};
