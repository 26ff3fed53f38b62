/* link.c - connecting, and exchanging statements for results. */
#include "link.h"
#include "base/assert.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define REFUSE_MS   200 /* a host that is up refuses at once */
#define CONNECT_MS  10000
#define OPTIONS_MAX 40

/* ---- Errors ---- */

static void note_words(struct pg_link *link, const char *state, const char *words)
{
    size_t size = strcspn(words ? words : "", "\n");

    snprintf(link->state, sizeof link->state, "%s", state ? state : "");
    snprintf(link->words, sizeof link->words, "%.*s", (int)size, words ? words : "");
}

static void note_result(struct pg_link *link, const PGresult *result)
{
    note_words(link, link->pq->resultErrorField(result, PG_DIAG_SQLSTATE),
               link->pq->resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
}

/* A COMMIT that warns was not seen by the standby that it waited for. */
static void note_notice(void *context, const PGresult *result)
{
    struct pg_link *link = context;
    const char *severity = link->pq->resultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

    link->has_warned |= severity && strcmp(severity, "WARNING") == 0;
}

static bool state_is(const struct pg_link *link, const char *state)
{
    return strncmp(link->state, state, strlen(state)) == 0;
}

bool link_is_full(const struct pg_link *link)
{
    return state_is(link, "53100");
}

pawl_status link_fail(struct pg_link *link, struct scope *scope, const char *doing)
{
    if (link_is_full(link))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: the disk of the PostgreSQL server is full"
                          " (%s)",
                          doing, link->words);
    if (state_is(link, "53300"))
        return scope_fail(scope, PAWL_OVERLOADED,
                          "%s: the PostgreSQL server has too many connections (%s): raise its "
                          "max_connections, or stop other clients",
                          doing, link->words);
    if (state_is(link, "25006"))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: expected a PostgreSQL server that can be written, found a"
                          " read-only "
                          "one, such as a standby: name the primary, or several hosts in the URL",
                          doing);
    if (state_is(link, "42501"))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: this user lacks a right in the database (%s): it needs CREATE on"
                          " the "
                          "database to make a store, and all rights on the schema to use one",
                          doing, link->words);
    if (state_is(link, "53200"))
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: the PostgreSQL server has no memory"
                          " (%s)",
                          doing, link->words);
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: %s%s%s%s", doing,
                      *link->words ? link->words : "PostgreSQL did not answer",
                      *link->state ? " (SQLSTATE " : "", link->state, *link->state ? ")" : "");
}

/* ---- Other nodes ---- */

/* Only numbers: a name might not be known here, or be another machine's there. */
bool address_refuses(str address)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    str host = str_after(str_after(address, '/'), '/');
    char text[64];
    uint64_t port = 0;
    int fd, code;

    if (!host.data || host.size >= sizeof text || !str_to_u64(str_after(host, ':'), &port))
        return false;
    snprintf(text, sizeof text, "%.*s", STR_ARG(str_before(host, ':')));
    at.sin_port = htons((uint16_t)port);
    fd = inet_pton(AF_INET, text, &at.sin_addr) == 1
             ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
             : -1;
    if (fd < 0)
        return false;
    code = connect(fd, (const struct sockaddr *)(const void *)&at, sizeof at) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
        struct pollfd wait = { .fd = fd, .events = POLLOUT };
        socklen_t size = sizeof code;

        if (poll(&wait, 1, REFUSE_MS) <= 0 ||
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) != 0)
            code = 0;
    }
    (void)close(fd);
    return code == ECONNREFUSED;
}

/* ---- Waiting ---- */

/* What is left of a deadline. A simulated clock stands still: each wait then has all of it. */
static int time_left(const struct pg_link *link, int64_t until_ms)
{
    int64_t left = until_ms - link->env->tick_ms(link->env);

    return left > 0 ? (int)left : 0;
}

static bool wait_for(struct pg_link *link, short events, int64_t until_ms)
{
    struct pollfd fd = { .fd = link->pq->socket(link->conn), .events = events };
    int ready;

    do
        ready = fd.fd < 0 ? -1 : poll(&fd, 1, time_left(link, until_ms));
    while (ready < 0 && fd.fd >= 0 && errno == EINTR);
    return ready > 0;
}

