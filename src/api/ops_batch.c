/* ops_batch.c - many operations in one request, a line each: {"operation": NAME, "input": {...}}.
 *
 * Lines are taken in order. Fires that follow each other go to the engine together and share a
 * commit, and so do creations; any other operation waits until those before it are done, so that a
 * line may rely on them. What is wrong with a line is answered in its place; so is what its caller
 * may not do. */
#include "api/key.h"
#include "api/ops_int.h"
#include "api/shards.h"
#include "base/grow.h"
#include "base/limits.h"
#include "engine/workers.h"

#define GROUP_LINES 1000u             /* fires or creations that share a commit */
#define GROUP_BYTES ((size_t)1 << 20) /* of lines that are held at once */
#define LINE_ROOM   2048u             /* kept for the answer of each line that is to come */

/* Lines that wait for their group. */
struct batch_line {
    pawl_status status; /* other than OK: rejected before the engine saw it */
    const char *words;
};

struct batch_call {
    struct op_call *call;
    struct buf *out;
    struct scope scope; /* of the present group */
    const struct op *op; /* its operation, fire or create; NULL: no line yet */
    struct batch_line *lines;           /* these three are in the call's own scope */
    struct batch_fire *fires;     /* of the lines that are OK, in order; */
    struct batch_create *creates; /* or these */
    size_t count, item_count, bytes;
    struct claimed *given; /* to workers, by all lines; in the call's own scope */
    uint32_t given_count, given_capacity;
    uint64_t line_number, line_count;
};

static bool is_fire(const struct op *op)
{
    return op->handle == op_instance_fire;
}

/* ---- Answers ---- */

static void answer_open(struct buf *out, int http_status)
{
    buf_byte(out, '{'); /* json_open() would see the line before, and put a comma */
    json_put_i64(out, "status", http_status);
    json_key(out, "body");
}

static void answer_close(struct buf *out)
{
    json_close(out, '}');
    buf_byte(out, '\n');
}

static void refuse(struct buf *out, pawl_status status, const char *words)
{
    answer_open(out, pawl_status_http(status));
    op_problem_remote(status, words, out);
    answer_close(out);
}

/* An answer may hold line ends that were supplied (payloads, declarations); between the tokens of
 * JSON a space is as good. */
static void accept_other(struct buf *out, const struct op_answer *answer, str body)
{
    answer_open(out, answer->http_status);
    if (strcmp(answer->content_type, "application/json") != 0)
        json_str(out, body);
    else
        for (size_t i = 0; i < body.size; i++)
            buf_byte(out, (unsigned char)(memchr("\n\r", body.data[i], 2) ? ' ' : body.data[i]));
    answer_close(out);
}

/* The n-th fire or creation. A failure of the store is that of each that had been accepted. */
static void answer_item(struct batch_call *batch, size_t n, pawl_status stored)
{
    const struct batch_fire *fire = is_fire(batch->op) ? &batch->fires[n] : NULL;
    const struct batch_create *create = &batch->creates[n];
    pawl_status status = fire ? fire->status : create->status;
    const char *words = fire ? fire->words : create->words;

    if (status == PAWL_OK)
        status = stored;
    if (status != PAWL_OK) {
        refuse(batch->out, status, words ? words : batch->scope.error.message);
        return;
    }
    answer_open(batch->out, batch->op->http_status);
    json_open(batch->out, '{');
    if (fire)
        print_fired(&fire->fired, batch->out);
    else
        print_created_warned(&batch->scope, &create->created, create->args.input, batch->out);
    json_close(batch->out, '}');
    answer_close(batch->out);
}

/* ---- A group ---- */

static void group_clear(struct batch_call *batch)
{
    scope_clear(&batch->scope);
    batch->op = NULL;
    batch->count = batch->item_count = batch->bytes = 0;
}

/* Room for the lines of any group, once for all of them. */
static pawl_status group_begin(struct batch_call *batch)
{
    struct arena *arena = &batch->call->scope->arena;
    size_t most = batch->line_count < GROUP_LINES ? (size_t)batch->line_count : GROUP_LINES;

    if (!batch->lines)
        batch->lines = ARENA_ARRAY(arena, struct batch_line, most);
    if (!batch->fires)
        batch->fires = ARENA_ARRAY(arena, struct batch_fire, most);
    if (!batch->creates)
        batch->creates = ARENA_ARRAY(arena, struct batch_create, most);
    return batch->lines && batch->fires && batch->creates ? PAWL_OK
                                                           : scope_no_memory(&batch->scope);
}

static void group_run(struct batch_call *batch)
{
    pawl *p = batch->call->p;
    pawl_status stored = PAWL_OK;
    size_t next = 0;

    if (batch->item_count > 0 && is_fire(batch->op))
        stored = shards_fire(p, &batch->scope, batch->fires, batch->item_count);
    else if (batch->item_count > 0)
        stored = shards_create(p, &batch->scope, batch->creates, batch->item_count);
    for (size_t i = 0; i < batch->count; i++)
        if (batch->lines[i].status != PAWL_OK)
            refuse(batch->out, batch->lines[i].status, batch->lines[i].words);
        else
            answer_item(batch, next++, stored);
    group_clear(batch);
}

