/* stubs.c - which tools a run may call: what pawl.yaml says, and answers in the place of tools
 * (--stub TOOL=JSON, --stub TOOL=fail:REASON), written as rules of tool/rules.h. */
#include "api/config.h"
#include "base/time.h"
#include "surface/cli/host.h"
#include "surface/cli/trial.h"

#define STUB_FAILS "fail:"

struct stub {
    str tool, json;
    bool failed;
};

/* A reason that is no JSON is a text. */
static pawl_status read_reason(struct cli *cli, str text, str *out)
{
    struct buf json;
    struct node *value;

    if (node_read_json(&cli->scope, text, &value) == PAWL_OK) {
        *out = value->raw;
        return PAWL_OK;
    }
    buf_init(&json, cli->scope.arena.heap, CLI_ANSWER_MAX);
    json_str(&json, text);
    *out = buf_take(&json, &cli->scope.arena);
    return out->data ? PAWL_OK : scope_no_memory(&cli->scope);
}

pawl_status answer_read(struct cli *cli, const struct cli_option *option, str value, str *json,
                        bool *is_failure)
{
    *is_failure = str_starts(value, STR(STUB_FAILS));
    return *is_failure ? read_reason(cli, str_from(value, strlen(STUB_FAILS)), json)
                       : args_json(cli, option, value.data, json);
}

/* TOOL@2d would be a tool of that name, which is never meant. */
static bool has_time(str tool)
{
    size_t at = tool.size;
    int64_t after_ms;

    while (at > 0 && tool.data[at - 1] != '@')
        at--;
    return at > 0 && duration_parse(str_from(tool, at), &after_ms);
}

static pawl_status read_stub(struct cli *cli, const struct given *given, struct stub *out)
{
    str value;

    TRY(args_pair(cli, given, &out->tool, &value));
    if (has_time(out->tool))
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                          "--stub: expected %s, found '%s': a tool answers when it is called, not "
                          "after a time",
                          given->option->value, given->value);
    return answer_read(cli, given->option, value, &out->json, &out->failed);
}

static bool is_among(const struct stub *stubs, uint32_t count, str tool)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(stubs[i].tool, tool))
            return true;
    return false;
}

/* All answers of one tool, at the first of them: given again, it is what the next attempt gets. */
static void put_answers(const struct stub *stubs, uint32_t count, uint32_t first, struct buf *out)
{
    json_key_str(out, stubs[first].tool);
    json_open(out, '{');
    json_put_open(out, "answers", '[');
    for (uint32_t i = first; i < count; i++) {
        if (!str_eq(stubs[i].tool, stubs[first].tool))
            continue;
        json_open(out, '{');
        json_key(out, stubs[i].failed ? "error" : "result");
        json_raw(out, stubs[i].json);
        json_close(out, '}');
    }
    json_close(out, ']');
    json_close(out, '}');
}

static pawl_status merge(struct cli *cli, const char *configured, const struct stub *stubs,
                         uint32_t count, const char **out)
{
    struct node *rules = NULL;
    struct buf text;
    str kept;

    if (configured)
        TRY(node_read_json(&cli->scope, str_of(configured), &rules));
    input_init(&text);
    for (const struct node *rule = rules ? rules->first : NULL; rule; rule = rule->next)
        if (!is_among(stubs, count, rule->key)) {
            json_key_str(&text, rule->key);
            json_raw(&text, rule->raw);
        }
    for (uint32_t i = 0; i < count; i++)
        if (!is_among(stubs, i, stubs[i].tool))
            put_answers(stubs, count, i, &text);
    json_close(&text, '}');
    kept = buf_take(&text, &cli->scope.arena);
    *out = kept.data;
    return kept.data ? PAWL_OK : scope_no_memory(&cli->scope);
}

pawl_status run_tools(struct cli *cli, struct host_options *options)
{
    struct stub stubs[CLI_OPTIONS_MAX];
    struct config config;
    uint32_t count = 0;

    TRY(config_load(cli, &config));
    for (const struct given *given = NULL; (given = given_next(cli, "stub", given));)
        TRY(read_stub(cli, given, &stubs[count++]));
    options->workers = config.workers;
    options->max_entries = config.max_entries;
    options->max_live_steps = config.max_live_steps;
    options->tools = config.tools;
    return count > 0 ? merge(cli, config.tools, stubs, count, &options->tools) : PAWL_OK;
}
