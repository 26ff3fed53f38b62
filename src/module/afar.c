/* afar.c - turns that workers elsewhere take. */
#include "base/guard.h"
#include "base/sha.h"
#include "base/time.h"
#include "env/env.h"
#include "module/afar_int.h"
#include "module/module_int.h"
#include <stdio.h>

int64_t afar_now(const struct afar *afar)
{
    return afar->env->tick_ms(afar->env);
}

void afar_token(const struct afar *afar, char out[AFAR_TOKEN + 1])
{
    uint8_t random[AFAR_TOKEN / 2];

    afar->env->random(afar->env, random, sizeof random);
    sha_hex(random, sizeof random, out);
}

struct afar *afar_new(const struct heap *heap, struct env *env, const struct afar_host *host)
{
    struct afar *afar = heap_new(heap, sizeof *afar);
    pthread_condattr_t monotonic;

    if (!afar)
        return NULL;
    *afar = (struct afar){ .heap = heap, .env = env, .host = *host };
    guard_init(&afar->lock);
    guard_init(&afar->offering);
    scope_init(&afar->kept, heap, LIMIT_SCOPE);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&afar->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return afar;
}

void afar_stop(struct afar *afar)
{
    if (!afar)
        return;
    guard_lock(&afar->lock);
    afar->is_stopping = true;
    pthread_cond_broadcast(&afar->changed);
    guard_unlock(&afar->lock);
}

void afar_free_session(struct afar *afar, struct afar_session *session)
{
    held_free(afar->heap, &session->holds);
    scope_fini(&session->kept);
    heap_free(afar->heap, session, sizeof *session);
}

void afar_free(struct afar *afar)
{
    if (!afar)
        return;
    for (struct afar_session *session = afar->sessions, *next; session; session = next) {
        next = session->next;
        afar_free_session(afar, session);
    }
    scope_fini(&afar->kept);
    pthread_cond_destroy(&afar->changed);
    guard_fini(&afar->lock);
    guard_fini(&afar->offering);
    heap_free(afar->heap, afar, sizeof *afar);
}

/* ---- Who is there ---------------------------------------------------------------------------- */

static bool holds_turn(const struct afar *afar, const struct afar_session *session)
{
    for (const struct afar_turn *turn = afar->turns; turn; turn = turn->next)
        if (turn->session == session && turn->stage != TURN_QUEUED)
            return true;
    return false;
}

static bool is_waiting(const struct afar *afar, const struct afar_session *session)
{
    for (const struct afar_claim *claim = afar->claims; claim; claim = claim->next)
        if (str_is(claim->session, session->token))
            return true;
    return false;
}

bool afar_is_there(const struct afar *afar, const struct afar_session *session)
{
    return afar_now(afar) - session->seen_ms < THERE_MS || is_waiting(afar, session) ||
           holds_turn(afar, session);
}

static bool is_in_force(const struct afar_session *session, const struct offered *offered)
{
    return offered->version == offered->type->type.binding.type->version &&
           strcmp(session->build, offered->type->build) == 0;
}

static bool serves(const struct afar_session *session, const struct afar_type *type)
{
    for (uint32_t i = 0; i < session->offered_count; i++)
        if (session->offered[i].type == type)
            return is_in_force(session, &session->offered[i]);
    return false;
}

const struct afar_session *afar_worker_of(const struct afar *afar, const struct afar_type *type)
{
    for (const struct afar_session *session = afar->sessions; session; session = session->next)
        if (serves(session, type) && afar_is_there(afar, session))
            return session;
    return NULL;
}

static struct afar_session *find_session(const struct afar *afar, str token)
{
    struct afar_session *session = afar->sessions;

    while (session && !str_is(token, session->token))
        session = session->next;
    return session;
}

/* The claims that wait and may have this turn; the first whose worker has the instance alone, if
 * there is one. Their waiters do no more than note it. */
static void call_claims(struct afar *afar, const struct afar_type *type)
{
    for (struct afar_claim *claim = afar->claims; claim; claim = claim->next) {
        const struct afar_session *session = find_session(afar, claim->session);

        if (session && serves(session, type))
            claim->waiter.wake(claim->waiter.context);
    }
}

/* ---- A turn, by the thread that decides ----------------------------------------------------- */

static pawl_status fail_absent(const struct afar_turn *turn)
{
    return scope_fail(turn->scope, PAWL_NOT_KNOWN,
                      "no worker for the code type '%s' is there; its events wait until one claims "
                      "turns",
                      turn->type->type.binding.type->name);
}

/* Its lease has run out, or its patience. */
static pawl_status look_at_time(struct afar *afar, struct afar_turn *turn)
{
    const char *name = turn->type->type.binding.type->name;

    if (turn->stage == TURN_QUEUED && !afar_worker_of(afar, turn->type))
        return fail_absent(turn);
    if (afar_now(afar) < turn->until_ms)
        return PAWL_OK;
    if (turn->stage == TURN_QUEUED)
        return scope_fail(turn->scope, PAWL_OVERLOADED,
                          "the workers of the code type '%s' were busy for %d s; add workers", name,
                          BUSY_MS / 1000);
    if (turn->leases >= AFAR_TRIES)
        return scope_fail(
            turn->scope, PAWL_PAUSED,
            "%u workers in turn did not answer this turn of '%s' within their leases; "
            "set the code right, then resume",
            turn->leases, name);
    turn->stage = TURN_QUEUED;
    turn->session = NULL;
    turn->lease[0] = '\0';
    turn->until_ms = afar_now(afar) + BUSY_MS;
    call_claims(afar, turn->type);
    return PAWL_OK;
}