static void group_add(struct batch_call *batch, pawl_status status, const struct op_call *call,
                      size_t size)
{
    struct fire_args fire = { 0 };
    struct create_args create = { 0 };

    if (status == PAWL_OK && is_fire(call->op))
        fire_read(call, &fire);
    else if (status == PAWL_OK)
        status = create_read(call, &create);
    batch->bytes += size;
    batch->lines[batch->count++] = (struct batch_line){
        .status = status,
        .words = status != PAWL_OK
                     ? arena_text(&batch->scope.arena, str_of(batch->scope.error.message))
                     : NULL,
    };
    if (status != PAWL_OK)
        return;
    batch->op = call->op;
    if (is_fire(call->op))
        batch->fires[batch->item_count++] = (struct batch_fire){ .args = fire };
    else
        batch->creates[batch->item_count++] = (struct batch_create){ .args = create };
}

/* ---- Lines ---- */

static pawl_status find_operation(struct scope *scope, const struct node *line,
                                  const struct op **out)
{
    const struct node *name = node_find(line, "operation");
    const struct op *op;

    if (!name || name->kind != NODE_STRING)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "'operation': expected the name of an operation, found %s",
                          name ? node_kind_name(name->kind) : "none");
    op = op_find(name->text);
    if (!op || !op->path)
        return scope_fail(scope, PAWL_NOT_KNOWN, "no operation '%.*s'", STR_ARG(name->text));
    if (op->handle == op_batch || (op->flags & OP_STREAM))
        return scope_fail(scope, PAWL_INVALID_REQUEST, "'%s' cannot be part of a batch", op->name);
    *out = op;
    return PAWL_OK;
}

static pawl_status check_members(struct scope *scope, const struct node *line)
{
    if (line->kind != NODE_OBJECT)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "a line: expected an object with 'operation' and 'input', found %s",
                          node_kind_name(line->kind));
    for (const struct node *member = line->first; member; member = member->next)
        if (!str_is(member->key, "operation") && !str_is(member->key, "input"))
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "unknown field '%.*s': a line takes operation, input",
                              STR_ARG(member->key));
    return PAWL_OK;
}

/* A line without a key of its own has a part of the batch's: what was done of a batch that was cut
 * short is answered when it is repeated, and the rest is done. */
static pawl_status share_key(struct batch_call *batch, struct op_call *line)
{
    if (!batch->call->key || line->key || !(line->op->flags & OP_WRITES))
        return PAWL_OK;
    if (line->op->flags & OP_NO_KEY)
        return scope_fail(&batch->scope, PAWL_INVALID_REQUEST,
                          "%s cannot be part of a batch with a key: its answer is not kept",
                          line->op->name);
    TRY(key_nth(&batch->scope, batch->call->key, batch->line_number, &line->key));
    line->p = shard_route(batch->call->p, line->op, line->input, line->key);
    return PAWL_OK;
}

static pawl_status read_line(struct batch_call *batch, str text, struct op_call *out)
{
    static struct node nothing = { .kind = NODE_OBJECT };
    struct scope *scope = &batch->scope;
    const struct op *op = NULL;
    struct node *line, *input;

    if (text.size > LIMIT_TEXT)
        return scope_fail(scope, PAWL_TOO_LARGE, "the line is over %u bytes", LIMIT_TEXT);
    TRY(node_read_json(scope, text, &line));
    TRY(check_members(scope, line));
    TRY(find_operation(scope, line, &op));
    input = node_find(line, "input");
    if (!input || input->kind == NODE_NULL)
        input = &nothing;
    TRY(op_authorize(batch->call->p, scope, op,
                     &(struct op_request){ .body = input, .who = batch->call->who }));
    TRY(op_prepare_whole(batch->call->p, op, input, &batch->call->who, scope, out));
    return share_key(batch, out);
}

/* Should the answer of the whole batch not be sent, the steps of all its lines are given back.
 * Keeps what engine_claim_return() asks for: the line's own texts go with its scope. */
static pawl_status note_given(struct batch_call *batch, const struct op_given *given)
{
    uint32_t before = batch->given_count;

    for (uint32_t i = 0; i < given->count; i++) {
        const struct claimed *step = &given->steps[i];
        struct claimed *one;

        if (!GROW(&batch->call->scope->arena, batch->given, batch->given_count,
                  batch->given_capacity)) {
            batch->given_count = before;
            op_not_sent(batch->call->p, given);
            return scope_no_memory(&batch->scope);
        }
        one = &batch->given[batch->given_count++];
        *one = (struct claimed){ .instance = step->instance, .ordinal = step->ordinal };
        memcpy(one->lease, step->lease, sizeof one->lease);
    }
    batch->call->given = (struct op_given){ batch->given, batch->given_count };
    return PAWL_OK;
}

