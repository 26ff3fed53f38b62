/* trial_script.c - the script of a trial: its options --signal, --fire and --complete, read before
 * anything happens; and those that nothing waited for. */
#include "base/time.h"
#include "surface/cli/trial.h"

static const struct script_option {
    const char *option, *awaited;
    bool needs_value;
} script_options[] = {
    [SCRIPT_SIGNAL] = { "signal", "signal", true },
    [SCRIPT_FIRE] = { "fire", "action", false },
    [SCRIPT_COMPLETE] = { "complete", "step", true },
};

#define SCRIPT_KINDS (sizeof script_options / sizeof script_options[0])

const char *script_awaited(const struct scripted *line)
{
    return script_options[line->kind].awaited;
}

static bool find_kind(const char *option, enum script_kind *out)
{
    for (size_t kind = 0; kind < SCRIPT_KINDS; kind++)
        if (strcmp(script_options[kind].option, option) == 0) {
            *out = (enum script_kind)kind;
            return true;
        }
    return false;
}

/* NAME@AFTER: the last '@', so that a name which has one can be written with @0s behind it. */
static pawl_status read_name(struct cli *cli, str name, struct scripted *out)
{
    const struct cli_option *option = out->given->option;
    size_t at = name.size;

    while (at > 0 && name.data[at - 1] != '@')
        at--;
    out->name = at > 0 ? (str){ name.data, at - 1 } : name;
    if (out->name.size == 0)
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST, "--%s: expected %s, found '%s'",
                          option->name, option->value, out->given->value);
    if (at > 0 && !duration_parse(str_from(name, at), &out->at_ms))
        return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                          "--%s %.*s: expected a duration like 30s or 2d after the '@', found "
                          "'%.*s'",
                          option->name, STR_ARG(name), STR_ARG(str_from(name, at)));
    return PAWL_OK;
}

static pawl_status read_one(struct cli *cli, struct scripted *out)
{
    str name = str_of(out->given->value), value = STR_NONE;

    if (script_options[out->kind].needs_value || strchr(out->given->value, '='))
        TRY(args_pair(cli, out->given, &name, &value));
    TRY(read_name(cli, name, out));
    if (!value.data)
        return PAWL_OK;
    return out->kind == SCRIPT_COMPLETE
               ? answer_read(cli, out->given->option, value, &out->json, &out->is_failure)
               : args_json(cli, out->given->option, value.data, &out->json);
}

bool option_is_about_gates(const char *option)
{
    return strcmp(option, "approve") == 0 || strcmp(option, "reject") == 0;
}

bool option_is_for_trials(const char *option)
{
    enum script_kind kind;

    return option_is_about_gates(option) || find_kind(option, &kind);
}

pawl_status script_read(struct trial *trial)
{
    struct cli *cli = trial->cli;

    for (uint32_t i = 0; i < cli->given_count; i++) {
        const struct given *given = &cli->given[i];
        str value = str_of(given->value);
        struct scripted line = { .given = given };

        if (option_is_about_gates(given->option->name) &&
            (!str_is_utf8(value, false) || str_is_blank(value)))
            return scope_fail(&cli->scope, PAWL_INVALID_REQUEST,
                              "--%s: expected the name of an actor, found '%s'",
                              given->option->name, given->value);
        if (!find_kind(given->option->name, &line.kind))
            continue;
        TRY(read_one(cli, &line));
        trial->script[trial->script_count++] = line;
    }
    return PAWL_OK;
}

int64_t script_next(const struct trial *trial)
{
    int64_t next_ms = -1;

    for (uint32_t i = 0; i < trial->script_count; i++) {
        int64_t wait_ms = trial->script[i].at_ms - trial->span_ms;

        if (!trial->script[i].is_sent && wait_ms > 0 && (next_ms < 0 || wait_ms < next_ms))
            next_ms = wait_ms;
    }
    return next_ms;
}

void script_report(const struct trial *trial)
{
    struct term term = trial->cli->term;

    term.out = stderr;
    for (uint32_t i = 0; i < trial->script_count; i++) {
        const struct scripted *line = &trial->script[i];

        if (line->is_sent)
            continue;
        fprintf(stderr, "  --%s ", line->given->option->name);
        term_cell(&term, PLAIN, str_of(line->given->value), 60, 0);
        fprintf(stderr, ": nothing waited for it%s\n", line->at_ms > 0 ? " then" : "");
    }
}
