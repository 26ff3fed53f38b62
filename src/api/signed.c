/* signed.c - a node asks another in the name of a caller whom it has authenticated: HMAC-SHA256
 * with the store's secret over all that counts. Each is for one node, and is accepted once. */
#include "api/shards.h"
#include "api/station_int.h"
#include "env/env.h"
#include <stdio.h>

/* Parts with their sizes before them: no two requests have the same text. */
static void add_part(struct buf *out, str part)
{
    buf_u64(out, part.size);
    buf_byte(out, part.data ? ':' : '-');
    buf_str(out, part);
}

struct stamp {
    const char *from, *to;
    uint64_t number;
    int64_t at_ms;
};

static pawl_status compute(struct scope *scope, const struct station *node,
                           const struct station_signing *what, str as, const struct stamp *stamp,
                           uint8_t out[SHA_SIZE])
{
    struct sha *sha = sha_new(scope->arena.heap);
    struct buf text;

    TRY_MEMORY(scope, sha);
    buf_init(&text, scope->arena.heap, LIMIT_SCOPE);
    add_part(&text, STR("pawl.call.1"));
    add_part(&text, str_of(stamp->from));
    add_part(&text, str_of(stamp->to));
    buf_fmt(&text, "%llu %lld ", (unsigned long long)stamp->number, (long long)stamp->at_ms);
    add_part(&text, what->method);
    add_part(&text, what->target);
    add_part(&text, what->key);
    add_part(&text, what->trace);
    add_part(&text, what->part);
    add_part(&text, (str){ (const char *)what->body, SHA_SIZE });
    add_part(&text, as);
    sha_hmac(sha, (str){ (const char *)node->key, CLUSTER_SECRET_SIZE }, buf_view(&text), out);
    sha_free(sha);
    TRY_MEMORY(scope, !text.failed);
    buf_fini(&text);
    return PAWL_OK;
}

void station_body_hash(pawl *p, str body, uint8_t out[SHA_SIZE])
{
    struct sha *sha = sha_new(&p->heap);

    memset(out, 0, SHA_SIZE);
    if (sha)
        sha_once(sha, body, out);
    sha_free(sha);
}

/* ---- In whose name ---- */

static void add_word(struct buf *out, str word)
{
    char digits[3];

    buf_byte(out, word.data ? '=' : '-');
    for (size_t i = 0; i < word.size; i++) {
        sha_hex((const uint8_t *)word.data + i, 1, digits);
        buf_str(out, str_of(digits));
    }
    buf_byte(out, '.');
}

static pawl_status print_who(struct scope *scope, const struct op_principal *who, str *out)
{
    struct buf text;

    buf_init(&text, scope->arena.heap, 8192);
    add_word(&text, who->name);
    add_word(&text, who->scopes);
    add_word(&text, who->actor);
    *out = buf_take(&text, &scope->arena);
    return out->data ? PAWL_OK : scope_no_memory(scope);
}

static bool take_word(struct scope *scope, str *rest, str *out)
{
    str word;
    char *text;

    if (!str_take(rest, '.', &word) || word.size == 0)
        return false;
    *out = STR_NONE;
    if (word.data[0] == '-')
        return word.size == 1;
    text = arena_alloc(&scope->arena, word.size / 2 + 1);
    if (!text || word.data[0] != '=' ||
        !sha_unhex(str_from(word, 1), (uint8_t *)text, word.size / 2))
        return false;
    *out = (str){ text, word.size / 2 };
    return true;
}

static bool read_who(struct scope *scope, str as, struct op_principal *who)
{
    return take_word(scope, &as, &who->name) && take_word(scope, &as, &who->scopes) &&
           take_word(scope, &as, &who->actor);
}

/* ---- Signing ---- */

static int64_t database_now_ms(struct station *node)
{
    ASSERT_HOLDS(&node->lock);
    return node->env->now_ms(node->env) + node->skew_ms - node->correction_ms;
}

pawl_status station_sign(pawl *p, struct scope *scope, const struct station_signing *what,
                         const char *to, char out[SIGNED_SIZE], str *as)
{
    struct station *node = station_of(p);
    char from[NODE_NAME_MAX], body[2 * SHA_SIZE + 1], hex[2 * SHA_SIZE + 1];
    struct stamp stamp = { from, to, atomic_fetch_add(&node->counter, 1) + 1, 0 };
    uint8_t hash[SHA_SIZE];

    guard_lock(&node->lock);
    snprintf(from, sizeof from, "%s", node->name);
    stamp.at_ms = database_now_ms(node);
    guard_unlock(&node->lock);
    TRY(print_who(scope, &what->who, as));
    TRY(compute(scope, node, what, *as, &stamp, hash));
    sha_hex(what->body, SHA_SIZE, body);
    sha_hex(hash, SHA_SIZE, hex);
    snprintf(out, SIGNED_SIZE, "%s %llu %lld %s %s", from, (unsigned long long)stamp.number,
             (long long)stamp.at_ms, body, hex);
    return PAWL_OK;
}

