/* follow.c - the entries of a store as they are recorded: a server's stream of events, or, if no
 * process owns the file, the file itself, read from time to time. */
#include "surface/cli/follow.h"
#include "api/events.h"
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define LOOK_MS    100 /* how often a file is looked at */
#define PAGE       1000
#define AWAY_MS    10000 /* how long a server may be away */
#define AGAIN_MS   200
#define QUIET_MS   20000
#define END_MS     2000              /* between the ends of two connections of a dying server */
#define STREAM_MAX ((size_t)8 << 20) /* of one event */

/* ---- A server's stream ---- */

static pawl_status open_stream(struct follow *follow, bool from_start)
{
    struct client *client = follow->cli->target.remote;
    char target[384];

    snprintf(target, sizeof target, "%s%s%s/events%s", client->store[0] ? client->store : "/v1",
             follow->id ? "/instances/" : "", follow->id ? follow->id : "",
             from_start ? "?from=start" : "");
    buf_clear(&follow->bytes);
    follow->has_head = false;
    return client_stream(client, target, follow->cursor, &follow->cli->scope, &follow->fd);
}

/* "HTTP/1.1 200 OK": anything else is a refusal, whose words are in the problem behind it. */
static pawl_status read_head(struct follow *follow, str bytes, size_t *used)
{
    const char *end = memmem(bytes.data, bytes.size, "\r\n\r\n", 4);

    if (!end)
        return PAWL_OK;
    *used = (size_t)(end - bytes.data) + 4;
    follow->has_head = true;
    if (bytes.size > 12 && memcmp(bytes.data + 9, "200", 3) == 0)
        return PAWL_OK;
    return scope_fail(&follow->cli->scope, PAWL_STORAGE_FAILURE,
                      "expected a stream of events, found '%.12s': %.*s", bytes.data,
                      STR_ARG(str_from(bytes, *used)));
}

static void report_entry(struct follow *follow, str entry)
{
    follow->fn(follow->context, entry);
    follow->count++;
}

/* One event: lines "id: ...", "event: ...", "data: ..."; comments are beats. Events of other kinds
 * than entries only move the cursor. */
static void read_event(struct follow *follow, str event)
{
    str data = STR_NONE, line;
    bool is_entry = true;

    while (str_take(&event, '\n', &line)) {
        if (str_starts(line, STR("id: ")))
            snprintf(follow->cursor, sizeof follow->cursor, "%.*s", STR_ARG(str_from(line, 4)));
        if (str_starts(line, STR("event: ")))
            is_entry = str_is(str_from(line, 7), EVENT_ENTRY);
        if (str_starts(line, STR("data: ")))
            data = str_from(line, 6);
    }
    if (data.data && is_entry)
        report_entry(follow, data);
}

static pawl_status read_events(struct follow *follow)
{
    str bytes = buf_view(&follow->bytes), rest;
    size_t used = 0;
    const char *end;

    if (!follow->has_head)
        TRY(read_head(follow, bytes, &used));
    rest = str_from(bytes, used);
    while (follow->has_head && rest.size > 1 && (end = memmem(rest.data, rest.size, "\n\n", 2))) {
        size_t size = (size_t)(end - rest.data);

        read_event(follow, (str){ rest.data, size });
        rest = str_from(rest, size + 2);
    }
    memmove(follow->bytes.data, rest.data, rest.size);
    follow->bytes.size = rest.size;
    return PAWL_OK;
}

