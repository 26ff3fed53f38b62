/* module.c - a module as its server sees it: its types and tools, a turn, a call.
 *
 * One child takes one turn at a time; another is begun when all that live are busy, up to CHILDREN.
 * Calls of tools have children of their own, so that a long call holds up no turn. */
#include "module/module.h"
#include "module/module_int.h"
#include <signal.h>
#include <stdio.h>

#define TURN_MS 5000   /* a turn that takes longer does not come back */
#define CALL_MS 121000 /* of a call: a little more than the engine waits */
#define TRIES   2      /* of one turn that ends its process */

/* ---- One turn ------------------------------------------------------------------------- */

struct asked_turn {
    struct module *module;
    const char *type;
    const struct turn_request *request;
    struct scope *scope;
    struct buf frame;
    struct child_process *child;
    uint64_t keep; /* the number under which the child keeps the instance */
};

static void print_turn(struct asked_turn *turn, bool is_whole)
{
    const struct turn_journal *journal = turn->request->journal;
    uint64_t have = 0;

    pthread_mutex_lock(&turn->module->lock);
    if (journal && !is_whole) {
        have = held_find(turn->child, held_key(journal->mark, journal->id));
        if (!have) /* its first turn was taken before it had an id */
            have = held_find(turn->child, held_key(journal->mark, str_of(turn->type)));
    }
    if (journal)
        turn->keep = ++turn->child->numbers;
    pthread_mutex_unlock(&turn->module->lock);
    buf_clear(&turn->frame);
    wire_print_request(turn->type, turn->request, turn->keep, have, &turn->frame);
}

/* A child that no longer has the state to continue from gets the whole state. */
static enum frame_end ask(struct asked_turn *turn, str *out)
{
    struct module *module = turn->module;
    enum frame_end end;

    end = process_ask(module, turn->child, module->turn_ms, turn->scope, &turn->frame, out);
    if (end != FRAME_OK || !turn->request->journal || !wire_is_need(*out))
        return end;
    print_turn(turn, true);
    return process_ask(module, turn->child, module->turn_ms, turn->scope, &turn->frame, out);
}

static pawl_status ask_twice(struct asked_turn *turn, str *out)
{
    struct module *module = turn->module;
    char words[64] = "";

    for (int i = 0; i < TRIES; i++) {
        enum frame_end end;

        TRY(process_need(module, turn->child, turn->scope));
        if (turn->request->journal)
            print_turn(turn, i > 0);
        end = ask(turn, out);
        if (end == FRAME_OK)
            return PAWL_OK;
        if (end == FRAME_NO_MEMORY)
            return scope_no_memory(turn->scope);
        process_end(turn->child, words);
        turn->frame.size = str_before(buf_view(&turn->frame), '\0').size; /* this turn alone */
        if (end == FRAME_LATE)
            (void)snprintf(words, sizeof words, "no answer in %d ms", module->turn_ms);
    }
    return scope_fail(turn->scope, PAWL_PAUSED,
                      "the code of '%s' ended its process twice on this event (%s); set the module "
                      "'%s' right, then resume",
                      turn->type, words, module->path);
}

static void cut_folders(const char *path, const char *words, char *out, size_t size)
{
    const char *name = image_file_name(path), *found;

    out[0] = '\0';
    while ((found = strstr(words, path))) {
        size_t used = strlen(out);

        (void)snprintf(out + used, size - used, "%.*s%s", (int)(found - words), words, name);
        words = found + strlen(path);
    }
    (void)snprintf(out + strlen(out), size - strlen(out), "%s", words);
}

/* The log gets the path. What callers read and what is recorded names the file alone. */
static void report(const struct module *module, struct scope *scope)
{
    char words[sizeof scope->error.message];

    memcpy(words, scope->error.message, sizeof words);
    module->report(module->context, words);
    cut_folders(module->path, words, scope->error.message, sizeof scope->error.message);
}

/* Is the turn taken already? Else the request says how many more are to be taken. */
static bool is_taken_ahead(struct module *module, const char *type, struct buf *request,
                           struct scope *scope, struct turn_answer *out)
{
    bool is_taken;

    pthread_mutex_lock(&module->lock);
    is_taken = ahead_take(&module->ahead, type, buf_view(request), scope, out);
    if (!is_taken && module->ahead.count > 0) {
        buf_byte(request, '\0');
        buf_u64(request, module->ahead.count);
    }
    pthread_mutex_unlock(&module->lock);
    return is_taken;
}

