/* access.c - who calls, by a bearer token, and what that token may do.
 *
 * A token is ID.SECRET; the store has the SHA-256 of the secret, which is 32 random bytes, so that
 * no slow hash is needed. An unknown id costs the same work as a wrong secret. What no scope
 * allows is forbidden. */
#include "api/ops_int.h"
#include "api/shards.h"
#include "api/world.h"
#include "base/assert.h"
#include "model/definition.h"
#include "model/rights.h"
#include "model/words.h"

#define SECRET_SIZE 64 /* hexadecimal digits */

static pawl_status hash_secret(struct scope *scope, str secret, char out[2 * SHA_SIZE + 1])
{
    struct sha *sha = sha_new(scope->arena.heap);
    uint8_t hash[SHA_SIZE];

    TRY_MEMORY(scope, sha);
    sha_once(sha, secret, hash);
    sha_free(sha);
    sha_hex(hash, SHA_SIZE, out);
    return PAWL_OK;
}

pawl_status token_secret(struct op_call *call, char secret[SECRET_SIZE + 1],
                         char hash[2 * SHA_SIZE + 1])
{
    uint8_t random[SECRET_SIZE / 2];

    engine_random(op_engine(call), random, sizeof random);
    sha_hex(random, sizeof random, secret);
    return hash_secret(call->scope, (str){ secret, SECRET_SIZE }, hash);
}

static bool is_word(str scope)
{
    static const char *const words[] = { OP_SCOPES, "all" };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(scope, words[i]))
            return true;
    return false;
}

bool scopes_are_valid(str list)
{
    str word, definition;
    bool valid = list.size > 0;

    while (valid && scope_next(&list, &word, &definition))
        valid = is_word(word) && (!definition.data || definition_name_is_valid(definition));
    return valid;
}

/* ---- who ---- */

static pawl_status unauthenticated(struct scope *scope)
{
    return scope_fail(scope, PAWL_UNAUTHENTICATED,
                      "expected a token in force: Authorization: Bearer ID.SECRET");
}

#define NO_HASH "0000000000000000000000000000000000000000000000000000000000000000"

/* The token with this id. For an unknown id, returns a decoy body that matches no
 * secret, read and parsed like a real one: the response time must not reveal which ids exist. */
static pawl_status find_token(pawl *p, struct scope *scope, str id, struct standing_fact *token,
                              struct node **body)
{
    const str decoy = STR("{\"id\":\"0123456789abcdef\",\"due\":0,\"more\":{\"hash\":\"" NO_HASH
                          "\",\"scopes\":\"none\"}}");
    pawl_status status = engine_standing(p->engine, scope, CONTROL_TOKEN, id, token);

    if (status == PAWL_NOT_KNOWN) {
        engine_standing_pretend(p->engine, scope);
        token->body = decoy;
        status = PAWL_OK;
    }
    return status == PAWL_OK ? node_read_json(scope, token->body, body) : status;
}

static pawl_status authenticate_in(pawl *p, struct scope *scope, str bearer,
                                   struct op_principal *out)
{
    bool has_shape =
        bearer.size == STANDING_ID_SIZE + 1 + SECRET_SIZE && bearer.data[STANDING_ID_SIZE] == '.';
    char hash[2 * SHA_SIZE + 1];
    struct node *body = NULL;
    struct standing_fact token = { 0 };
    str wanted;

    TRY(hash_secret(scope, has_shape ? str_from(bearer, STANDING_ID_SIZE + 1) : STR("none"), hash));
    if (has_shape)
        TRY(find_token(p, scope, (str){ bearer.data, STANDING_ID_SIZE }, &token, &body));
    wanted = node_text(node_find(body, "more"), "hash");
    if (!world_same_secret(wanted.size == 2 * SHA_SIZE ? wanted.data : NO_HASH, hash,
                           2 * SHA_SIZE) ||
        (token.due_at_ms && token.due_at_ms <= engine_wall_ms(p->engine)))
        return unauthenticated(scope);
    out->scopes = node_text(node_find(body, "more"), "scopes");
    out->actor = node_text(node_find(body, "more"), "actor");
    out->name = arena_str(&scope->arena, (str){ bearer.data, STANDING_ID_SIZE });
    return PAWL_OK;
}