/* ---- Accepting ---- */

static struct sender *sender_of(struct station *node, const char *name)
{
    struct sender *sender = NULL;

    ASSERT_HOLDS(&node->lock);
    for (uint32_t i = 0; i < node->sender_count && !sender; i++)
        if (strcmp(node->senders[i].node, name) == 0)
            sender = &node->senders[i];
    if (sender)
        return sender;
    if (node->sender_count == SENDERS_MAX) { /* the first came first: it is the oldest */
        memmove(node->senders, node->senders + 1, sizeof *node->senders * (SENDERS_MAX - 1));
        node->sender_count--;
    }
    sender = &node->senders[node->sender_count++];
    *sender = (struct sender){ 0 };
    snprintf(sender->node, sizeof sender->node, "%s", name);
    return sender;
}

/* A number that was seen, or is too old to say, is no longer accepted. */
static bool is_new(struct sender *sender, uint64_t number)
{
    const uint64_t window = WINDOW_WORDS * 64;
    uint64_t *word = &sender->seen[number / 64 % WINDOW_WORDS], bit = UINT64_C(1) << number % 64;

    if (number + window <= sender->highest)
        return false;
    for (uint64_t n = sender->highest / 64 + 1; n <= number / 64; n++) {
        sender->seen[n % WINDOW_WORDS] = 0;
        if (n - sender->highest / 64 > WINDOW_WORDS)
            break;
    }
    if (number > sender->highest)
        sender->highest = number;
    if (*word & bit)
        return false;
    *word |= bit;
    return true;
}

static bool is_same(const uint8_t *a, const uint8_t *b)
{
    uint8_t differs = 0;

    for (size_t i = 0; i < SHA_SIZE; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

static bool read_stamp(str header, char from[NODE_NAME_MAX], struct stamp *stamp,
                       uint8_t body[SHA_SIZE], uint8_t hash[SHA_SIZE])
{
    str words[5];
    uint64_t at_ms;

    for (size_t i = 0; i < 5; i++)
        if (!str_take(&header, ' ', &words[i]))
            return false;
    if (words[0].size == 0 || words[0].size >= NODE_NAME_MAX ||
        !str_to_u64(words[1], &stamp->number) || !str_to_u64(words[2], &at_ms) ||
        at_ms > INT64_MAX || !sha_unhex(words[3], body, SHA_SIZE) ||
        !sha_unhex(words[4], hash, SHA_SIZE))
        return false;
    snprintf(from, NODE_NAME_MAX, "%.*s", STR_ARG(words[0]));
    stamp->at_ms = (int64_t)at_ms;
    return true;
}

/* Its signature is right: is it the first time? */
static bool is_fresh(struct station *node, const struct stamp *stamp)
{
    int64_t age_ms;
    bool is;

    guard_lock(&node->lock);
    age_ms = database_now_ms(node) - stamp->at_ms;
    is = age_ms < STATION_STAMP_MS && age_ms > -STATION_STAMP_MS &&
         is_new(sender_of(node, stamp->from), stamp->number);
    guard_unlock(&node->lock);
    return is;
}

pawl_status station_accept(pawl *p, struct scope *scope, str header, str as,
                           struct station_signing *what)
{
    struct station *node = station_of(p);
    char from[NODE_NAME_MAX], to[NODE_NAME_MAX];
    uint8_t given[SHA_SIZE], right[SHA_SIZE];
    struct stamp stamp = { from, to, 0, 0 };

    if (node && as.data && read_stamp(header, from, &stamp, what->body, given)) {
        guard_lock(&node->lock);
        snprintf(to, sizeof to, "%s", node->name);
        guard_unlock(&node->lock);
        TRY(compute(scope, node, what, as, &stamp, right));
        if (is_same(given, right) && is_fresh(node, &stamp) && read_who(scope, as, &what->who))
            return PAWL_OK;
    }
    return scope_fail(scope, PAWL_UNAUTHENTICATED,
                      SIGNED_HEADER ": expected a signature by a node of this store for this one, "
                                    "not used before");
}

pawl_status op_accept_signed(pawl *p, struct scope *scope, struct op_signed *request,
                             struct op_principal *out)
{
    struct station_signing what = { .method = request->method,
                                    .target = request->target,
                                    .key = request->key,
                                    .trace = request->trace,
                                    .part = request->part };

    TRY(station_accept(p, scope, request->header, request->as, &what));
    memcpy(request->body, what.body, SHA_SIZE);
    *out = what.who;
    return PAWL_OK;
}

pawl_status op_check_signed_body(pawl *p, struct scope *scope, const struct op_signed *request,
                                 str body)
{
    uint8_t hash[SHA_SIZE];

    station_body_hash(p, body, hash);
    if (is_same(hash, request->body))
        return PAWL_OK;
    return scope_fail(scope, PAWL_UNAUTHENTICATED,
                      SIGNED_HEADER ": expected the body that was signed, found another");
}
