/* tree_plans.c - a tree that the caller runs: pawl_plan_make() and pawl_plan_restart() (C8-C10,
 * C21, C22).
 *
 * Pure: JSON in, JSON out, no store and no clock. A job is
 *   {"status":"pending","settled":false,"context":{...},
 *    "leaves":[{"node":N,"status":S,"output":JSON}],"compiled":{...},"state":N,"memory":{...}}
 * The first four are for the caller: the status is failure as soon as that is certain, and
 * `settled` is true when nothing is pending any more (X17). The rest is the reducer's, the same
 * that runs a flow. */
#include "api/api.h"
#include "base/limits.h"
#include "base/node_own.h"
#include "flow/flow.h"

struct plan_job {
    struct scope *scope;
    struct scope work; /* of one result; what lasts is in the other */
    struct definition *definition;
    void *memory;
    uint32_t state;
    const struct node *leaves; /* as they were; NULL: none yet */
    const struct node *given;  /* results that this call brings */
    struct buf begun;          /* actions */
    uint32_t begun_count;
};

/* ---- In and out ---- */

pawl_status api_text(struct scope *scope, str text, char **out)
{
    *out = heap_new(&heap_libc, text.size + 1);
    TRY_MEMORY(scope, *out);
    memcpy(*out, text.data, text.size);
    return PAWL_OK;
}

void pawl_plan_free(char *text)
{
    heap_free(&heap_libc, text, text ? strlen(text) + 1 : 0);
}

/* What is known of each leaf; the last row about one counts. */
struct leaf {
    const struct node *row;
    bool is_live;
};

static void note_rows(const struct plan_job *job, const struct node *rows, struct leaf *leaves)
{
    int64_t node;
    uint32_t step;

    for (const struct node *row = rows ? rows->first : NULL; row; row = row->next)
        if (node_to_i64(node_find(row, "node"), &node) && node >= 0 && node < UINT32_MAX &&
            (step = flow_step_at(job->definition, (uint32_t)node)) != UINT32_MAX)
            leaves[step].row = row;
}

static struct leaf *note_leaves(const struct plan_job *job)
{
    uint32_t count = flow_step_count(job->definition);
    struct leaf *leaves = ARENA_ARRAY(&job->scope->arena, struct leaf, count + 1);
    bool *is_live = ARENA_ARRAY(&job->scope->arena, bool, count + 1);

    if (!leaves || !is_live)
        return NULL;
    flow_mark_live(job->memory, is_live);
    for (uint32_t i = 0; i < count; i++)
        leaves[i].is_live = is_live[i];
    note_rows(job, job->leaves, leaves);
    note_rows(job, job->given, leaves);
    return leaves;
}

/* C10, C28: what each leaf came to. Unstarted ones are left out. */
static void print_leaves(const struct plan_job *job, struct buf *out)
{
    const struct leaf *leaves = note_leaves(job);

    json_open(out, '[');
    for (uint32_t i = 0; leaves && i < flow_step_count(job->definition); i++) {
        const struct node *row = leaves[i].is_live ? NULL : leaves[i].row;

        if (!row && !leaves[i].is_live)
            continue;
        json_open(out, '{');
        json_put_u64(out, "node", flow_step_node(job->definition, i));
        json_put_str(out, "status", row ? node_text(row, "status") : STR("pending"));
        json_opt_raw(out, "output", node_raw(row, "output"));
        json_close(out, '}');
    }
    json_close(out, ']');
}

static pawl_status print_job(const struct plan_job *job, str *out)
{
    bool is_success = job->state == LIFE_COMPLETED, is_failure = job->state == LIFE_FAILED;
    struct buf buf;

    buf_init(&buf, &heap_libc, LIMIT_SCOPE);
    json_open(&buf, '{');
    json_put_text(&buf, "status",
                  is_success                                  ? "success"
                  : is_failure || flow_must_fail(job->memory) ? "failure"
                                                              : "pending");
    json_put_bool(&buf, "settled", is_success || is_failure);
    json_key(&buf, "context");
    flow_print_context(job->memory, &buf);
    json_key(&buf, "leaves");
    print_leaves(job, &buf);
    json_key(&buf, "compiled");
    definition_print(job->definition, &buf);
    json_put_u64(&buf, "state", job->state);
    json_key(&buf, "memory");
    flow_behavior.memory_print(job->definition, job->memory, &buf);
    json_close(&buf, '}');
    *out = buf.failed || job->scope->arena.failed ? STR_NONE : buf_keep(&buf, &job->scope->arena);
    buf_fini(&buf);
    return out->data ? PAWL_OK : scope_no_memory(job->scope);
}