/* Does a token of the first store count in those beside it? */
static bool reaches_others(str scopes)
{
    str word, definition;
    bool reaches = false;

    while (!reaches && scope_next(&scopes, &word, &definition))
        reaches = definition.size == 0 && (str_is(word, "admin") || str_is(word, "all"));
    return reaches;
}

/* A token belongs to its store; an administrator of the first store reaches the others. */
pawl_status op_authenticate(pawl *p, struct scope *scope, str bearer, struct op_principal *out)
{
    pawl_status status = authenticate_in(shard_home(p), scope, bearer, out);

    if (status != PAWL_UNAUTHENTICATED || !p->first)
        return status;
    status = authenticate_in(p->first, scope, bearer, out);
    if (status == PAWL_OK && !reaches_others(out->scopes))
        return unauthenticated(scope);
    return status;
}

/* For a store that does not exist: answers as op_authenticate() would if the store existed. */
pawl_status op_authenticate_nowhere(pawl *first, struct scope *scope, str bearer)
{
    struct op_principal who = { 0 };
    pawl_status status = authenticate_in(first, scope, bearer, &who); /* as of the store's own */

    if (status == PAWL_OK || status == PAWL_UNAUTHENTICATED)
        status = authenticate_in(first, scope, bearer, &who);
    if (status == PAWL_OK && !reaches_others(who.scopes))
        return unauthenticated(scope);
    return status;
}

bool op_has_tokens(pawl *p)
{
    struct scope scope;
    struct standing_fact *tokens = NULL;
    uint32_t count = 0;
    int64_t now_ms = engine_wall_ms(p->engine);
    bool has = false;

    scope_init(&scope, &p->heap, 0);
    if (engine_standing_list(p->engine, &scope, CONTROL_TOKEN, 1000, &tokens, &count) != PAWL_OK)
        count = 0;
    for (uint32_t i = 0; i < count && !has; i++)
        has = tokens[i].due_at_ms == 0 || tokens[i].due_at_ms > now_ms;
    scope_fini(&scope);
    return has;
}

/* ---- what ---- */

/* The definitions that a call names, each by one of its parameters: all of them must be allowed. */
#define NAMED_MAX 4
struct named_definitions {
    str names[NAMED_MAX]; /* "": an unknown or inline one, which no scope names */
    uint32_t count;
};

static void read_named(pawl *p, struct scope *scope, const struct op *op, const char *param,
                       str value, struct named_definitions *out)
{
    bool is_instance = strcmp(param, "instance_id") == 0 || strcmp(param, "step_id") == 0;
    bool is_definition = strcmp(param, "definition") == 0 || strcmp(param, "against") == 0 ||
                         (strcmp(param, "name") == 0 && strncmp(op->name, "definition.", 11) == 0);
    struct instance_view view;
    str name = STR("");

    if (!is_instance && !is_definition)
        return;
    value.size =
        is_instance && value.size > ID_SIZE ? ID_SIZE : value.size; /* a step's begins so */
    if (is_definition)
        name = reference_name(value);
    else if (engine_get(shard_of_id(p, value)->engine, scope, value, &view) == PAWL_OK &&
             view.definition_name.data)
        name = view.definition_name;
    ASSERT(out->count < NAMED_MAX);
    out->names[out->count++] = name;
}

/* In a batch and in the input of an alarm, all parameters are in the body. */
static void find_named(pawl *p, struct scope *scope, const struct op *op,
                       const struct op_request *request, struct named_definitions *out)
{
    out->count = 0;
    for (const struct op_param *param = op->params; param->name; param++) {
        str value = node_text(request->body, param->name);

        for (uint32_t i = request->pair_count; i > 0; i--)
            if (str_is(request->pairs[i - 1].name, param->name) && request->pairs[i - 1].value.data)
                value = request->pairs[i - 1].value;
        if (value.data)
            read_named(p, scope, op, param->name, value, out);
    }
}

static bool is_for_all(const struct op *op)
{
    return op->scope && (strcmp(op->scope, "none") == 0 || strcmp(op->scope, "any") == 0);
}

/* Does a scope allow `needed` for this definition? name.data NULL: for all of them. */
static bool allows(str scopes, const char *needed, str name)
{
    str word, definition;

    while (scope_next(&scopes, &word, &definition))
        if ((str_is(word, needed) || str_is(word, "all")) &&
            (definition.size == 0 || (name.data && str_eq(name, definition))))
            return true;
    return false;
}