/* Under which mark the instance will be found when the turn is recorded. */
static void note_held(struct asked_turn *turn, const struct turn_answer *answer)
{
    const struct turn_journal *journal = turn->request->journal;
    uint64_t mark = journal->fresh_mark;

    if (answer->note.data)
        mark = journal_chain(mark, answer->note);
    if (answer->state.data)
        mark = journal_chain(0, answer->state);
    if (answer->end != TURN_WAITS)
        return;
    pthread_mutex_lock(&turn->module->lock);
    held_put(turn->module->heap, turn->child,
             held_key(mark, journal->id.size > 0 ? journal->id : str_of(turn->type)), turn->keep);
    pthread_mutex_unlock(&turn->module->lock);
}

/* It was taken behind the step that it is for. */
static bool is_foreseen(struct asked_turn *turn, struct turn_answer *out)
{
    struct foreseen_turn found;

    if (!turn->request->journal ||
        !foreseen_take(turn->module, turn->request, turn->scope, &found, out))
        return false;
    turn->child = found.child;
    turn->keep = found.keep;
    note_held(turn, out);
    return true;
}

static pawl_status take_answer(struct asked_turn *turn, str answers, struct turn_answer *out)
{
    struct module *module = turn->module;
    str answer = STR_NONE;

    (void)str_take(&answers, '\0', &answer);
    TRY(wire_read_answer(turn->scope, answer, out));
    if (turn->request->journal) {
        note_held(turn, out);
        return PAWL_OK;
    }
    if (!module->is_near)
        return PAWL_OK;
    pthread_mutex_lock(&module->lock);
    ahead_keep(&module->ahead, turn->type, out, answers);
    pthread_mutex_unlock(&module->lock);
    return PAWL_OK;
}

static pawl_status ask_child(struct asked_turn *turn, struct turn_answer *out)
{
    struct module *module = turn->module;
    const struct turn_journal *journal = turn->request->journal;
    size_t size = turn->frame.size;
    str answers = STR_NONE;
    pawl_status status;

    turn->child = process_take(module, module->children, CHILDREN,
                               journal ? held_key(journal->mark, journal->id) : 0);
    status = ask_twice(turn, &answers);
    if (!journal && turn->frame.size < size) {
        pthread_mutex_lock(&module->lock);
        module->ahead.is_off = true;
        pthread_mutex_unlock(&module->lock);
    }
    if (status == PAWL_OK)
        status = take_answer(turn, answers, out);
    process_give_back(module, turn->child);
    if (status == PAWL_PAUSED || status == PAWL_NOT_KNOWN)
        report(module, turn->scope);
    return status;
}

static pawl_status run_turn(const struct code_binding *binding, const struct turn_request *request,
                            struct scope *scope, struct turn_answer *out)
{
    struct module *module = binding->context;
    struct asked_turn turn = { module, binding->type->name, request, scope, { 0 }, NULL, 0 };
    bool is_alone = !module->is_near || request->journal; /* no turn is taken ahead */
    pawl_status status = PAWL_OK;

    if (is_foreseen(&turn, out))
        return PAWL_OK;
    buf_init(&turn.frame, module->heap, FRAME_MAX);
    if (!request->journal)
        wire_print_request(turn.type, request, 0, 0, &turn.frame);
    if (is_alone || !is_taken_ahead(module, turn.type, &turn.frame, scope, out))
        status = ask_child(&turn, out);
    buf_fini(&turn.frame);
    return status;
}

/* ---- One call of a tool ----------------------------------------------------------------- */

void call_print(const pawl_tool_call *call, struct buf *out)
{
    json_put_text(out, "tool", call->tool);
    json_put_raw(out, "args", str_of(call->args));
    json_put_text(out, "key", call->idempotency_key);
    json_put_text(out, "instance", call->instance_id);
    json_put_text(out, "step", call->step);
    json_put_u64(out, "attempt", call->attempt);
    if (call->traceparent)
        json_put_text(out, "trace", call->traceparent);
}

static void fail_call(struct scope *scope, const char *words, struct module_answer *out)
{
    struct buf buf;

    buf_init(&buf, scope->arena.heap, LIMIT_TEXT);
    json_text(&buf, words);
    *out = (struct module_answer){ .has_failed = true, .json = buf_take(&buf, &scope->arena) };
    if (!out->json.data)
        out->json = STR("\"no memory\"");
}

static int64_t took_ms(const struct node *root)
{
    const struct node *took = node_find(root, "ms");
    int64_t ms = 0;

    return took && node_to_i64(took, &ms) && ms > 0 ? ms : 0;
}

void call_take_answer(struct scope *scope, const struct node *root, struct module_answer *out)
{
    const struct node *result = node_find(root, "result"), *failed = node_find(root, "failed");

    if (!result && !failed) {
        fail_call(scope, "the process of the tool answered neither a result nor an error", out);
        return;
    }
    *out = (struct module_answer){ .took_ms = took_ms(root),
                                   .has_failed = failed != NULL,
                                   .is_final = failed && node_find(root, "final"),
                                   .json = failed ? failed->raw : result->raw };
}

