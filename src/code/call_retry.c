/* call_retry.c - whether a call that failed is tried again, and when (X8).
 *
 * The policy is that of the build that runs, so that a new one holds for all instances at their
 * next failure. What was decided is in the entries; no handler is asked. */
#include "base/limits.h"
#include "code/code_int.h"

/* The delays of flow steps that have none of their own. */
static const int64_t usual_ms[] = { 30000, 120000, 300000 };
#define USUAL_COUNT (sizeof usual_ms / sizeof usual_ms[0])

#define LONGEST_MS (INT64_C(100) * 366 * 86400 * 1000)

struct policy {
    int64_t max_attempts, first_ms, longest_ms;
    const struct node *final; /* errors that are not tried again; NULL: none */
};

/* ---- The registration ------------------------------------------------------------------------ */

static void print_final(const pawl_no_retry *row, const char *call, struct buf *out)
{
    json_put_open(out, "final", '[');
    for (; row && row->call; row++)
        if (strcmp(row->call, call) == 0)
            json_text(out, row->error);
    json_close(out, ']');
}

void retries_print(const pawl_code_type *type, struct buf *out)
{
    const pawl_retry *row = type->retries;

    if (!row || !row->call)
        return;
    json_put_open(out, "retries", '[');
    for (; row->call; row++) {
        json_open(out, '{');
        json_put_text(out, "call", row->call);
        json_put_u64(out, "max", row->max_attempts);
        json_put_i64(out, "first", row->first_ms);
        json_put_i64(out, "longest", row->longest_ms);
        print_final(type->no_retries, row->call, out);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static pawl_status check_retry(struct scope *scope, const pawl_code_type *type, const pawl_retry *row)
{
    if (names_find(type->calls, row->call) == names_count(type->calls))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "retry of '%s': expected one of the type's calls, found none of that name",
                          row->call);
    if (row->max_attempts < 1 || row->max_attempts > LIMIT_ATTEMPTS)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "retry of '%s': expected 1..%d attempts, all of them counted, found %u",
                          row->call, LIMIT_ATTEMPTS, row->max_attempts);
    if (row->first_ms < 0 || row->longest_ms < 0 || row->first_ms > LONGEST_MS ||
        (row->longest_ms > 0 && row->first_ms > row->longest_ms))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "retry of '%s': expected delays of 0 ms or more, the first not longer "
                          "than the longest, found %lld and %lld",
                          row->call, (long long)row->first_ms, (long long)row->longest_ms);
    for (const pawl_retry *before = type->retries; before < row; before++)
        if (strcmp(before->call, row->call) == 0)
            return scope_fail(scope, PAWL_INVALID_REQUEST,
                              "retry of '%s' is declared twice; keep one", row->call);
    return PAWL_OK;
}

static pawl_status check_no_retry(struct scope *scope, const pawl_code_type *type,
                                  const pawl_no_retry *row)
{
    const pawl_retry *retry = type->retries;

    while (retry && retry->call && strcmp(retry->call, row->call) != 0)
        retry++;
    if (!retry || !retry->call)
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "no_retry of '%s': expected a call that has a retry, found none",
                          row->call);
    if (!row->error || !str_is_utf8(str_of(row->error), false))
        return scope_fail(scope, PAWL_INVALID_REQUEST,
                          "no_retry of '%s': expected an error as a text of UTF-8", row->call);
    return PAWL_OK;
}

pawl_status retries_check(struct scope *scope, const pawl_code_type *type)
{
    for (const pawl_retry *row = type->retries; row && row->call; row++)
        TRY(check_retry(scope, type, row));
    for (const pawl_no_retry *row = type->no_retries; row && row->call; row++)
        TRY(check_no_retry(scope, type, row));
    return PAWL_OK;
}

/* ---- Of a call that failed ------------------------------------------------------------------- */

static bool number_of(const struct node *row, const char *key, int64_t *out)
{
    const struct node *node = node_find(row, key);

    return node && node_to_i64(node, out);
}

