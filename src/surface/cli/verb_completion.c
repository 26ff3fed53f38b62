/* verb_completion.c - completion: a script for bash, zsh or fish; and what the scripts ask for: the
 * words that may come next, read off the table of verbs and, for names and ids, off the store. */
#include "surface/cli/cli.h"

#define IDS_MAX 50 /* of the newest */

/* completion/: each runs `pawl completion candidates -- WORDS`, which prints
 * lines "WORD<tab>WHAT" or ":files". */
extern const str completion_files[][2];

/* ---- Candidates ---- */

struct typed {
    struct cli *cli;
    const char *begun; /* the word that is being typed */
    const struct verb *verb;
    uint32_t operand;                /* which one is being typed */
    const char *operands[3];         /* that were typed before it */
    const struct cli_option *option; /* whose value is being typed */
};

static void offer(const struct typed *typed, const char *word, const char *about)
{
    if (strncmp(word, typed->begun, strlen(typed->begun)) == 0)
        fprintf(typed->cli->term.out, "%s\t%s\n", word, about);
}

/* "a|b|c", "[a|b]": words that stand for themselves. */
static void offer_choices(const struct typed *typed, const char *choices)
{
    while (*choices) {
        size_t size = strcspn(choices, "|[] ");
        char word[64];

        if (size > 0 && size < sizeof word && choices[0] >= 'a' && choices[0] <= 'z') {
            snprintf(word, sizeof word, "%.*s", (int)size, choices);
            offer(typed, word, "");
        }
        choices += size + (choices[size] != '\0');
    }
}

static const struct node *ask_list(const struct typed *typed, const char *operation,
                                   const char *member)
{
    struct cli *cli = typed->cli;
    struct node *answer = NULL;
    int64_t limit = strcmp(operation, "instance.list") == 0 ? IDS_MAX : 0;

    if (!cli->target.local && !cli->target.remote &&
        target_open(cli, USE_EXISTING, NULL) != PAWL_OK)
        return NULL;
    if (cli_ask(cli, operation, WITH({ "limit", .number = limit }), &answer) != PAWL_OK)
        return NULL;
    return node_first(answer, member);
}

static void offer_list(const struct typed *typed, const char *operation, const char *list,
                       const char *word, const char *about)
{
    const struct node *one = ask_list(typed, operation, list);

    for (; one; one = one->next)
        offer(typed, member_str(one, word).data, member_str(one, about).data);
}

static void offer_definitions(const struct typed *typed)
{
    offer_list(typed, "definition.list", "definitions", "name", "kind");
}

static void offer_ids(const struct typed *typed)
{
    const struct node *one = ask_list(typed, "instance.list", "instances");

    offer(typed, "@last", "the instance that you created last");
    for (; one; one = one->next) {
        char about[256];

        snprintf(about, sizeof about, "%.*s %.*s", STR_ARG(member_str(one, "definition")),
                 STR_ARG(member_str(one, "current_state")));
        offer(typed, member_str(one, "instance_id").data, about);
    }
}

/* What the instance that was named before allows, or awaits. */
static void offer_of_instance(const struct typed *typed, const char *operation, const char *list,
                              const char *kind, const char *name)
{
    struct cli *cli = typed->cli;
    struct node *answer;
    const char *id;

    if (target_open(cli, USE_EXISTING, NULL) != PAWL_OK ||
        id_resolve(cli, typed->operands[0], &id) != PAWL_OK ||
        cli_ask_id(cli, operation, id, &answer) != PAWL_OK)
        return;
    for (const struct node *one = node_first(answer, list); one; one = one->next)
        if (!kind || str_is(member_str(one, "kind"), kind))
            offer(typed, member_str(one, name).data, member_str(one, "to_state").data);
}

/* By what help calls it. */
static void offer_value(const struct typed *typed, const char *what)
{
    if (strstr(what, "FILE"))
        fputs(":files\n", typed->cli->term.out);
    if (strcmp(what, "STEP_ID") == 0)
        offer_list(typed, "step.list", "steps", "step_id", "name");
    else if (strcmp(what, "ID") == 0 || strcmp(what, "[ID]") == 0)
        offer_ids(typed);
    else if (strcmp(what, "ACTION") == 0)
        offer_of_instance(typed, "instance.get", "actions", NULL, "action");
    else if (strcmp(what, "NAME") == 0 && strcmp(typed->verb->name, "signal") == 0)
        offer_of_instance(typed, "instance.why", "waiting_for", "signal", "name");
    else if (strstr(what, "DEFINITION") || strstr(what, "NAME"))
        offer_definitions(typed);
    else
        offer_choices(typed, what);
}