/* The server or the connection ended: the stream resumes at the store's next server. */
static pawl_status find_again(struct follow *follow)
{
    struct watching *watching = follow->watching;
    struct cli *cli = follow->cli;
    pawl_status status = PAWL_STORAGE_FAILURE;
    char address[sizeof cli->target.address];

    snprintf(address, sizeof address, "%s", cli->target.address);
    watching_say(watching, 0, "%s is gone; looking for it again", address);
    close(follow->fd);
    follow->fd = -1;
    for (int64_t waited_ms = 0; waited_ms < AWAY_MS && !watching_is_over(); waited_ms += AGAIN_MS) {
        watching_wait(watching, -1, AGAIN_MS);
        target_close(cli);
        status = target_open(cli, USE_EXISTING, NULL);
        if (status == PAWL_OK && !cli->target.remote) {
            events_end(cli->target.local, &follow->at);
            if (!event_cursor_parse(str_of(follow->cursor), follow->at.count, &follow->at))
                events_end(cli->target.local, &follow->at);
            watching_say(watching, 0, "nothing serves %s now; reading its file", store_shown(cli));
            return PAWL_OK;
        }
        if (status == PAWL_OK)
            status = open_stream(follow, false);
        if (status == PAWL_OK) {
            watching_say(watching, BACK_MS, "%s is back", cli->target.address);
            return PAWL_OK;
        }
    }
    return watching_is_over() ? PAWL_OK : status;
}

static pawl_status read_stream(struct follow *follow, int64_t wait_ms)
{
    struct watching *watching = follow->watching;
    char block[65536];
    ssize_t size;

    watching->server = follow->cli->target.address;
    if (!watching_wait(watching, follow->fd, wait_ms)) {
        follow->quiet_ms += wait_ms;
        if (follow->quiet_ms >= QUIET_MS) /* a server in good health sends a comment every 15 s */
            watching_silence(watching, "has sent nothing for 20 s");
        return PAWL_OK;
    }
    follow->quiet_ms = 0;
    watching_answered(watching);
    size = read(follow->fd, block, sizeof block);
    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return PAWL_OK;
    if (size == 0 && !follow->has_head)
        TRY(client_check_tls(follow->cli->target.remote, &follow->cli->scope,
                             buf_view(&follow->bytes)));
    if (size <= 0)
        return find_again(follow);
    buf_add(&follow->bytes, block, (size_t)size);
    if (follow->bytes.failed)
        return scope_fail(&follow->cli->scope, PAWL_TOO_LARGE, "an event is larger than 8 MiB");
    return read_events(follow);
}

/* ---- A file without an owner ---- */

static pawl_status read_logged(void *context, const struct log_event *event)
{
    if (strcmp(event->kind, EVENT_ENTRY) == 0)
        report_entry(context, event->json);
    return PAWL_OK;
}

static pawl_status read_file(struct follow *follow, int64_t wait_ms)
{
    struct cli *cli = follow->cli;
    struct scope kept = scope_take(cli);
    pawl_status status = PAWL_OK;

    for (int64_t waited_ms = 0; status == PAWL_OK && !watching_is_over(); waited_ms += LOOK_MS) {
        scope_clear(&cli->scope);
        status = events_read(cli->target.local, &cli->scope, follow->id ? follow->id : "",
                             &follow->at, NULL, PAGE, read_logged, follow);
        if (follow->count > 0 || waited_ms >= wait_ms)
            break;
        watching_wait(follow->watching, -1, LOOK_MS);
    }
    scope_give(cli, kept);
    return status;
}

/* ---- Either ---- */

pawl_status follow_begin(struct follow *follow, bool from_start)
{
    buf_init(&follow->bytes, &heap_libc, STREAM_MAX);
    if (follow->cli->target.remote)
        return open_stream(follow, from_start);
    events_end(follow->cli->target.local, &follow->at);
    if (from_start)
        memset(follow->at.at, 0, sizeof follow->at.at);
    return PAWL_OK;
}

void follow_end(struct follow *follow)
{
    if (follow->fd >= 0)
        close(follow->fd);
    buf_fini(&follow->bytes);
}

bool follow_has_more(const struct follow *follow)
{
    struct pollfd stream = { .fd = follow->fd, .events = POLLIN };

    return follow->fd >= 0 && poll(&stream, 1, END_MS) > 0;
}

pawl_status follow_read(struct follow *follow, int64_t wait_ms)
{
    follow->count = 0;
    return follow->fd >= 0 ? read_stream(follow, wait_ms) : read_file(follow, wait_ms);
}
