/* ops_validation.c - bulk validation is a workflow: an instance of a machine of ours, with an entry
 * for each instance that was checked. Nothing is kept elsewhere: where to go on, and how many were
 * valid, is in the payload of the last entry. So a crash loses no more than the page that was being
 * checked, and memory is that of one page. */
#include "api/ops_int.h"
#include "base/limits.h"
#include "model/input_schema.h"

#define VALIDATION "pawl.validation"
#define PAGE       200u
#define RUN_MAX    100000u

static const char machine_text[] =
    "name: " VALIDATION "\n"
    "description: checks every instance of a definition\n"
    "states: [pending, in-progress, passed, failed, cancelled]\n"
    "initial_state: pending\n"
    "terminal_states: [passed, failed, cancelled]\n"
    "terminal_kinds: {passed: success, failed: failure, cancelled: cancel}\n"
    "transitions:\n"
    "  - {from_state: pending, action: begin, to_state: in-progress}\n"
    "  - {from_state: in-progress, action: checked, to_state: in-progress}\n"
    "  - {from_state: in-progress, action: found, to_state: in-progress}\n"
    "  - {from_state: in-progress, action: pass, to_state: passed}\n"
    "  - {from_state: in-progress, action: fail, to_state: failed}\n"
    "  - {from_state: \"*\", action: cancel, to_state: cancelled}\n";

/* ---- Other operations, as the server itself ---- */

static pawl_status run(const struct op_call *call, const char *operation, struct buf *input,
                       struct scope *scope, struct node **out)
{
    struct buf answer;
    pawl_status status;
    str text = STR_NONE, given = buf_take(input, &scope->arena);

    TRY_MEMORY(scope, given.data);
    buf_init(&answer, scope->arena.heap, LIMIT_SCOPE);
    status = op_call_keyed(call->p, op_find(str_of(operation)), given, &(struct op_principal){ 0 },
                           STR_NONE, scope, &answer);
    if (status == PAWL_OK)
        text = buf_keep(&answer, &scope->arena);
    buf_fini(&answer);
    TRY(status);
    TRY_MEMORY(scope, text.data);
    return node_read_json(scope, text, out);
}

static void begin_input(const struct op_call *call, struct buf *input)
{
    buf_init(input, call->scope->arena.heap, LIMIT_BATCH_TEXT);
    json_open(input, '{');
}

static pawl_status run_of(const struct op_call *call, const char *operation, str id,
                          struct scope *scope, struct node **out)
{
    struct buf input;

    begin_input(call, &input);
    json_put_str(&input, "instance_id", id);
    json_close(&input, '}');
    return run(call, operation, &input, scope, out);
}

/* ---- Where it stands ---- */

struct validation {
    str id, definition, state, actor, started, ended;
    bool has_ended;
    int64_t next; /* the number of its next entry */
    int64_t total, valid, invalid;
    str page;    /* the cursor with which the last page was read; data NULL: the first */
    int64_t nth; /* how many of that page are done */
};

static int64_t number(const struct node *object, const char *name)
{
    int64_t value = 0;

    node_to_i64(node_find(object, name), &value);
    return value;
}

/* The payload of its last entry, if that was about an instance. */
static pawl_status read_last(const struct op_call *call, struct validation *out)
{
    const struct node *payload;
    struct node *history;
    struct buf input;
    const struct node *entry;

    begin_input(call, &input);
    json_put_str(&input, "instance_id", out->id);
    json_key(&input, "sequence_from");
    buf_fmt(&input, "\"%lld\"", (long long)(out->next > 3 ? out->next - 3 : 1));
    json_close(&input, '}');
    TRY(run(call, "instance.history", &input, call->scope, &history));
    for (entry = node_first(history, "entries"); entry; entry = entry->next) {
        payload = node_find(entry, "payload");
        if (!node_find(payload, "nth"))
            continue;
        out->page = node_text(payload, "page");
        out->nth = number(payload, "nth");
        out->valid = number(payload, "valid");
        out->invalid = number(payload, "invalid");
    }
    return PAWL_OK;
}