static pawl_status admit(struct afar *afar, const struct afar_turn *turn)
{
    if (afar->is_stopping)
        return fail_absent(turn);
    if (!afar_worker_of(afar, turn->type))
        return fail_absent(turn);
    if (afar->waiting >= AFAR_THREADS)
        return scope_fail(turn->scope, PAWL_OVERLOADED,
                          "%u turns are with workers elsewhere already; try later", afar->waiting);
    return PAWL_OK;
}

static void enqueue(struct afar *afar, struct afar_turn *turn)
{
    struct afar_turn **last = &afar->turns;

    while (*last)
        last = &(*last)->next;
    *last = turn;
    turn->number = ++afar->numbers;
    turn->until_ms = afar_now(afar) + BUSY_MS;
    afar->waiting++;
    call_claims(afar, turn->type);
}

static void dequeue(struct afar *afar, struct afar_turn *turn)
{
    struct afar_turn **at = &afar->turns;

    while (*at != turn)
        at = &(*at)->next;
    *at = turn->next;
    afar->waiting--;
}

static pawl_status await_answer(struct afar *afar, struct afar_turn *turn)
{
    while (turn->stage != TURN_ANSWERED) {
        int64_t now = afar_now(afar), until = turn->until_ms;
        struct timespec at;

        if (afar->is_stopping)
            return fail_absent(turn);
        TRY(look_at_time(afar, turn));
        if (turn->stage == TURN_QUEUED || until > now + LOOK_MS)
            until = now + LOOK_MS;
        at = (struct timespec){ .tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000 };
        guard_wait_until(&afar->lock, &afar->changed, &at);
    }
    return PAWL_OK;
}

static uint64_t held_mark(const struct afar_turn *turn, const struct turn_answer *answer)
{
    const struct turn_journal *journal = turn->request->journal;
    uint64_t mark = journal->fresh_mark;

    if (answer->note.data)
        mark = journal_chain(mark, answer->note);
    return answer->state.data ? journal_chain(0, answer->state) : mark;
}

static str name_of(const struct afar_turn *turn)
{
    return str_of(turn->type->type.binding.type->name);
}

/* Under which mark the instance will be found when the turn is recorded. */
static void note_held(struct afar *afar, struct afar_turn *turn, const struct turn_answer *answer)
{
    str id = turn->request->journal ? turn->request->journal->id : STR("");

    if (turn->request->journal && turn->session && answer->end == TURN_WAITS)
        held_put(afar->heap, &turn->session->holds,
                 held_key(held_mark(turn, answer), id.size > 0 ? id : name_of(turn)), turn->keep);
}

pawl_status afar_run_turn(const struct code_binding *binding, const struct turn_request *request,
                          struct scope *scope, struct turn_answer *out)
{
    struct afar_type *type = binding->context;
    struct afar *afar = type->afar;
    struct afar_turn turn = { .type = type, .request = request, .scope = scope };
    pawl_status status;

    guard_lock(&afar->lock);
    status = admit(afar, &turn);
    if (status == PAWL_OK) {
        enqueue(afar, &turn);
        status = await_answer(afar, &turn);
        dequeue(afar, &turn);
    }
    if (status == PAWL_OK)
        status = wire_read_answer(scope, turn.answer, out);
    if (status == PAWL_OK)
        note_held(afar, &turn, out);
    guard_unlock(&afar->lock);
    return status;
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static uint64_t what_it_has(const struct afar_session *session, const struct afar_turn *turn)
{
    const struct turn_journal *journal = turn->request->journal;
    uint64_t have;

    if (!journal || turn->is_whole)
        return 0;
    have = held_find(&session->holds, held_key(journal->mark, journal->id));
    return have ? have : held_find(&session->holds, held_key(journal->mark, name_of(turn)));
}

static void give(struct afar *afar, struct afar_session *session, struct afar_turn *turn,
                 int64_t lease_ms, struct buf *out)
{
    afar_token(afar, turn->lease);
    turn->stage = TURN_CLAIMED;
    turn->session = session;
    turn->leases++;
    turn->until_ms = afar_now(afar) + lease_ms;
    turn->keep = turn->request->journal ? ++session->holds.numbers : 0;
    json_open(out, '{');
    json_put_fmt(out, "turn_id", "%llu", (unsigned long long)turn->number);
    json_put_text(out, "lease", turn->lease);
    json_put_i64(out, "lease_ms", lease_ms);
    json_key(out, "request");
    wire_print_request(turn->type->type.binding.type->name, turn->request, turn->keep,
                       what_it_has(session, turn), out);
    json_close(out, '}');
}

/* Those that the worker has in memory come first. */
static struct afar_turn *find_turn(const struct afar *afar, const struct afar_session *session)
{
    struct afar_turn *found = NULL;