static void read_answer(struct scope *scope, str text, struct module_answer *out)
{
    struct node *root = NULL;

    if (node_read_json(scope, text, &root) == PAWL_OK)
        call_take_answer(scope, root, out);
    else
        fail_call(scope, "the process of the tool gave an answer that cannot be read", out);
}

/* A call is not repeated here: the engine does so, by the policy of the type that called. */
void module_call(struct module *module, const pawl_tool_call *call, struct scope *scope,
                 struct module_answer *out)
{
    struct child_process *child = process_take(module, module->callers, CALLERS, 0);
    char words[64] = "", all[200];
    enum frame_end end;
    struct buf frame;
    str text = STR_NONE;

    buf_init(&frame, module->heap, FRAME_MAX);
    json_open(&frame, '{');
    call_print(call, &frame);
    json_close(&frame, '}');
    if (process_need(module, child, scope) != PAWL_OK) {
        report(module, scope);
        fail_call(scope, scope->error.message, out);
    } else if ((end = process_ask(module, child, CALL_MS, scope, &frame, &text)) == FRAME_OK) {
        read_answer(scope, text, out);
    } else {
        process_end(child, words);
        (void)snprintf(all, sizeof all, "the tool '%.60s' ended its process (%s)", call->tool,
                       end == FRAME_LATE ? "no answer in time" : words);
        fail_call(scope, all, out);
        out->was_lost = true;
    }
    process_give_back(module, child);
    buf_fini(&frame);
}

/* ---- Opening -------------------------------------------------------------------------- */

static const char *const *names_of(struct scope *scope, const struct node *source, const char *key)
{
    const struct node *list = node_find(source, key);
    const char **names = ARENA_ARRAY(&scope->arena, const char *, list ? list->count + 1u : 1u);
    uint32_t count = 0;

    for (const struct node *name = list ? list->first : NULL; name && names; name = name->next)
        names[count++] = name->kind == NODE_STRING ? name->text.data : ""; /* refused by name */
    return list ? (const char *const *)names : NULL;
}

static void elsewhere(void *context, pawl_turn *turn, void *state, const pawl_event *event)
{
    (void)context;
    (void)state;
    (void)event;
    pawl_turn_fail(turn, "\"this handler is in another process\"");
}

static pawl_status check_source(struct scope *kept, const char *path, const struct node *source,
                                int64_t *version)
{
    const struct node *name = node_find(source, "code"), *number = node_find(source, "version");

    *version = 1;
    if (source->kind == NODE_OBJECT && name && name->kind == NODE_STRING &&
        (!number || (node_to_i64(number, version) && *version >= 1 && *version <= UINT32_MAX)))
        return PAWL_OK;
    return scope_fail(
        kept, PAWL_NOT_KNOWN,
        "module '%s': expected a type as an object with a text 'code' and a 'version' "
        "of 1 or more, found %.*s",
        path, (int)(source->raw.size < 80 ? source->raw.size : 80), source->raw.data);
}

pawl_status hello_type(struct scope *kept, const char *path, const struct node *source,
                       struct module_type *out)
{
    pawl_code_type *type = ARENA_NEW(&kept->arena, pawl_code_type);
    const struct node *replay = node_find(source, "replay");
    int64_t number;

    TRY_MEMORY(kept, type);
    TRY(check_source(kept, path, source, &number));
    type->name = node_find(source, "code")->text.data;
    type->version = (uint32_t)number;
    type->timers = names_of(kept, source, "timers");
    type->signals = names_of(kept, source, "signals");
    type->calls = names_of(kept, source, "calls");
    type->externals = names_of(kept, source, "externals");
    type->children = names_of(kept, source, "children");
    type->buffered = names_of(kept, source, "buffered");
    type->phases = names_of(kept, source, "phases");
    type->handle = elsewhere;
    *out = (struct module_type){ { .type = type,
                                   .source = source->raw,
                                   .is_replayed = replay && str_is(replay->raw, "true") } };
    return kept->arena.failed ? scope_no_memory(kept) : PAWL_OK;
}

static pawl_status read_type(struct module *module, const struct node *source,
                             struct module_type *out)
{
    TRY(hello_type(&module->kept, module->path, source, out));
    out->binding.run = run_turn;
    out->binding.context = module;
    return PAWL_OK;
}

static pawl_status read_types(struct module *module, const struct node *types)
{
    module->types = ARENA_ARRAY(&module->kept.arena, struct module_type, types->count + 1u);
    TRY_MEMORY(&module->kept, module->types);
    for (const struct node *type = types->first; type; type = type->next)
        TRY(read_type(module, type, &module->types[module->type_count++]));
    return PAWL_OK;
}