static pawl_status read_validation(const struct op_call *call, str id, struct validation *out)
{
    const struct node *input;
    struct node *instance;

    *out = (struct validation){ .id = id };
    TRY(run_of(call, "instance.get", id, call->scope, &instance));
    if (!str_is(node_text(instance, "definition"), VALIDATION))
        return scope_fail(call->scope, PAWL_NOT_KNOWN, "'%.*s' is no validation", STR_ARG(id));
    input = node_find(instance, "input");
    out->definition = node_text(input, "definition");
    out->total = number(input, "total");
    out->state = node_text(instance, "current_state");
    out->actor = node_text(instance, "created_by");
    out->started = node_text(instance, "instantiated_at");
    out->ended = node_text(instance, "updated_at");
    out->has_ended = node_text(instance, "terminal_kind").data != NULL;
    out->next = number(instance, "next_sequence_number");
    return read_last(call, out);
}

static void print_validation(const struct validation *from, struct buf *out)
{
    const char *kind = str_is(from->state, "passed")   ? "success"
                       : str_is(from->state, "failed") ? "failure"
                                                       : "cancel";

    json_put_str(out, "instance_id", from->id);
    json_put_str(out, "definition", from->definition);
    json_put_str(out, "state", from->state);
    json_put_str(out, "terminal_kind", from->has_ended ? str_of(kind) : STR_NONE);
    json_put_i64(out, "total", from->total);
    json_put_i64(out, "valid", from->valid);
    json_put_i64(out, "invalid", from->invalid);
    json_put_str(out, "requested_by", from->actor);
    json_put_str(out, "started_at", from->started);
    json_put_str(out, "completed_at", from->has_ended ? from->ended : STR_NONE);
}

static pawl_status answer(const struct op_call *call, str id, struct buf *out)
{
    struct validation now;

    TRY(read_validation(call, id, &now));
    print_validation(&now, out);
    return PAWL_OK;
}

/* ---- start ---- */

static pawl_status put_machine(const struct op_call *call)
{
    struct node *ignored;
    struct buf input;

    begin_input(call, &input);
    json_put_text(&input, "name", VALIDATION);
    json_put_text(&input, "text", machine_text);
    json_close(&input, '}');
    return run(call, "definition.put", &input, call->scope, &ignored);
}

static pawl_status count_instances(const struct op_call *call, str definition, int64_t *out)
{
    struct node *counts;
    struct buf input;

    begin_input(call, &input);
    json_put_str(&input, "definition", definition);
    json_close(&input, '}');
    TRY(run(call, "instance.counts", &input, call->scope, &counts));
    *out = number(counts, "total");
    return PAWL_OK;
}

pawl_status op_validation_start(struct op_call *call, struct buf *out)
{
    str definition = op_text(call, "definition");
    struct definition_row row;
    struct node *created;
    struct buf input;
    int64_t total;

    TRY(definition_resolve(call, definition, &row));
    TRY(put_machine(call));
    TRY(count_instances(call, definition, &total));
    begin_input(call, &input);
    json_put_text(&input, "definition", VALIDATION);
    json_put_str(&input, "subject_ref", definition);
    json_opt_str(&input, "actor_ref", op_ref(call, "actor_ref"));
    json_put_open(&input, "input", '{');
    json_put_str(&input, "definition", definition);
    json_put_i64(&input, "total", total);
    json_close(&input, '}');
    json_close(&input, '}');
    TRY(run(call, "instance.create", &input, call->scope, &created));
    return answer(call, node_text(created, "instance_id"), out);
}

/* ---- run: one page at a time ---- */

struct page {
    const struct op_call *call;
    struct validation *at;
    struct scope scope; /* of this page */
    struct buf lines;   /* entries that are to be recorded together */
    uint32_t count;
};