/* What is read leaves room for the answers of the lines behind it: what they write is not undone
 * for want of it. */
static size_t room_for(const struct batch_call *batch, const struct op *op)
{
    const struct buf *out = batch->out;
    uint64_t left = op->flags & OP_WRITES ? 0 : batch->line_count - batch->line_number;
    size_t taken = out->size + (size_t)left * LINE_ROOM;

    return taken < out->limit ? out->limit - taken : 0;
}

static pawl_status fail_room(struct batch_call *batch, const struct op *op)
{
    return scope_fail(
        &batch->scope, PAWL_TOO_LARGE,
        "the answers of a batch are at most %zu MiB together: ask for this one alone%s",
        batch->out->limit >> 20,
        op_has_pages(op) ? ", or for a page of it (limit, and then after)" : "");
}

/* Adds the answer of a line, if there is room for it. */
static pawl_status add_answer(struct batch_call *batch, const struct op *op,
                              const struct op_answer *answer, str body)
{
    struct buf *out = batch->out;
    size_t limit = out->limit, before = out->size;

    out->limit = before + room_for(batch, op);
    accept_other(out, answer, body);
    out->limit = limit;
    if (!out->failed || op->flags & OP_WRITES)
        return PAWL_OK;
    out->failed = false;
    out->size = before;
    return fail_room(batch, op);
}

static void run_other(struct batch_call *batch, struct op_call *call)
{
    size_t room = room_for(batch, call->op);
    bool is_short = !(call->op->flags & OP_WRITES) && room < LIMIT_SCOPE;
    struct op_answer answer;
    struct buf body;
    pawl_status status;

    buf_init(&body, &batch->call->p->heap, is_short ? room : LIMIT_SCOPE);
    status = op_perform(call, &body, &answer);
    if (status != PAWL_OK && body.failed && is_short)
        status = fail_room(batch, call->op);
    if (status == PAWL_OK)
        status = note_given(batch, &answer.given);
    if (status == PAWL_OK)
        status = add_answer(batch, call->op, &answer, buf_view(&body));
    if (status != PAWL_OK)
        refuse(batch->out, status, batch->scope.error.message);
    buf_fini(&body);
}

/* What does not go with the present group: another operation may not overtake the lines before
 * it, and a line that finds no memory beside them may find it alone. */
static bool leaves_group(const struct batch_call *batch, pawl_status status, const struct op_call *call)
{
    bool is_grouped = status == PAWL_OK &&
                      (is_fire(call->op) || call->op->handle == op_instance_create) &&
                      !op_is_away(call); /* else another node does it */

    return status == PAWL_NO_MEMORY ||
           (status == PAWL_OK && (!is_grouped || (batch->op && batch->op != call->op)));
}

static void run_alone(struct batch_call *batch, pawl_status status, struct op_call *call)
{
    if (status == PAWL_OK)
        run_other(batch, call);
    else
        refuse(batch->out, status, batch->scope.error.message);
    group_clear(batch);
}

/* Running the group ends its scope, so that the line is read again. */
static void take_line(struct batch_call *batch, str text)
{
    struct op_call call = { 0 };
    pawl_status status;

    if (batch->count == GROUP_LINES || batch->bytes > GROUP_BYTES)
        group_run(batch);
    status = group_begin(batch);
    if (status == PAWL_OK)
        status = read_line(batch, text, &call);
    if (leaves_group(batch, status, &call) && batch->count > 0) {
        group_run(batch);
        status = read_line(batch, text, &call);
    }
    if (leaves_group(batch, status, &call)) {
        run_alone(batch, status, &call);
        return;
    }
    if (group_begin(batch) == PAWL_OK)
        group_add(batch, status, &call, text.size);
    else
        run_alone(batch, PAWL_NO_MEMORY, NULL);
}

/* ---- The whole ---- */

/* The next line that is not blank. False: no line is left. */
static bool next_line(str *rest, str *out)
{
    while (str_take(rest, '\n', out))
        if (!str_is_blank(*out))
            return true;
    return false;
}

pawl_status op_batch(struct op_call *call, struct buf *out)
{
    struct batch_call batch = { .call = call, .out = out };
    str rest = op_text(call, "text"), line;

    for (str left = rest; next_line(&left, &line);)
        if (++batch.line_count > LIMIT_BATCH)
            return scope_fail(call->scope, PAWL_TOO_LARGE, "a batch has at most %u lines",
                              (unsigned)LIMIT_BATCH);
    call->content_type = OP_BATCH_TYPE;
    scope_init(&batch.scope, &call->p->heap, LIMIT_SCOPE);
    batch.scope.trace = call->scope->trace;
    for (; next_line(&rest, &line) && !out->failed; batch.line_number++)
        take_line(&batch, line);
    group_run(&batch);
    scope_fini(&batch.scope);
    return PAWL_OK;
}