static void offer_option_value(const struct typed *typed)
{
    static const struct {
        const char *word, *choices; /* the option's name, or what help calls its value */
    } known[] = {
        { "format", "text|mermaid|dot|svg|json" },
        { "log-format", "logfmt|json" },
        { "TIME", "now|today|yesterday|tomorrow" },
        { "STATUS", "running|waiting|paused|completed|failed|cancelled" },
        { "KIND", "machine|flow|code" },
        { "ORDER", "newest|oldest" },
        { "WHEN", "always|never|auto" },
    };
    const struct cli_option *option = typed->option;

    if (strcmp(option->name, "instance") == 0)
        offer_ids(typed);
    else if (strcmp(option->name, "definition") == 0 || strcmp(option->name, "against") == 0)
        offer_definitions(typed);
    else if (strstr(option->value, "FILE"))
        fputs(":files\n", typed->cli->term.out);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(option->name, known[i].word) == 0 || strcmp(option->value, known[i].word) == 0)
            offer_choices(typed, known[i].choices);
}

static void offer_options(const struct typed *typed, const struct cli_option *option)
{
    for (; option && option->name; option++) {
        char word[64];

        snprintf(word, sizeof word, "--%s", option->name);
        offer(typed, word, option->summary);
    }
}

/* The operand's name in the usage line: the last one if it may be repeated. */
static void offer_operand(const struct typed *typed)
{
    const char *at = typed->verb->operands;
    char what[64] = "";

    for (uint32_t i = 0; *at && i <= typed->operand; i++) {
        size_t size = strcspn(at, " ");

        snprintf(what, sizeof what, "%.*s", (int)size, at);
        at += size + (at[size] == ' ');
        if (i < typed->operand && !strstr(what, "..."))
            what[0] = '\0';
    }
    if (what[0] && typed->operand < typed->verb->operand_max)
        offer_value(typed, what);
}

/* ---- What was typed ---- */

static void read_word(struct typed *typed, const char *word)
{
    if (typed->option) {
        if (strcmp(typed->option->name, "store") == 0)
            typed->cli->store = word;
        typed->option = NULL;
    } else if (strncmp(word, "--", 2) == 0) {
        const struct cli_option *option = option_find(global_options, str_of(word + 2));

        if (!option && typed->verb)
            option = option_find(typed->verb->options, str_of(word + 2));
        typed->option = option && option->value ? option : NULL;
    } else if (!typed->verb) {
        typed->verb = verb_find(word);
    } else {
        if (typed->operand < sizeof typed->operands / sizeof typed->operands[0])
            typed->operands[typed->operand] = word;
        typed->operand++;
    }
}

/* The first operand is the word `candidates`. */
static int print_candidates(struct cli *cli)
{
    uint32_t last = cli->operand_count - 1;
    struct typed typed = { .cli = cli, .begun = cli->operands[last] };

    for (uint32_t i = 1; i < last; i++)
        read_word(&typed, cli->operands[i]);
    if (last == 0)
        return EXIT_DONE;
    if (typed.option) {
        offer_option_value(&typed);
    } else if (typed.begun[0] == '-') {
        offer_options(&typed, typed.verb ? typed.verb->options : NULL);
        offer_options(&typed, global_options);
    } else if (typed.verb) {
        offer_operand(&typed);
    } else {
        for (const struct verb *verb = verbs; verb->name; verb++)
            offer(&typed, verb->name, verb->summary);
    }
    return EXIT_DONE;
}

int verb_completion(struct cli *cli)
{
    if (strcmp(cli->operands[0], "candidates") == 0)
        return print_candidates(cli);
    for (size_t i = 0; completion_files[i][0].data; i++)
        if (str_is(completion_files[i][0], cli->operands[0]) && cli->operand_count == 1) {
            fputs(completion_files[i][1].data, cli->term.out);
            return EXIT_DONE;
        }
    return usage_fail(cli, "expected bash, zsh or fish, found '%s'", cli->operands[0]);
}