/* The schema of the very version that the instance has. */
static pawl_status read_schema(struct page *page, const struct node *instance, struct node **out)
{
    struct node *definition;
    struct buf input;

    *out = NULL;
    if (!node_text(instance, "definition").data)
        return PAWL_OK;
    begin_input(page->call, &input);
    json_put_str(&input, "name", node_text(instance, "definition"));
    json_key(&input, "version");
    buf_fmt(&input, "\"%lld\"", (long long)number(instance, "version"));
    json_put_text(&input, "expanded", "true");
    json_close(&input, '}');
    TRY(run(page->call, "definition.get", &input, &page->scope, &definition));
    *out = node_find(definition, "input");
    return PAWL_OK;
}

/* What is wrong with it; "": nothing. What the store itself refuses to read is a finding too. */
static pawl_status check_one(struct page *page, const struct node *instance, str *what)
{
    struct node *verified, *schema;
    pawl_status status = run_of(page->call, "instance.verify", node_text(instance, "instance_id"),
                                &page->scope, &verified);

    *what = STR("");
    if (status == PAWL_NO_MEMORY)
        return status;
    if (status != PAWL_OK) {
        *what = arena_str(&page->scope.arena, str_of(page->scope.error.message));
        return PAWL_OK;
    }
    if (node_text(verified, "what").data) {
        *what = node_text(verified, "what");
        return PAWL_OK;
    }
    TRY(read_schema(page, instance, &schema));
    status = input_schema_accept(&page->scope, schema, node_raw(instance, "input"));
    if (status == PAWL_INVALID_REQUEST) {
        *what = arena_str(&page->scope.arena, str_of(page->scope.error.message));
        status = PAWL_OK;
    }
    return status;
}

static void add_entry(struct page *page, const struct node *instance, str what)
{
    struct buf *out = &page->lines;
    struct validation *at = page->at;

    *(what.size == 0 ? &at->valid : &at->invalid) += 1;
    at->nth++;
    buf_str(out, STR("{\"operation\":\"instance.fire\",\"input\":{\"instance_id\":"));
    json_str(out, at->id);
    json_put_text(out, "action", what.size == 0 ? "checked" : "found");
    json_put_i64(out, "expected_sequence", at->next++);
    json_put_open(out, "payload", '{');
    json_put_str(out, "checked", node_text(instance, "instance_id"));
    if (what.size > 0)
        json_put_str(out, "what", what);
    json_put_i64(out, "valid", at->valid);
    json_put_i64(out, "invalid", at->invalid);
    json_put_str(out, "page", at->page);
    json_put_i64(out, "nth", at->nth);
    buf_str(out, STR("}}}\n"));
    page->count++;
}

/* All of a page share a commit, or a few. One that is refused has come too late: another caller
 * runs this validation, or it was cancelled. */
static pawl_status record(struct page *page)
{
    struct buf input, answers;
    pawl_status status;
    str given;

    if (page->count == 0)
        return PAWL_OK;
    begin_input(page->call, &input);
    json_put_str(&input, "text", buf_view(&page->lines));
    json_close(&input, '}');
    given = buf_take(&input, &page->scope.arena);
    TRY_MEMORY(&page->scope, given.data && !page->lines.failed);
    buf_init(&answers, page->scope.arena.heap, LIMIT_SCOPE);
    status = op_call_keyed(page->call->p, op_find(STR("batch")), given, &(struct op_principal){ 0 },
                           STR_NONE, &page->scope, &answers);
    if (status == PAWL_OK && strstr(buf_text(&answers), "\"reason\":\"terminal\""))
        page->at->has_ended = true;
    else if (status == PAWL_OK && strstr(buf_text(&answers), "{\"status\":4"))
        status = scope_fail(&page->scope, PAWL_CONFLICT,
                            "another caller runs this validation; ask again with max 0");
    buf_fini(&answers);
    return status;
}

static pawl_status read_page(struct page *page, struct node **out)
{
    struct buf input;

    begin_input(page->call, &input);
    json_put_str(&input, "definition", page->at->definition);
    json_put_str(&input, "created_before", page->at->started);
    json_put_text(&input, "order", "oldest");
    json_key(&input, "limit");
    buf_fmt(&input, "\"%u\"", PAGE);
    json_opt_str(&input, "after", page->at->page);
    json_close(&input, '}');
    return run(page->call, "instance.list", &input, &page->scope, out);
}

