/* help.c - the overview, the help of a verb, and the message for wrong words. */
#include "surface/cli/cli.h"
#include <stdarg.h>

static void put_groups(const struct term *term)
{
    const char *group = "";

    for (const struct verb *verb = verbs; verb->name; verb++) {
        if (strcmp(verb->group, group) != 0)
            term_put(term, BOLD, "\n%s\n", verb->group);
        group = verb->group;
        term_put(term, ACCENT, "  %-10s", verb->name);
        term_put(term, DIM, " %-11s", verb->operands);
        fprintf(term->out, " %s\n", verb->summary);
    }
}

void help_overview(const struct term *term)
{
    term_put(term, BOLD, "pawl " PAWL_VERSION);
    fputs(" - processes that remember: machines, flows and code, in one file\n\n"
          "  pawl [--store URL] VERB ... [--json]\n",
          term->out);
    put_groups(term);
    term_put(term, BOLD, "\nEverywhere\n");
    fputs("  --store URL   sqlite:FILE (default sqlite:pawl.db, or $PAWL_STORE), memory:,\n"
          "                postgres://HOST/DATABASE, or http://host:port of a server, called\n"
          "                with the token $PAWL_TOKEN\n"
          "  --json        print what HTTP would answer\n"
          "  --color WHEN  always, never, or auto: on a terminal without $NO_COLOR\n"
          "  --help        of pawl, or of a verb: pawl fire --help\n"
          "  --version\n\n"
          "An ID may be any unique prefix of one, its number in decimal (7; a step: 7.2), or\n"
          "@last: the instance that you created last in this store. Digits that do not begin\n"
          "with a 0 are a number. A TIME is RFC 3339, a date (2026-05-01; days are UTC), a\n"
          "duration (7d: so long ago), or now, today, yesterday, tomorrow. Exit status: 0 done,\n"
          "1 rejected, 2 usage, 3 storage failure or in use.\n\n"
          "New here?  pawl demo, and the language of definitions: man pawl-definition, or\n"
          "           docs/definitions.md\n",
          term->out);
}

static void put_options(const struct term *term, const struct verb *verb)
{
    if (!verb->options)
        return;
    term_put(term, BOLD, "\nOptions\n");
    for (const struct cli_option *option = verb->options; option->name; option++) {
        char word[48];

        snprintf(word, sizeof word, "--%s %s", option->name, option->value ? option->value : "");
        term_put(term, ACCENT, "  %-20s", word);
        fprintf(term->out, " %s\n", option->summary);
    }
}

void help_verb(const struct term *term, const struct verb *verb)
{
    str examples = str_of(verb->examples), line;

    term_put(term, BOLD, "pawl %s%s%s%s", verb->name, verb->operands[0] ? " " : "", verb->operands,
             verb->options ? " [options]" : "");
    fprintf(term->out, "\n  %s\n", verb->summary);
    put_options(term, verb);
    term_put(term, BOLD, "\nExamples\n");
    while (str_take(&examples, '\n', &line))
        fprintf(term->out, "  %.*s\n", STR_ARG(line));
}

int usage_fail(const struct cli *cli, const char *format, ...)
{
    va_list arguments;

    fputs("pawl: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    if (cli->verb)
        fprintf(stderr, "\n  usage: pawl %s %s\n  see: pawl %s --help\n", cli->verb->name,
                cli->verb->operands, cli->verb->name);
    else
        fputs("\n  see: pawl --help\n", stderr);
    return EXIT_USAGE;
}
