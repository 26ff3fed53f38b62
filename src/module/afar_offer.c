/* afar_offer.c - what a worker elsewhere says it has: does it match what is in force, and what
 * becomes of it. */
#include "module/afar_int.h"
#include <stdio.h>

static struct afar_type *find_type(const struct afar *afar, const char *name)
{
    struct afar_type *type = afar->types;

    while (type && strcmp(type->type.binding.type->name, name) != 0)
        type = type->next;
    return type;
}

/* Does the offer match what is in force? *is_new: it takes its place. */
static pawl_status compare(struct afar *afar, struct scope *scope, const struct afar_type *type,
                           const struct module_type *offered, str build, bool *is_new)
{
    const struct code_binding *before = &type->type.binding, *now = &offered->binding;
    const struct afar_session *worker = afar_worker_of(afar, type);

    *is_new = now->type->version > before->type->version;
    if (*is_new)
        return PAWL_OK;
    if (now->type->version < before->type->version)
        return scope_fail(
            scope, PAWL_INVALID_REQUEST,
            "hello: version %u of the code type '%s' is offered, and version %u is in "
            "force",
            now->type->version, now->type->name, before->type->version);
    if (str_is(build, type->build) && str_eq(now->source, before->source))
        return PAWL_OK;
    *is_new = !worker;
    return worker
               ? scope_fail(scope, PAWL_INVALID_REQUEST,
                            "hello: version %u of the code type '%s' is run by the worker '%.*s' "
                            "in another build (%.12s); two builds are not mixed: give the new "
                            "one a higher version, or end the workers of the old one",
                            now->type->version, now->type->name, STR_ARG(worker->worker),
                            type->build)
               : PAWL_OK;
}

/* Before the engine has the binding, so that no worker of the build before gets its turns. */
static void put_in_force(struct afar *afar, struct afar_type *type,
                         const struct module_type *offered, str build)
{
    guard_lock(&afar->lock);
    type->afar = afar;
    type->type = *offered;
    (void)snprintf(type->build, sizeof type->build, "%.*s", STR_ARG(build));
    guard_unlock(&afar->lock);
}

/* What is wrong with a hello is wrong with the request. */
static pawl_status take_words(const struct scope *read, struct scope *scope, pawl_status status)
{
    if (status == PAWL_OK)
        return status;
    scope->error = read->error;
    return scope->error.status = status == PAWL_NOT_KNOWN ? PAWL_INVALID_REQUEST : status;
}

/* What comes into force is kept as long as the definition; offers that change nothing leave
 * nothing. */
static pawl_status keep_type(struct afar *afar, struct scope *scope,
                             const struct module_type *offered, struct module_type *out)
{
    str text = arena_str(&afar->kept.arena, offered->binding.source);
    struct node *source = NULL;
    pawl_status status =
        text.data ? node_read_json(&afar->kept, text, &source) : scope_no_memory(&afar->kept);

    if (status == PAWL_OK)
        status = hello_type(&afar->kept, "hello", source, out);
    return take_words(&afar->kept, scope, status);
}

static pawl_status put_type(struct afar *afar, struct scope *scope,
                            const struct module_type *offered, str build, struct afar_type **out)
{
    struct afar_type *type = find_type(afar, offered->binding.type->name);
    struct module_type before, kept;
    struct code_binding binding;
    char build_before[sizeof type->build];
    bool is_new = true, is_added = !type;
    pawl_status status;

    if (type)
        TRY(compare(afar, scope, type, offered, build, &is_new));
    else
        type = ARENA_NEW(&afar->kept.arena, struct afar_type);
    TRY_MEMORY(scope, type);
    *out = type;
    if (!is_new)
        return PAWL_OK;
    TRY(keep_type(afar, scope, offered, &kept));
    before = is_added ? kept : type->type; /* a shard may have it, though another one has failed */
    memcpy(build_before, type->build, sizeof build_before);
    binding = kept.binding;
    binding.run = afar_run_turn;
    binding.context = type;
    put_in_force(afar, type, &kept, build);
    status = afar->host.bind(afar->host.context, scope, &binding);
    if (status != PAWL_OK) {
        put_in_force(afar, type, &before, str_of(build_before));
        return status;
    }
    guard_lock(&afar->lock);
    if (is_added) {
        type->next = afar->types;
        afar->types = type;
    }
    guard_unlock(&afar->lock);
    return PAWL_OK;
}