/* *left: how many may still be checked. *is_last: there are no others. */
static pawl_status check_page(struct page *page, uint64_t *left, bool *is_last)
{
    struct validation *at = page->at;
    const struct node *one;
    struct node *list;
    int64_t nth = 0;
    str what, next;

    TRY(read_page(page, &list));
    for (one = node_first(list, "instances"); one && *left > 0; one = one->next) {
        if (nth++ < at->nth || str_eq(node_text(one, "instance_id"), at->id))
            continue;
        TRY(check_one(page, one, &what));
        add_entry(page, one, what);
        *left -= 1;
    }
    TRY(record(page));
    next = node_text(list, "next");
    *is_last = !one && !next.data;
    if (!one && next.data) {
        at->page = arena_str(&page->call->scope->arena, next);
        TRY_MEMORY(page->call->scope, at->page.data);
        at->nth = 0;
    }
    return PAWL_OK;
}

static pawl_status run_page(const struct op_call *call, struct validation *at, uint64_t *left,
                            bool *is_last)
{
    struct page page = { .call = call, .at = at };
    pawl_status status;

    scope_init(&page.scope, call->scope->arena.heap, LIMIT_SCOPE);
    buf_init(&page.lines, call->scope->arena.heap, LIMIT_BATCH_TEXT);
    status = check_page(&page, left, is_last);
    buf_fini(&page.lines);
    return scope_leave(&page.scope, call->scope, status);
}

static pawl_status fire(const struct op_call *call, struct validation *at, const char *action)
{
    struct node *fired;
    struct buf input;

    begin_input(call, &input);
    json_put_str(&input, "instance_id", at->id);
    json_put_text(&input, "action", action);
    json_put_i64(&input, "expected_sequence", at->next++);
    json_close(&input, '}');
    return run(call, "instance.fire", &input, call->scope, &fired);
}

static pawl_status read_max(const struct op_call *call, uint64_t *out)
{
    int64_t max = 1000;

    node_to_i64(node_find(call->input, "max"), &max);
    if (max < 0 || max > RUN_MAX)
        return scope_fail(call->scope, PAWL_INVALID_REQUEST, "'max': expected 0..%u, found %lld",
                          RUN_MAX, (long long)max);
    *out = (uint64_t)max;
    return PAWL_OK;
}

pawl_status op_validation_run(struct op_call *call, struct buf *out)
{
    struct validation at;
    uint64_t left;
    bool is_last = false;

    TRY(read_max(call, &left));
    TRY(read_validation(call, op_text(call, "instance_id"), &at));
    if (!at.has_ended && left > 0 && str_is(at.state, "pending"))
        TRY(fire(call, &at, "begin"));
    while (!at.has_ended && !is_last && left > 0)
        TRY(run_page(call, &at, &left, &is_last));
    if (!at.has_ended && is_last)
        TRY(fire(call, &at, at.invalid > 0 ? "fail" : "pass"));
    return answer(call, op_text(call, "instance_id"), out);
}

/* ---- cancel ---- */

pawl_status op_validation_cancel(struct op_call *call, struct buf *out)
{
    struct validation at;
    struct node *cancelled;
    struct buf input;

    TRY(read_validation(call, op_text(call, "instance_id"), &at));
    begin_input(call, &input);
    json_put_str(&input, "instance_id", at.id);
    json_opt_str(&input, "actor_ref", op_ref(call, "actor_ref"));
    json_opt_str(&input, "reason", op_ref(call, "reason"));
    json_close(&input, '}');
    TRY(run(call, "instance.cancel", &input, call->scope, &cancelled));
    return answer(call, at.id, out);
}

bool op_fits_schema(struct scope *scope, const struct node *schema, str json)
{
    return input_schema_accept(scope, schema, json) == PAWL_OK;
}