/* No answer: whatever still comes is not wanted. */
static enum link_end lose(struct pg_link *link, const char *words)
{
    const char *said = link->pq->errorMessage(link->conn);

    note_words(link, "", words ? words : said);
    link_close(link);
    return LINK_LOST;
}

static enum link_end lose_late(struct pg_link *link)
{
    char words[100];

    snprintf(words, sizeof words, "PostgreSQL did not answer within %d ms", link->deadline_ms);
    return lose(link, words);
}

/* ---- Connecting ---- */

void link_close(struct pg_link *link)
{
    if (!link->conn)
        return;
    /* An answer that is under way must not be waited for, nor a pipeline be finished. */
    if (link->pq->socket(link->conn) >= 0)
        (void)shutdown(link->pq->socket(link->conn), SHUT_RDWR);
    link->pq->finish(link->conn);
    link->conn = NULL;
    memset(link->prepared, 0, sizeof link->prepared);
}

static void add_option(const char **names, const char **values, int *count, const char *name,
                       const char *value)
{
    if (!value || *count >= OPTIONS_MAX - 1)
        return;
    names[*count] = name;
    values[(*count)++] = value;
}

/* Keepalives are the server's own: a host that vanishes leaves no transaction open for long. */
static const char *session_options(const struct pg_link *link, const char *own, char *out,
                                   size_t size)
{
    snprintf(out, size,
             "%s%s-c search_path=\"%s\" -c tcp_keepalives_idle=1 -c tcp_keepalives_interval=1 "
             "-c tcp_keepalives_count=3 -c timezone=UTC -c jit=off",
             own ? own : "", own ? " " : "", link->url->schema);
    return out;
}

/* The URL's, then ours; the arrays end with NULL. */
static PGconn *start_connection(struct pg_link *link, PQconninfoOption *given)
{
    const char *names[OPTIONS_MAX] = { NULL }, *values[OPTIONS_MAX] = { NULL }, *own = NULL;
    char options[512];
    int count = 0;

    for (PQconninfoOption *at = given; at->keyword; at++)
        if (strcmp(at->keyword, "options") == 0)
            own = at->val;
        else
            add_option(names, values, &count, at->keyword, at->val);
    add_option(names, values, &count, "options",
               session_options(link, own, options, sizeof options));
    add_option(names, values, &count, "client_encoding", "UTF8");
    add_option(names, values, &count, "application_name", link->name);
    add_option(names, values, &count, "fallback_application_name", "pawl");
    return link->pq->connectStartParams(names, values, 0);
}

static pawl_status fail_connect(struct pg_link *link, struct scope *scope, const char *said)
{
    bool is_crowded =
        said && (strstr(said, "too many clients") || strstr(said, "remaining"
                                                                  " connection slots"));

    note_words(link, is_crowded ? "53300" : "", said);
    if (is_crowded)
        return link_fail(link, scope, "connecting to PostgreSQL");
    return scope_fail(scope, PAWL_STORAGE_FAILURE, "%s: PostgreSQL cannot be reached: %s",
                      link->url->shown, *link->words ? link->words : "it did not answer in time");
}

static pawl_status finish_connecting(struct pg_link *link, struct scope *scope)
{
    int64_t until_ms = link->env->tick_ms(link->env) + CONNECT_MS;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    while (next != PGRES_POLLING_OK && next != PGRES_POLLING_FAILED) {
        short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;

        if (!wait_for(link, events, until_ms))
            return fail_connect(link, scope, link->pq->errorMessage(link->conn));
        next = link->pq->connectPoll(link->conn);
    }
    if (next == PGRES_POLLING_FAILED)
        return fail_connect(link, scope, link->pq->errorMessage(link->conn));
    link->pid = link->pq->backendPID(link->conn);
    return PAWL_OK;
}

static pawl_status check_server(struct pg_link *link, struct scope *scope)
{
    const char *encoding = link->pq->parameterStatus(link->conn, "server_encoding");
    const char *standby = link->pq->parameterStatus(link->conn, "in_hot_standby");

    if (link->pq->serverVersion(link->conn) < 140000)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: expected PostgreSQL 14 or newer, found version number %d",
                          link->url->shown, link->pq->serverVersion(link->conn));
    if (!encoding || strcmp(encoding, "UTF8") != 0)
        return scope_fail(scope, PAWL_STORAGE_FAILURE,
                          "%s: expected a database with the encoding UTF8, found %s: make one"
                          " with "
                          "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0",
                          link->url->shown, encoding ? encoding : "none");
    if (standby && strcmp(standby, "on") == 0 && !link->may_read_only) {
        note_words(link, "25006", "");
        return link_fail(link, scope, link->url->shown);
    }
    return PAWL_OK;
}