    for (struct afar_turn *turn = afar->turns; turn; turn = turn->next) {
        if (turn->stage != TURN_QUEUED || !serves(session, turn->type))
            continue;
        if (what_it_has(session, turn))
            return turn;
        found = found ? found : turn;
    }
    return found;
}

static void list(struct afar *afar, struct afar_claim *claim)
{
    if (claim->is_listed)
        return;
    claim->next = afar->claims;
    afar->claims = claim;
    claim->is_listed = true;
}

static void unlist(struct afar *afar, struct afar_claim *claim)
{
    struct afar_claim **at = &afar->claims;

    if (!claim->is_listed)
        return;
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    claim->is_listed = false;
}

void afar_leave(struct afar *afar, struct afar_claim *claim)
{
    guard_lock(&afar->lock);
    unlist(afar, claim);
    guard_unlock(&afar->lock);
}

static pawl_status check_session(const struct afar_session *session, struct scope *scope)
{
    if (!session)
        return scope_fail(scope, PAWL_NOT_KNOWN,
                          "session: no session has this name; the server may have been restarted: "
                          "offer the types again (turn.offer)");
    for (uint32_t i = 0; i < session->offered_count; i++)
        if (is_in_force(session, &session->offered[i]))
            return PAWL_OK;
    return scope_fail(
        scope, PAWL_NOT_KNOWN,
        "session: of what this worker offered nothing is in force any more: version "
        "%u of '%s' is taken by version %u, or by another build; start the worker "
        "with the new code",
        session->offered_count ? session->offered[0].version : 0,
        session->offered_count ? session->offered[0].type->type.binding.type->name : "",
        session->offered_count ? session->offered[0].type->type.binding.type->version : 0);
}

static bool has_left(const struct afar_claim *claim)
{
    return claim->waiter.is_there && !claim->waiter.is_there(claim->waiter.context);
}

pawl_status afar_take(struct afar *afar, struct scope *scope, struct afar_claim *claim,
                      bool may_wait, struct buf *out, bool *waits)
{
    struct afar_session *session;
    struct afar_turn *turn;
    bool was_absent = false;
    uint32_t given = 0;
    pawl_status status;

    *waits = false;
    guard_lock(&afar->lock);
    session = find_session(afar, claim->session);
    status = check_session(session, scope);
    if (status == PAWL_OK) {
        was_absent = !afar_is_there(afar, session);
        session->seen_ms = afar_now(afar);
        if (!has_left(claim))
            while (given < claim->max && out->size < CLAIM_BYTES &&
                   (turn = find_turn(afar, session))) {
                give(afar, session, turn, claim->lease_ms, out);
                given++;
            }
        *waits = given == 0 && may_wait && !afar->is_stopping && claim->waiter.wake;
    }
    if (*waits)
        list(afar, claim);
    else
        unlist(afar, claim);
    if (given > 0)
        pthread_cond_broadcast(&afar->changed); /* whose lease begins waits for its end */
    guard_unlock(&afar->lock);
    if (was_absent)
        afar->host.came(afar->host.context);
    return status;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static struct afar_turn *find_leased(const struct afar *afar, str turn_id, str lease)
{
    uint64_t number = 0;

    if (!str_to_u64(turn_id, &number) || lease.size != AFAR_TOKEN)
        return NULL;
    for (struct afar_turn *turn = afar->turns; turn; turn = turn->next) {
        unsigned difference = turn->stage != TURN_CLAIMED || turn->number != number;

        for (size_t i = 0; i < AFAR_TOKEN; i++)
            difference |= (unsigned)(turn->lease[i] ^ lease.data[i]);
        if (!difference)
            return afar_now(afar) < turn->until_ms ? turn : NULL;
    }
    return NULL;
}

/* A worker that has forgotten the instance gets all of it with its next claim. */
static void queue_again(struct afar *afar, struct afar_turn *turn)
{
    turn->is_whole = true;
    turn->leases--;
    turn->stage = TURN_QUEUED;
    turn->until_ms = afar_now(afar) + BUSY_MS;
    call_claims(afar, turn->type);
}

pawl_status afar_answer(struct afar *afar, struct scope *scope, str turn_id, str lease, str answer)
{
    struct afar_turn *turn;
    pawl_status status = PAWL_OK;

    guard_lock(&afar->lock);
    turn = find_leased(afar, turn_id, lease);
    if (!turn) {
        status = scope_fail(scope, PAWL_LEASE_LOST,
                            "the turn is not with this lease any more: it was given to another "
                            "worker, or it is over");
    } else if (wire_is_need(answer) && !turn->is_whole) {
        turn->session->seen_ms = afar_now(afar);
        queue_again(afar, turn);
    } else {
        turn->session->seen_ms = afar_now(afar);
        turn->answer = arena_str(&turn->scope->arena, answer);
        turn->stage = TURN_ANSWERED;
        if (!turn->answer.data)
            turn->answer = STR("{}");
    }
    pthread_cond_broadcast(&afar->changed);
    guard_unlock(&afar->lock);
    return status;
}