/* STORAGE_FAILURE: it is not a job. */
static pawl_status load_job(struct plan_job *job, str text)
{
    struct scope *scope = job->scope;
    struct node *document = NULL, *compiled, *memory;
    int64_t number = 0;

    TRY(node_read_own(scope, text, &document));
    compiled = node_find(document, "compiled");
    memory = node_find(document, "memory");
    if (!compiled || !memory || !node_to_i64(node_find(document, "state"), &number) || number < 0 ||
        number >= LIFE_STATE_COUNT)
        return PAWL_STORAGE_FAILURE;
    TRY(definition_load(scope, compiled->raw, &job->definition));
    if (job->definition->kind != KIND_FLOW)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "job: expected a tree, found another definition");
    TRY(flow_behavior.prepare(job->definition, scope));
    job->state = (uint32_t)number;
    job->leaves = node_find(document, "leaves");
    return flow_behavior.memory_load(job->definition, memory->raw, STR("{}"), scope, &scope->arena,
                                     &job->memory);
}

/* ---- Deciding ---- */

static pawl_status decide(struct plan_job *job, const struct event *event);

/* {"node":N,"action":A,"payload":{...}}: handed out once, and pending from then on (C10). */
static pawl_status hand_out(struct plan_job *job, uint32_t ordinal, uint32_t step)
{
    struct event start = { .kind = EVENT_STEP_START, .ordinal = ordinal };
    struct flow_call call;

    TRY(flow_call(job->definition, job->memory, ordinal, &job->work, &call));
    json_open(&job->begun, '{');
    json_put_u64(&job->begun, "node", flow_step_node(job->definition, step));
    json_put_str(&job->begun, "action", call.tool);
    json_put_raw(&job->begun, "payload", call.args);
    json_close(&job->begun, '}');
    return decide(job, &start);
}

static pawl_status fold(struct plan_job *job, const struct draft *draft)
{
    struct entry_view entry = entry_of_draft(draft);
    pawl_status status =
        flow_behavior.apply(job->definition, job->memory, &entry, &job->work, &job->scope->arena);

    job->state = job->definition->transitions[draft->transition].to;
    for (uint32_t i = 0; status == PAWL_OK && i < draft->effects.count; i++)
        if (draft->effects.items[i].kind == EFFECT_STEP)
            status = hand_out(job, draft->effects.items[i].ordinal, draft->effects.items[i].plan);
    return status;
}

static pawl_status decide(struct plan_job *job, const struct event *event)
{
    struct standing standing = { .state = job->state, .memory = job->memory };
    struct decision decision = { 0 };
    struct event leased = *event;

    leased.is_leased = true;
    leased.no_retry = true; /* when to try again is the runner's to know */
    TRY(flow_behavior.decide(job->definition, &standing, &leased, &job->work, &decision));
    for (uint32_t i = 0; i < decision.count; i++)
        TRY(fold(job, &decision.drafts[i]));
    return PAWL_OK;
}

/* An event with all that follows from it. */
static pawl_status settle(struct plan_job *job, const struct event *event)
{
    pawl_status status;

    scope_init(&job->work, &heap_libc, LIMIT_SCOPE);
    status = decide(job, event);
    if (status != PAWL_OK)
        job->scope->error = job->work.error;
    scope_fini(&job->work);
    return status;
}

/* ---- Results ---- */

static pawl_status fail_node(const struct plan_job *job, const struct node *row, const char *what)
{
    const struct node *node = node_find(row, "node");

    return scope_fail(job->scope, PAWL_INVALID_REQUEST, "results: node %.*s %s",
                      node ? (int)node->raw.size : 1, node ? node->raw.data : "?", what);
}

/* C21: in any order, each by itself; an unknown node is named. */
static pawl_status take_result(struct plan_job *job, const struct node *row)
{
    const struct node *status = node_find(row, "status"), *output = node_find(row, "output");
    struct event event = { .payload = output ? output->raw : STR_NONE };
    int64_t node;
    uint32_t step;

    if (!node_to_i64(node_find(row, "node"), &node) || node < 0 || node > UINT32_MAX ||
        (step = flow_step_at(job->definition, (uint32_t)node)) == UINT32_MAX)
        return fail_node(job, row, "is an unknown job node");
    event.ordinal = flow_live_ordinal(job->memory, step);
    if (event.ordinal == 0)
        return fail_node(job, row, "is not pending: it was not handed out, or is over");
    if (!status || status->kind != NODE_STRING)
        return fail_node(job, row, "has no status; expected success, failure or timeout");
    if (str_is(status->text, "success"))
        event.kind = EVENT_STEP_DONE;
    else if (str_is(status->text, "failure"))
        event.kind = EVENT_STEP_FAILED;
    else if (str_is(status->text, "timeout"))
        event.kind = EVENT_STEP_TIMEOUT;
    else
        return fail_node(job, row, "has another status than success, failure or timeout");
    return settle(job, &event);
}