/* false: the call has none. */
static bool read_policy(const struct node *registration, str call, struct policy *out)
{
    const struct node *list = node_find(registration, "retries");

    for (const struct node *row = list ? list->first : NULL; row; row = row->next) {
        const struct node *name = node_find(row, "call");

        if (!name || !str_eq(name->text, call))
            continue;
        out->final = node_find(row, "final");
        return number_of(row, "max", &out->max_attempts) &&
               number_of(row, "first", &out->first_ms) &&
               number_of(row, "longest", &out->longest_ms);
    }
    return false;
}

static bool is_one_of(const struct node *list, const struct node *text)
{
    const struct node *one = list && text && text->kind == NODE_STRING ? list->first : NULL;

    while (one && !str_eq(one->text, text->text))
        one = one->next;
    return one != NULL;
}

/* The error itself, or what it says it is. */
static bool is_final(const struct policy *policy, const struct node *error)
{
    return is_one_of(policy->final, error) || is_one_of(policy->final, node_find(error, "code")) ||
           is_one_of(policy->final, node_find(error, "reason")) ||
           is_one_of(policy->final, node_find(error, "error"));
}

static int64_t delay_ms(const struct policy *policy, uint32_t attempt)
{
    int64_t longest_ms = policy->longest_ms > 0 ? policy->longest_ms : LONGEST_MS;
    int64_t ms = policy->first_ms;

    if (policy->first_ms == 0 && policy->longest_ms == 0)
        return usual_ms[attempt < USUAL_COUNT ? attempt - 1 : USUAL_COUNT - 1];
    for (uint32_t i = 1; i < attempt && ms < longest_ms; i++)
        ms *= 2;
    return ms < longest_ms ? ms : longest_ms;
}

static str registration_of(const struct code_work *work)
{
    const struct code_binding *binding = work->binding;

    if (!binding)
        return STR_NONE;
    return binding->source.data ? binding->source : plan_of(work->definition)->source;
}

pawl_status code_retry_due(struct code_work *work, const struct cause *cause, bool *is_due,
                           int64_t *due_at_ms)
{
    const struct code_attempt *call = cause->attempt;
    str registration = registration_of(work);
    struct node *root = NULL, *error = NULL;
    struct policy policy = { 0 };
    pawl_status status;

    *is_due = false;
    if (cause->kind != PAWL_EVENT_CALL_FAILED || work->event->no_retry ||
        work->event->failure.data || call->status != STEP_RUNNING || !registration.data)
        return PAWL_OK;
    status = node_read_json(work->scope, registration, &root);
    if (status == PAWL_OK)
        status = node_read_json(work->scope, cause->payload, &error);
    if (status != PAWL_OK || !read_policy(root, cause->name, &policy))
        return status == PAWL_NO_MEMORY ? status : PAWL_OK;
    *is_due = call->attempt < policy.max_attempts && !is_final(&policy, error);
    *due_at_ms = turn_due_after(work->event->at_ms, delay_ms(&policy, call->attempt));
    return PAWL_OK;
}

/* Nothing else that the code waits for is touched: it still waits. */
pawl_status code_try_again(struct code_work *work, const struct cause *cause, int64_t due_at_ms)
{
    struct draft *draft = code_draft_attempt(work, cause->transition);
    uint32_t ordinal = work->memory->ordinals + 1;

    TRY_MEMORY(work->scope, draft);
    draft->payload = cause->recorded;
    TRY(code_add_attempt(work, draft, STEP_PENDING));
    return ADD_EFFECT(work, &draft->effects, .kind = EFFECT_ARM, .name = TIMER_AGAIN,
                      .ordinal = ordinal, .due_at_ms = due_at_ms);
}

pawl_status code_retry_now(struct code_work *work)
{
    const struct code_attempt *call = code_attempt_of(work);
    struct draft *draft = code_draft_attempt(work, LIFE_T_STEP_RETRY);

    TRY_MEMORY(work->scope, draft);
    TRY(ADD_EFFECT(work, &draft->effects, .kind = EFFECT_DISARM, .name = TIMER_AGAIN,
                   .ordinal = call->ordinal));
    return ADD_EFFECT(work, &draft->effects, .kind = EFFECT_READY, .ordinal = call->ordinal);
}