/* Those that have left make room. */
static void drop_absent(struct afar *afar)
{
    struct afar_session **at = &afar->sessions;

    while (*at) {
        struct afar_session *session = *at;

        if (afar->session_count < SESSIONS || afar_is_there(afar, session)) {
            at = &session->next;
            continue;
        }
        *at = session->next;
        afar->session_count--;
        afar_free_session(afar, session);
    }
}

static pawl_status add_session(struct afar *afar, struct scope *scope, struct afar_session *session)
{
    pawl_status status = PAWL_OK;

    guard_lock(&afar->lock);
    drop_absent(afar);
    if (afar->session_count >= SESSIONS) {
        status = scope_fail(scope, PAWL_OVERLOADED, "%u workers offer code already", SESSIONS);
    } else {
        session->seen_ms = afar_now(afar);
        session->next = afar->sessions;
        afar->sessions = session;
        afar->session_count++;
    }
    guard_unlock(&afar->lock);
    return status;
}

static pawl_status offer_all(struct afar *afar, struct scope *scope, struct afar_session *session,
                             const struct node *types)
{
    session->offered = ARENA_ARRAY(&session->kept.arena, struct offered, types->count + 1u);
    TRY_MEMORY(scope, session->offered);
    for (const struct node *source = types->first; source; source = source->next) {
        struct module_type offered;
        struct offered *row = &session->offered[session->offered_count];

        TRY(take_words(&session->kept, scope,
                       hello_type(&session->kept, "hello", source, &offered)));
        if (!find_type(afar, offered.binding.type->name) &&
            afar->host.is_taken(afar->host.context, offered.binding.type->name))
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "hello: the code type '%s' is run by this server itself; start it "
                              "without that module, or give the type another name",
                              offered.binding.type->name);
        TRY(put_type(afar, scope, &offered, str_of(session->build), &row->type));
        row->version = offered.binding.type->version;
        session->offered_count++;
    }
    return session->offered_count > 0
               ? PAWL_OK
               : scope_fail(scope, PAWL_INVALID_REQUEST, "hello: expected one type or more");
}

/* What is offered is kept: a registration is a definition, and lives as long. */
static pawl_status read_offer(struct scope *scope, const struct node *hello,
                              struct afar_session *session, const struct node **types)
{
    struct node *root = NULL;
    str text = arena_str(&session->kept.arena, hello->raw), build;

    TRY(take_words(&session->kept, scope,
                   text.data ? hello_read(&session->kept, "hello", text, &root)
                             : scope_no_memory(&session->kept)));
    build = node_text(root, "build");
    if (build.size == 0 || build.size >= sizeof session->build)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "hello: expected 'build' of 1..%zu bytes, which stands for the code",
                          sizeof session->build - 1);
    (void)snprintf(session->build, sizeof session->build, "%.*s", STR_ARG(build));
    *types = node_find(root, "types");
    return PAWL_OK;
}

pawl_status afar_offer(struct afar *afar, struct scope *scope, str worker, const struct node *hello,
                       char session_out[AFAR_TOKEN + 1])
{
    struct afar_session *session = heap_new(afar->heap, sizeof *session);
    const struct node *types = NULL;
    pawl_status status;

    TRY_MEMORY(scope, session);
    *session = (struct afar_session){ .holds = { .in = -1, .out = -1 } };
    scope_init(&session->kept, afar->heap, LIMIT_SCOPE);
    session->worker = arena_str(&session->kept.arena, worker);
    afar_token(afar, session->token);
    guard_lock(&afar->offering);
    status = read_offer(scope, hello, session, &types);
    if (status == PAWL_OK)
        status = offer_all(afar, scope, session, types);
    guard_unlock(&afar->offering);
    if (status == PAWL_OK)
        status = add_session(afar, scope, session);
    if (status == PAWL_OK) {
        memcpy(session_out, session->token, sizeof session->token);
        afar->host.came(afar->host.context);
    } else {
        afar_free_session(afar, session);
    }
    return status;
}