static pawl_status take_results(struct plan_job *job, const char *text)
{
    struct node *results = NULL;

    if (text)
        TRY(node_read_json(job->scope, str_of(text), &results));
    if (results && results->kind != NODE_ARRAY)
        return scope_fail(job->scope, PAWL_INVALID_REQUEST,
                          "results: expected a list of {node, status, output}, found %s",
                          node_kind_name(results->kind));
    job->given = results;
    if (job->state == LIFE_CREATED)
        TRY(settle(job, &(struct event){ .kind = EVENT_START }));
    for (const struct node *row = results ? results->first : NULL; row; row = row->next)
        TRY(take_result(job, row));
    return PAWL_OK;
}

/* ---- The calls ---- */

static pawl_status make(struct plan_job *job, const char *ast, str *out)
{
    struct node *document = NULL;

    TRY(node_read(job->scope, str_of(ast), &document));
    TRY(flow_compile(job->scope, document, NULL, &job->definition));
    for (uint32_t i = 0; i < flow_step_count(job->definition); i++)
        if (flow_step_node(job->definition, i) == UINT32_MAX ||
            !flow_step_is_taken(job->definition, i))
            return scope_fail(job->scope, PAWL_INVALID_DEFINITION,
                              "'%.*s': a job has actions under do, dopar and try, and nothing else",
                              STR_ARG(flow_step_name(job->definition, i)));
    job->state = LIFE_CREATED;
    job->memory = flow_behavior.memory_new(job->definition, STR("{}"), &job->scope->arena);
    return job->memory ? print_job(job, out) : scope_no_memory(job->scope);
}

pawl_status pawl_plan_make(const char *ast, char **job, pawl_error *error)
{
    struct scope scope;
    struct plan_job made = { .scope = &scope };
    str text = STR_NONE;
    pawl_status status;

    TRY(API_NEED_TEXTS(error, GIVEN(ast), GIVEN(job)));
    *job = NULL;
    scope_init(&scope, &heap_libc, LIMIT_SCOPE);
    scope.outer = panic_set(NULL);
    status = make(&made, ast, &text);
    if (status == PAWL_OK)
        status = api_text(&scope, text, job);
    return api_leave(&scope, status, error);
}

static pawl_status restart(struct plan_job *job, const char *text, const char *results, str *next,
                           str *actions)
{
    pawl_status status = load_job(job, str_of(text));

    if (status == PAWL_STORAGE_FAILURE)
        return scope_fail(job->scope, PAWL_INVALID_REQUEST,
                          "job: expected a job of pawl_plan_make(), found another text");
    TRY(status);
    json_open(&job->begun, '[');
    TRY(take_results(job, results));
    TRY(print_job(job, next));
    json_close(&job->begun, ']');
    *actions = job->begun.failed ? STR_NONE : buf_keep(&job->begun, &job->scope->arena);
    return actions->data ? PAWL_OK : scope_no_memory(job->scope);
}

pawl_status pawl_plan_restart(const char *job, const char *results, char **next, char **actions,
                              pawl_error *error)
{
    struct scope scope;
    struct plan_job loaded = { .scope = &scope };
    str next_text = STR_NONE, actions_text = STR_NONE;
    pawl_status status;

    TRY(API_NEED_TEXTS(error, GIVEN(job), GIVEN(next), GIVEN(actions)));
    *next = *actions = NULL;
    /* A value of two bytes, such as `1,`, takes a node. So much memory, and what one unit of work
     * has besides, reads any text. */
    scope_init(&scope, &heap_libc,
               LIMIT_SCOPE +
                   sizeof(struct node) * (strlen(job) + (results ? strlen(results) : 0)) / 2);
    scope.outer = panic_set(NULL);
    buf_init(&loaded.begun, &heap_libc, LIMIT_SCOPE);
    status = restart(&loaded, job, results, &next_text, &actions_text);
    if (status == PAWL_OK)
        status = api_text(&scope, next_text, next);
    if (status == PAWL_OK)
        status = api_text(&scope, actions_text, actions);
    if (status != PAWL_OK) {
        pawl_plan_free(*next);
        pawl_plan_free(*actions);
        *next = *actions = NULL;
    }
    buf_fini(&loaded.begun);
    return api_leave(&scope, status, error);
}