static pawl_status read_hello(struct module *module)
{
    struct node *root = NULL;
    str hello, build;

    TRY(process_begin(module, &module->children[0], &module->kept, &hello));
    TRY(hello_read(&module->kept, module->path, hello, &root));
    module->children[0].is_begun = true;
    build = node_text(root, "build");
    module->takes_many = node_find(root, "many") != NULL;
    if (module->command)
        (void)snprintf(module->digest, sizeof module->digest, "%.*s", STR_ARG(build));
    module->tools = (const char **)(uintptr_t)names_of(&module->kept, root, "tools");
    while (module->tools && module->tools[module->tool_count])
        module->tool_count++;
    return read_types(module, node_find(root, "types"));
}

static struct module *make_module(const struct heap *heap, const struct module_options *options)
{
    struct module *module = heap_new(heap, sizeof *module);
    pthread_condattr_t monotonic;

    if (!module)
        return NULL;
    *module = (struct module){ .heap = heap,
                               .env = options->env,
                               .turn_ms = options->turn_ms > 0 ? options->turn_ms : TURN_MS,
                               .is_near = options->is_near,
                               .report = options->report,
                               .context = options->context,
                               .image.fd = -1 };
    for (uint32_t i = 0; i < CHILDREN; i++)
        module->children[i] = (struct child_process){ .in = -1, .out = -1 };
    for (uint32_t i = 0; i < CALLERS; i++)
        module->callers[i] = (struct child_process){ .in = -1, .out = -1 };
    ahead_init(&module->ahead, heap);
    pthread_mutex_init(&module->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&module->freed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    scope_init(&module->kept, heap, LIMIT_SCOPE);
    module->program = arena_text(&module->kept.arena, str_of(options->program));
    module->path = arena_text(&module->kept.arena, str_of(options->path));
    return module;
}

pawl_status module_open(const struct heap *heap, const struct module_options *options,
                        struct scope *scope, struct module **out)
{
    struct module *module = make_module(heap, options);
    pawl_status status;

    TRY_MEMORY(scope, module);
    status = module->program && module->path
                 ? command_split(&module->kept, module->path, &module->command)
                 : scope_no_memory(&module->kept);
    if (status == PAWL_OK && !module->command) {
        status = image_read(&module->kept, module->path, &module->image);
        sha_hex(module->image.sha, SHA_SIZE, module->digest);
    }
    if (status == PAWL_OK)
        status = read_hello(module);
    if (status == PAWL_OK) {
        *out = module;
        return PAWL_OK;
    }
    scope->error = module->kept.error;
    module_close(module);
    return status;
}

pawl_status module_open_again(const struct module *module, struct scope *scope, struct module **out)
{
    struct module_options options = { .env = module->env,
                                      .program = module->program,
                                      .path = module->path,
                                      .turn_ms = module->turn_ms,
                                      .is_near = module->is_near,
                                      .report = module->report,
                                      .context = module->context };

    return module_open(module->heap, &options, scope, out);
}

void module_retire(struct module *module)
{
    char words[64];

    pthread_mutex_lock(&module->lock);
    module->is_retired = true;
    for (uint32_t i = 0; i < CHILDREN; i++)
        if (!module->children[i].is_busy)
            process_end(&module->children[i], words);
    for (uint32_t i = 0; i < CALLERS; i++)
        if (!module->callers[i].is_busy)
            process_end(&module->callers[i], words);
    pthread_mutex_unlock(&module->lock);
}

void module_close(struct module *module)
{
    const struct heap *heap;
    char words[64];

    if (!module)
        return;
    heap = module->heap;
    for (uint32_t i = 0; i < CHILDREN + CALLERS; i++) {
        struct child_process *child =
            i < CHILDREN ? &module->children[i] : &module->callers[i - CHILDREN];

        process_end(child, words);
        held_free(heap, child);
    }
    image_close(&module->image);
    scope_fini(&module->kept);
    ahead_fini(&module->ahead);
    foreseen_free(module);
    pthread_cond_destroy(&module->freed);
    pthread_mutex_destroy(&module->lock);
    heap_free(heap, module, sizeof *module);
}

uint32_t module_type_count(const struct module *module)
{
    return module->type_count;
}

const struct module_type *module_type_at(const struct module *module, uint32_t index)
{
    return &module->types[index];
}

bool module_is_retired(struct module *module)
{
    bool is_retired;

    pthread_mutex_lock(&module->lock);
    is_retired = module->is_retired;
    pthread_mutex_unlock(&module->lock);
    return is_retired;
}

const char *module_tool_at(const struct module *module, uint32_t index)
{
    return index < module->tool_count ? module->tools[index] : NULL;
}

const char *module_path(const struct module *module)
{
    return module->path;
}

const char *module_file_name(const struct module *module)
{
    return image_file_name(module->path);
}

const char *module_digest(const struct module *module)
{
    return module->digest;
}