static pawl_status forbid(struct scope *scope, const struct op *op, const struct op_principal *who)
{
    return scope_fail(
        scope, PAWL_FORBIDDEN, "%s needs the scope %s, which this token does not have%s", op->name,
        op->scope ? op->scope : "of no token", str_has(who->scopes, ':') ? " for it" : "");
}

pawl_status op_authorize_early(struct scope *scope, const struct op *op,
                               const struct op_principal *who)
{
    str list = who->scopes, word, definition;

    if (!who->name.data || is_for_all(op) || op->handle == op_alarm_set) /* its input decides */
        return PAWL_OK;
    while (op->scope && scope_next(&list, &word, &definition))
        if (str_is(word, op->scope) || str_is(word, "all"))
            return PAWL_OK;
    return forbid(scope, op, who);
}

static pawl_status authorize_one(pawl *p, struct scope *scope, const struct op *op,
                                 const struct op_request *request, const struct op_principal *who)
{
    struct named_definitions named;
    bool allowed;

    if (is_for_all(op))
        return PAWL_OK;
    allowed = op->scope && allows(who->scopes, op->scope, STR_NONE);
    if (!allowed && op->scope) {
        find_named(p, scope, op, request, &named);
        allowed = named.count > 0;
        for (uint32_t i = 0; i < named.count && allowed; i++)
            allowed = allows(who->scopes, op->scope, named.names[i]);
    }
    return allowed ? PAWL_OK : forbid(scope, op, who);
}

bool op_allows(const struct op_call *call, str definition)
{
    return !call->who.scopes.data || allows(call->who.scopes, call->op->scope, definition);
}

pawl_status op_rights(const struct op_call *call, bool defines, str *out)
{
    *out = STR_NONE;
    if (!call->who.scopes.data || rights_of(&call->scope->arena, call->who.scopes, defines, out))
        return PAWL_OK;
    return scope_no_memory(call->scope);
}

/* B27: what runs with a user's rights, or counts as a user's approval, was begun by that user. A
 * call without an actor is the token's own (op_ref()). */
static pawl_status check_actor(struct scope *scope, const struct op *op,
                               const struct op_request *request, str actor)
{
    const struct op_param *param = op_param_find(op, STR("actor_ref"));
    str given = param && param->place == IN_BODY ? node_text(request->body, "actor_ref") : STR_NONE;

    if (!actor.data || given.size == 0 || str_eq(given, actor))
        return PAWL_OK;
    return scope_fail(scope, PAWL_FORBIDDEN, "this token acts as '%.*s', not as '%.*s'",
                      STR_ARG(words_shown(actor)), STR_ARG(words_shown(given)));
}

/* A worker's acts are recorded under its name, which must be the token's actor or
 * ACTOR/ANYTHING. It is named by a claim, or by the claim in a worker's turn. */
static pawl_status check_worker(struct scope *scope, const struct op *op,
                                const struct op_request *request, str actor)
{
    bool is_turn = op->handle == op_step_complete_many;
    const struct node *claim = is_turn ? node_find(request->body, "claim") : request->body;
    str worker = is_turn || op->handle == op_step_claim ? node_text(claim, "worker") : STR_NONE;

    if (!actor.data || worker.size == 0 || str_eq(worker, actor) ||
        (str_starts(worker, actor) && worker.data[actor.size] == '/'))
        return PAWL_OK;
    return scope_fail(scope, PAWL_FORBIDDEN,
                      "this token acts as '%.*s': expected a worker named '%.*s' or '%.*s/...', "
                      "found '%.*s'",
                      STR_ARG(words_shown(actor)), STR_ARG(words_shown(actor)),
                      STR_ARG(words_shown(actor)), STR_ARG(words_shown(worker)));
}

/* Setting an alarm needs the right to do what the alarm will do, also to set another. */
pawl_status op_authorize(pawl *p, struct scope *scope, const struct op *op,
                         const struct op_request *request)
{
    struct op_request call = *request;

    if (!request->who.name.data)
        return PAWL_OK;
    while (op->handle == op_alarm_set && call.body && call.body->kind == NODE_OBJECT) {
        const struct op *inner = op_find(node_text(call.body, "operation"));

        if (!inner)
            break;
        call = (struct op_request){ .body = node_find(call.body, "input") };
        op = inner;
    }
    TRY(authorize_one(p, scope, op, &call, &request->who));
    TRY(check_actor(scope, op, &call, request->who.actor));
    return check_worker(scope, op, &call, request->who.actor);
}