pawl_status link_connect(struct pg_link *link, struct scope *scope)
{
    PQconninfoOption *given;
    char *words = NULL;
    pawl_status status;

    if (link->conn && link->pq->status(link->conn) == CONNECTION_OK)
        return PAWL_OK;
    link_close(link);
    given = link->pq->conninfoParse(link->url->libpq, &words);
    if (!given) {
        status = scope_fail(scope, PAWL_INVALID_REQUEST, "%s: libpq cannot read this URL%s%s",
                            link->url->shown, words && !strchr(link->url->libpq, '@') ? ": " : "",
                            words && !strchr(link->url->libpq, '@') ? words : "");
        link->pq->freemem(words);
        return status;
    }
    link->conn = start_connection(link, given);
    link->pq->conninfoFree(given);
    TRY_MEMORY(scope, link->conn);
    (void)link->pq->setNoticeReceiver(link->conn, note_notice, link);
    status = finish_connecting(link, scope);
    if (status == PAWL_OK)
        status = check_server(link, scope);
    if (status == PAWL_OK && link->pq->setnonblocking(link->conn, 1) != 0)
        status = scope_no_memory(scope);
    if (status != PAWL_OK)
        link_close(link);
    return status;
}

/* ---- Exchanges ---- */

/* Writes what is queued; reads meanwhile, for a server that waits for room to answer. */
static bool push(struct pg_link *link, int64_t until_ms)
{
    int left;

    while ((left = link->pq->flush(link->conn)) == 1) {
        if (!wait_for(link, POLLIN | POLLOUT, until_ms) || !link->pq->consumeInput(link->conn))
            return false;
    }
    return left == 0;
}

/* The next result, or NULL where a statement's results end. False: lost. */
static bool next_result(struct pg_link *link, int64_t until_ms, PGresult **out)
{
    while (link->pq->isBusy(link->conn))
        if (!wait_for(link, POLLIN, until_ms) || !link->pq->consumeInput(link->conn))
            return false;
    *out = link->pq->getResult(link->conn);
    return true;
}

