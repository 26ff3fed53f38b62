/* era_of_server.c - which era a server speaks: it is asked as the newer one asks, and answers
 * that only the newer one gives decide. Any other answer, or none, means the older era, which
 * begins with a handshake. */
#include "tool/remote/remote_int.h"
#include <stdio.h>

#define PROBE_MS 10000 /* a program of the older era may ignore what it does not know */

static bool is_modern_error(const struct remote_talk *talk)
{
    return talk->fault == FAULT_ERROR && talk->code <= -32020 && talk->code >= -32022;
}

static bool speaks_modern(const struct node *result)
{
    for (const struct node *one = node_first(result, "supportedVersions"); one; one = one->next)
        if (one->kind == NODE_STRING && str_is(one->text, MODERN_VERSION))
            return true;
    return false;
}

/* False: not known, and `fault` says why. */
static bool probe(struct remote_talk *talk)
{
    const struct remote_request request = { .method = "server/discover" };
    int64_t left = talk->left_ms;
    struct node *result;
    bool is_modern;

    talk->peer.era = ERA_MODERN;
    if (talk->left_ms > PROBE_MS)
        talk->left_ms = PROBE_MS;
    is_modern = talk_once(talk, &request, &result) ? speaks_modern(result) : is_modern_error(talk);
    talk->left_ms += left > PROBE_MS ? left - PROBE_MS : 0;
    if (talk->fault == FAULT_STOPPED || talk->fault == FAULT_UNREACHABLE ||
        talk->fault == FAULT_MEMORY || (talk->fault == FAULT_BROKEN && talk->link) ||
        (talk->fault == FAULT_HTTP && (talk->status == 401 || talk->status == 403))) {
        talk->peer.era = ERA_UNKNOWN;
        if (talk->fault == FAULT_BROKEN) /* nothing was asked of it that it could have done */
            talk->fault = FAULT_UNREACHABLE;
        return false;
    }
    talk->fault = FAULT_NONE;
    talk->peer.era = is_modern ? ERA_MODERN : ERA_LEGACY;
    return true;
}

static bool is_spoken(str version)
{
    static const char *const ours[] = { LEGACY_VERSION, "2025-06-18", "2025-03-26", "2024-11-05",
                                        NULL };

    return str_is_one_of(version, ours);
}

static bool take_handshake(struct remote_talk *talk, const struct node *result)
{
    const struct node *tasks = node_find(node_find(result, "capabilities"), "tasks");
    const struct node *calls = node_find(node_find(node_find(tasks, "requests"), "tools"), "call");
    str version = node_text(result, "protocolVersion");

    if (!is_spoken(version))
        return talk_fails(
            talk, FAULT_INVALID, "it speaks the version '%.*s' of MCP, which pawl does not",
            version.size < 32 ? (int)version.size : 32, version.data ? version.data : "");
    (void)snprintf(talk->peer.version, sizeof talk->peer.version, "%.*s", STR_ARG(version));
    talk->peer.has_task_calls = calls != NULL && str_is(version, LEGACY_VERSION);
    return true;
}

static bool shake_hands(struct remote_talk *talk)
{
    const struct remote_request begin = {
        .method = "initialize",
        .params =
            STR("\"protocolVersion\":\"" LEGACY_VERSION "\",\"capabilities\":{"
                "\"elicitation\":{}},\"clientInfo\":{\"name\":\"pawl\",\"version\":\"" PAWL_VERSION
                "\"}")
    };
    const struct remote_request done = { .method = "notifications/initialized",
                                         .is_notification = true };
    struct node *result;

    talk->peer = (struct remote_peer){ .era = ERA_LEGACY };
    if (talk_once(talk, &begin, &result) && take_handshake(talk, result) &&
        talk_once(talk, &done, &result))
        return true;
    talk->peer = (struct remote_peer){ 0 };
    if (talk->fault == FAULT_BROKEN || talk->fault == FAULT_LATE)
        talk->fault = FAULT_UNREACHABLE;
    return false;
}

bool era_find(struct remote_talk *talk)
{
    if (talk->peer.era == ERA_UNKNOWN && !probe(talk))
        return false;
    return talk->peer.era == ERA_MODERN || talk->peer.version[0] != '\0' || shake_hands(talk);
}

void era_forget(struct remote_talk *talk)
{
    talk->peer = (struct remote_peer){ .era = (enum remote_era)talk->server->rule->era };
}