static size_t slot_of(const struct pg_link *link, const char *text)
{
    size_t at = (size_t)(((uint64_t)(uintptr_t)text * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
    size_t tried = 0;

    for (at %= LINK_STATEMENTS; link->prepared[at] && link->prepared[at] != text;
         at = (at + 1) % LINK_STATEMENTS)
        ASSERT(tried++ < LINK_STATEMENTS);
    return at;
}

static const int all_binary[PARAMS_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

/* Prepared when it is first used, in the same round trip. */
static bool send_one(struct pg_link *link, const struct statement *statement, bool *is_new)
{
    static const struct params none;
    const struct params *params = statement->params ? statement->params : &none;
    size_t slot;
    char name[24];

    *is_new = false;
    if (statement->is_once)
        return link->pq->sendQueryParams(link->conn, statement->text, params->count, params->types,
                                         params->values, params->sizes, all_binary, 1);
    slot = slot_of(link, statement->text);
    snprintf(name, sizeof name, "p%zu", slot);
    *is_new = !link->prepared[slot];
    if (*is_new &&
        !link->pq->sendPrepare(link->conn, name, statement->text, params->count, params->types))
        return false;
    link->prepared[slot] = statement->text;
    return link->pq->sendQueryPrepared(link->conn, name, params->count, params->values,
                                       params->sizes, all_binary, 1);
}

/* One statement's result, or that of its preparation. *is_refused: an error, or behind one. */
static bool take_result(struct pg_link *link, int64_t until_ms, PGresult **out, bool *is_refused)
{
    PGresult *result = NULL, *end = NULL;
    ExecStatusType status;

    if (!next_result(link, until_ms, &result) || !result || !next_result(link, until_ms, &end))
        return false;
    ASSERT(!end);
    status = link->pq->resultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        if (!*is_refused)
            note_result(link, result);
        *is_refused = true;
    }
    if (out)
        *out = result;
    else
        link->pq->clear(result);
    return true;
}

static bool take_sync(struct pg_link *link, int64_t until_ms)
{
    PGresult *result = NULL;
    bool is_sync = next_result(link, until_ms, &result) && result &&
                   link->pq->resultStatus(result) == PGRES_PIPELINE_SYNC;

    link->pq->clear(result);
    return is_sync;
}

static enum link_end exchange(struct pg_link *link, struct statement *statements, size_t count,
                              bool *are_new, int64_t until_ms)
{
    bool is_refused = false;

    if (!link->pq->enterPipelineMode(link->conn))
        return lose(link, NULL);
    for (size_t i = 0; i < count; i++)
        if (!send_one(link, &statements[i], &are_new[i]))
            return lose(link, NULL);
    if (!link->pq->pipelineSync(link->conn) || !push(link, until_ms))
        return lose_late(link);
    for (size_t i = 0; i < count; i++) {
        if (are_new[i] && !take_result(link, until_ms, NULL, &is_refused))
            return lose_late(link);
        if (are_new[i] && is_refused) /* it was not prepared: its slot is free again */
            link->prepared[slot_of(link, statements[i].text)] = NULL;
        if (!take_result(link, until_ms, &statements[i].result, &is_refused))
            return lose_late(link);
    }
    if (!take_sync(link, until_ms) || !link->pq->exitPipelineMode(link->conn))
        return lose_late(link);
    return is_refused ? LINK_REFUSED : LINK_OK;
}

enum link_end link_exchange(struct pg_link *link, struct statement *statements, size_t count)
{
    bool are_new[LINK_EXCHANGE_MAX];

    ASSERT(count > 0 && count <= LINK_EXCHANGE_MAX);
    link->has_warned = false;
    note_words(link, "", "");
    if (!link->conn) {
        note_words(link, "", "the connection to PostgreSQL is lost");
        return LINK_LOST;
    }
    link->round_trips++;
    for (size_t i = 0; i < count; i++)
        if (statements[i].params && statements[i].params->is_unfit) {
            note_words(link, "54000", "more than 1 GiB in one column of a commit");
            return LINK_REFUSED;
        }
    return exchange(link, statements, count, are_new,
                    link->env->tick_ms(link->env) + link->deadline_ms);
}

enum link_end link_script(struct pg_link *link, const char *text)
{
    int64_t until_ms = link->env->tick_ms(link->env) + link->deadline_ms;
    enum link_end end = LINK_OK;
    PGresult *result;

    note_words(link, "", "");
    link->round_trips++;
    if (!link->conn || !link->pq->sendQuery(link->conn, text) || !push(link, until_ms))
        return link->conn ? lose_late(link) : LINK_LOST;
    for (;;) {
        if (!next_result(link, until_ms, &result))
            return lose_late(link);
        if (!result)
            return end;
        if (link->pq->resultStatus(result) == PGRES_FATAL_ERROR) {
            note_result(link, result);
            end = LINK_REFUSED;
        }
        link->pq->clear(result);
    }
}

enum link_end link_stream(struct pg_link *link, const char *text,
                          pawl_status (*fn)(void *context, PGresult *row), void *context,
                          pawl_status *status)
{
    int64_t until_ms = link->env->tick_ms(link->env) + link->deadline_ms;
    enum link_end end = LINK_OK;
    PGresult *result;

    note_words(link, "", "");
    link->round_trips++;
    if (!link->pq->sendQueryParams(link->conn, text, 0, NULL, NULL, NULL, NULL, 0) ||
        !link->pq->setSingleRowMode(link->conn) || !push(link, until_ms))
        return lose_late(link);
    for (;;) {
        if (!next_result(link, until_ms, &result))
            return lose_late(link);
        if (!result)
            return end;
        if (link->pq->resultStatus(result) == PGRES_FATAL_ERROR) {
            note_result(link, result);
            end = LINK_REFUSED;
        } else if (*status == PAWL_OK)
            *status = fn(context, result);
        link->pq->clear(result);
        if (*status != PAWL_OK) { /* what is left need not be sent */
            link_close(link);
            return LINK_OK;
        }
    }
}

void link_clear(struct pg_link *link, struct statement *statements, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        link->pq->clear(statements[i].result);
        statements[i].result = NULL;
    }
}
