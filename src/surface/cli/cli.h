/* cli.h - the command line: words in, one operation, an answer for people or as JSON.
 *
 * A verb is a row of the table that tools/gen-ops makes from verbs.yaml. Most of them are nothing
 * but (operation, input): options and operands name the members of the operation's input, the
 * answer is rendered. No rule of the engine lives here: what may be done is decided below pawl.h.
 *
 * Everything transient lives in cli->scope until the process ends; loops that poll clear a
 * scope of their own. */
#ifndef PAWL_SURFACE_CLI_CLI_H
#define PAWL_SURFACE_CLI_CLI_H

#include "base/buf.h"
#include "base/ids.h"
#include "base/node.h"
#include "base/scope.h"
#include "surface/cli/client.h"
#include "surface/cli/files.h"
#include "surface/cli/term.h"
#include <pawl.h>
#include <stdio.h>

#define CLI_OPERANDS_MAX 64
#define CLI_OPTIONS_MAX  64
#define CLI_MEMORY_MAX   ((size_t)1 << 30) /* of one command; a long list is the largest */
#define CLI_ANSWER_MAX   ((size_t)256 << 20)
#define CLI_PORT         7295
#define CLI_STORE        "sqlite:pawl.db"

/* STOPPED: verify, before its end. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_REJECTED = 1,
    EXIT_USAGE = 2,
    EXIT_STORE = 3,
    EXIT_STOPPED = 4
};

/* ---- Verbs and their words ---- */

enum option_kind {
    OPTION_FLAG,   /* true, if it is there */
    OPTION_TEXT,   /* a string */
    OPTION_NUMBER, /* decimal digits */
    OPTION_JSON,   /* JSON, or @FILE with JSON in it */
    OPTION_LABEL,  /* K=V, any number of times: {member: {K: V}} */
    OPTION_FILTER, /* K=V, any number of times: {member + K: V} */
    OPTION_FILE,   /* a file of JSON or YAML, as JSON */
    OPTION_SINCE,  /* a time; a duration is as long ago, a day its beginning */
    OPTION_UNTIL,  /* a time; the same, a day its end */
    OPTION_DUE,    /* a time; a duration is from now on */
    OPTION_SPAN,   /* a time, a day, or two with .. between them; a duration is up to now */
};

struct cli_option {
    const char *name;  /* without its dashes */
    const char *value; /* what help calls its value; NULL: a flag */
    enum option_kind kind;
    const char *member; /* of the operation's input; NULL: the verb reads it itself */
    const char *summary;
};

struct cli;
typedef void (*render_fn)(struct cli *cli, const struct node *answer);

struct verb {
    const char *name;
    const char *group;    /* a heading of the overview */
    const char *operands; /* for the usage line: "ID ACTION" */
    uint32_t operand_min, operand_max;
    const char *summary;
    const struct cli_option *options; /* ending in a zero row; NULL: none */
    const char *examples;
    const char *operation;  /* what it calls; NULL: more than one, or none */
    const char *members[2]; /* of the input, one for each operand */
    render_fn render;
    int (*run)(struct cli *cli); /* NULL: call `operation`, then render */
};

extern const struct verb verbs[];                /* ending in a zero row */
extern const struct cli_option global_options[]; /* of every verb; likewise */
const struct verb *verb_find(const char *name); /* NULL: not found */
const struct cli_option *option_find(const struct cli_option *options,
                                     str name); /* NULL: likewise */

struct given {
    const struct cli_option *option;
    const char *value; /* NULL for a flag */
};

/* ---- Where operations go ---- */

enum target_use {
    USE_EXISTING, /* the store must be there */
    USE_CREATE,   /* made if it is missing */
    USE_READ,     /* read here, also if a process owns it; nothing is registered */
    USE_OWN,      /* ours alone, with workers; through its owner if it has one */
    USE_SERVE,    /* the same; but one in PostgreSQL that has an owner is IN_USE */
};

struct target {
    pawl *local;           /* or else: */
    struct client *remote; /* a server, or the owner of the store: `client` */
    struct client client;
    bool through_owner;
    char address[512]; /* of the remote */
};

struct cli {
    struct scope scope; /* the error of the last call is in it */
    struct term term;
    const char *command; /* how to call us again for this store: "pawl --store URL" */
    const char *store;
    bool store_given; /* by --store or PAWL_STORE */
    bool store_named; /* by --store */
    const char *usual; /* the store where there is no --store */
    bool json, help;
    str declaration; /* the text of the file that an option names; data NULL: none was read */
    bool is_advised; /* the words of the error name the next command */
    const struct verb *verb;
    const char *operands[CLI_OPERANDS_MAX];
    uint32_t operand_count;
    struct given given[CLI_OPTIONS_MAX];
    uint32_t given_count;
    struct target target;
    const struct pawl_module *module; /* of a program that is more than pawl; NULL: none */
    pawl_status (*opened)(void *context, pawl *p, pawl_error *error); /* its own; NULL: none */
    void *opened_context;
};

/* ---- args.c ---- */

/* Fill cli from the words. USAGE (with a message on stderr) or DONE. cli->verb NULL: no verb. */
int args_parse(struct cli *cli, int argc, char **argv);
const char *args_option(const struct cli *cli, const char *name); /* the last; NULL: not given */
bool args_flag(const struct cli *cli, const char *name);
/* The next option of this name behind `before` (NULL: the first); NULL: there is no other. */
/* As if it had been given; false: it is not an option of the verb, or there are too many. */
bool args_add(struct cli *cli, const char *name, const char *value);
const struct given *given_next(const struct cli *cli, const char *name, const struct given *before);

/* Write the members that options and operands name, without the braces. Ids among the
 * operands are looked up. Fails with INVALID_REQUEST and what the lookup fails with. */
pawl_status args_members(struct cli *cli, struct buf *input);

/* An option's value as it was written: KEY=VALUE; JSON, or @FILE with JSON in it. INVALID_REQUEST.
 */
pawl_status args_pair(struct cli *cli, const struct given *given, str *key, str *value);
pawl_status args_json(struct cli *cli, const struct cli_option *option, const char *value,
                      str *out);

/* when.c: a time as people type it (RFC 3339, a date, 7d, yesterday, ...), as RFC 3339. `kind` is
 * one of the three kinds of times. False: it is not a time. */
#define WHEN_SIZE     32
#define WHEN_EXPECTED                                                                              \
    "a time (RFC 3339), a date, a duration like 7d, or now, today, yesterday, tomorrow"
bool when_read(enum option_kind kind, const char *value, char out[WHEN_SIZE]);
/* The same for OPTION_SPAN: "TIME", "TIME..TIME", "TIME.." or "..TIME". */
#define WHEN_SPAN_SIZE (2 * WHEN_SIZE + 2)
bool when_read_span(const char *value, char out[WHEN_SPAN_SIZE]);
/* Does a span that was read so end before it begins? */
bool when_is_backward(const char *span);

/* config.c: what --config FILE says, or pawl.yaml if it is there; nothing if neither. */
struct config;
pawl_status config_load(struct cli *cli, struct config *out);
pawl_status config_check(struct cli *cli, const char *path); /* of one file, for people */
bool config_is_named(const char *path);

/* ---- help.c ---- */

void help_overview(const struct term *term);
void help_verb(const struct term *term, const struct verb *verb);
int usage_fail(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- report.c: what went wrong ---- */

int exit_of(pawl_status status);

/* Say the error in cli->scope, "pawl: TOKEN: words", on stderr, and where sensible the next command
 * to try; with --json the problem as HTTP would answer it on stdout. Returns the exit status. */
int report(struct cli *cli);

/* Of a name that is not known: those that are, and how to make another. */
void hint_definitions(struct cli *cli);

/* ---- target.c ---- */

/* Open cli->store. NOT_KNOWN if it must exist and does not; IN_USE, STORAGE_FAILURE, ... */
pawl_status target_open(struct cli *cli, enum target_use use, const pawl_options *options);
/* For what needs no store: cli->store, or one in memory if its file is not there. */
pawl_status target_open_any(struct cli *cli, const pawl_options *options);
void target_close(struct cli *cli);

/* Call an operation. The input is freed; the answer and the error are in cli->scope. */
pawl_status target_call(struct cli *cli, const char *operation, struct buf *input,
                        const struct answer_to *to);

/* A member of an input: a text, JSON or a number. One without a value is left out. */
struct ask_member {
    const char *name; /* NULL: the end of the list */
    str text, json;
    int64_t number;
};
#define WITH(...) ((const struct ask_member[]){ __VA_ARGS__, { 0 } })

/* Inputs for target_call(): an empty one, which the caller closes; one of these members; one of
 * what the command line says (args_members()) and of these, which fails as that does. */
void input_init(struct buf *input);
void input_with(struct buf *input, const struct ask_member *members);
pawl_status input_typed(struct cli *cli, struct buf *input, const struct ask_member *members);

/* Call, and parse the answer; (*out)->raw is its text.
 * cli_ask(cli, "instance.find", WITH({ "prefix", text }), &answer). */
pawl_status cli_ask(struct cli *cli, const char *operation, const struct ask_member *members,
                    struct node **out);
/* The same with one member, instance_id (NULL: none). */
pawl_status cli_ask_id(struct cli *cli, const char *operation, const char *id, struct node **out);
/* The same with what the command line says; `members` may be NULL. */
pawl_status cli_ask_typed(struct cli *cli, const char *operation, const struct ask_member *members,
                          struct node **out);

/* Every row of a list, page by page; `order` may be NULL. `each` fails as the whole does. */
typedef pawl_status (*each_row_fn)(void *context, const struct node *row);
pawl_status rows_each(struct cli *cli, const char *operation, const char *member, const char *order,
                      each_row_fn each, void *context);

/* The first cell of what a query finds; *out NULL: it finds nothing. */
pawl_status sql_first(struct cli *cli, const char *query, const struct node **out);

/* The URL with its scheme in small letters, if it is one of ours. */
const char *store_normal(struct cli *cli, const char *url);
/* The file of a sqlite: URL, or NULL. */
const char *store_file(const char *url);
/* Is what it holds there when this process has ended? */
bool store_outlives(const char *url);
/* The store's URL for people: without a password. */
const char *store_shown(struct cli *cli);

/* ---- resolve.c ---- */

/* An id, a unique prefix of one, its number in decimal, or @last. NOT_KNOWN, INVALID_REQUEST (more
 * than one, or a write to @last where it may be another user's). */
pawl_status id_resolve(struct cli *cli, const char *text, const char **out);

/* A step's id, whose instance may be written as above: "6.2"; or an instance, if one step of it
 * waits for what the verb does. NOT_AWAITING, INVALID_REQUEST (several wait: they are listed). */
pawl_status step_resolve(struct cli *cli, const char *text, const char **out);

/* Of instance.why: does the instance wait for something of this kind and name? */
bool waits_for(const struct node *why, const char *kind, str name);

/* This user has created that instance: @last from now on. */
void last_note(struct cli *cli, str id);

/* last.c: which instance this user created last in the store of this id. False: none is known. */
void last_write(str store, str id);
bool last_find(str store, char out[ID_SIZE + 1]);

/* ---- Pieces of several verbs ---- */

/* The end of nearly every verb: the answer as JSON or rendered, or the rejection. The exit
 * status. */
int verb_conclude(struct cli *cli, pawl_status status, const struct node *answer, render_fn render);

/* An answer that a function left in `text`, which is freed. `status` is what that returned. */
pawl_status answer_take(struct cli *cli, pawl_status status, struct buf *text, struct node **out);

/* Call an operation whose answer is no JSON, and print it as it is. The exit status. */
int verb_put_text(struct cli *cli, const char *operation, struct buf *input, bool ends_line);

/* A verb whose first operand says what it does: pawl token revoke ID. */
struct verb_part {
    const char *word, *operation; /* word NULL: the end of the list */
    const char *member;           /* that the second operand is; NULL: it has none */
    enum target_use use;
    bool has_options; /* of the operation */
};
int verb_do_part(struct cli *cli, const struct verb_part *part, const char *usage,
                 render_fn render);

/* The memory of one frame or page: use another scope until it is given back. The error stays. */
struct scope scope_take(struct cli *cli);
void scope_give(struct cli *cli, struct scope kept);
/* Open, ask with what the command line says, and conclude. */
int verb_do(struct cli *cli, enum target_use use, const char *operation, render_fn render);

/* Rows of an answer as a table; `fill` writes the cells and styles of one. False: no rows. */
typedef void (*fill_fn)(struct cli *cli, const struct text_table *table, const struct node *row,
                        str *cells, enum style *styles);
bool rows_print(struct cli *cli, const struct node *rows, struct text_table *table, fill_fn fill,
                struct table_pages *pages);

void print_json(struct cli *cli, str answer);

/* What this binary brings, what its main() brought, and what --module names. */
pawl_status types_register(struct cli *cli, pawl *p, pawl_error *error);
/* The same for a store beside the one that has them: as http_options.opened. */
pawl_status types_register_beside(void *cli, pawl *p, pawl_error *error);
pawl_status countdown_register(pawl *p, pawl_error *error);

/* Put the definition in a file, under `name` or its own. */
struct put {
    str source; /* data NULL: the file could not be read */
    const char *name;
    struct node *answer;
};
/* A file's name without folder and ending. NULL: no memory. */
const char *file_stem(struct cli *cli, const char *path);
pawl_status define_file(struct cli *cli, const char *path, const char *name, struct put *out);
pawl_status define_text(struct cli *cli, str text, const char *path, const char *name,
                        struct put *out);

/* The version of NAME@VERSION as a member; without a value for NAME. */
struct ask_member version_of(const char *word);
/* definition.get of NAME or NAME@VERSION. NOT_KNOWN, INVALID_REQUEST. */
pawl_status definition_ask(struct cli *cli, const char *word, struct node **out);

/* Are all operands files that can be read? If not, says so: a wrong word. */
bool can_read_all(const struct cli *cli);

/* The same as report(), for a definition that was refused: with the lines that are meant. */
int report_definition(struct cli *cli, const char *path, const struct put *put);

/* ---- findings.c: errors and warnings of a definition ---- */

struct checked {
    const char *path;
    str text; /* the author's; data NULL: no lines are shown */
    struct node *answer;
};

/* Ask definition.check; `against` may be NULL. */
pawl_status findings_ask(struct cli *cli, const char *path, str text, const char *against,
                         struct checked *out);
/* All in `member` ("errors", "warnings"), each with the author's line and a caret. */
void findings_put(const struct term *term, const struct checked *checked, const char *member);
/* Which section of pawl-definition(5) describes a key; made by tools/gen-definitions. */
struct key_section {
    const char *key, *title, *anchor;
};
extern const struct key_section key_sections[]; /* a key that is NULL ends them */
/* Prints where to read about the errors: the section of the first key that they name. */
void findings_put_section(const struct term *term, const struct checked *checked);
/* What is wrong with a text that was refused: where, and what else; on stderr. */
void findings_explain(struct cli *cli, const char *path, str text);

/* The last error, which names a place in a declaration as it was sent: with the file and the place
 * in it. */
int report_declaration(struct cli *cli, const char *path, str text);

/* Put the examples and, in an empty store, begin a few instances of them. */
pawl_status examples_put(struct cli *cli);
pawl_status mcp_fixtures_put(struct cli *cli); /* definitions that the conformance suite calls */

/* ---- Verbs with a function of their own ---- */

int verb_init(struct cli *cli);
int verb_define(struct cli *cli);
int verb_check(struct cli *cli);
int verb_schedule(struct cli *cli);
int verb_start(struct cli *cli);
int verb_declaration(struct cli *cli);
int verb_cancel(struct cli *cli);
int verb_archive(struct cli *cli);
int verb_backfill(struct cli *cli);
int verb_erase(struct cli *cli);
int verb_show(struct cli *cli);
int verb_graph(struct cli *cli);
int verb_watch(struct cli *cli);
int verb_doctor(struct cli *cli);
int doctor_rebuild(struct cli *cli); /* doctor --rebuild */
int doctor_accept_head(struct cli *cli);
int doctor_accept_clock(struct cli *cli);
int verb_run(struct cli *cli);
int verb_resume(struct cli *cli);
int verb_verify(struct cli *cli);
int verb_sql(struct cli *cli);
int verb_mcp(struct cli *cli);
int verb_tools(struct cli *cli);
int verb_validate(struct cli *cli);
int verb_serve(struct cli *cli);
int verb_token(struct cli *cli);
int verb_stores(struct cli *cli);
int verb_alarm(struct cli *cli);
int verb_demo(struct cli *cli);
int verb_export(struct cli *cli);
int verb_import(struct cli *cli);
int verb_copy(struct cli *cli);
int verb_history(struct cli *cli);
int verb_completion(struct cli *cli);

/* ---- Renderings ---- */

void render_fired(struct cli *cli, const struct node *answer);
/* To stderr: what the input of a started flow lacks. */
void put_start_warnings(const struct node *answer);
void render_amended(struct cli *cli, const struct node *answer);
void render_signalled(struct cli *cli, const struct node *answer);
void render_current(struct cli *cli, const struct node *answer);
void render_variables(struct cli *cli, const struct node *answer);
void render_value(struct cli *cli, const struct node *answer);
void render_status(struct cli *cli, const struct node *answer);
void render_counts(struct cli *cli, const struct node *answer);
void render_list(struct cli *cli, const struct node *answer);
void render_history(struct cli *cli, const struct node *answer);

/* One page of entries; `pages` is zero before the first. */
struct entry_pages {
    uint64_t count; /* that were printed */
    bool has_more;  /* there are further pages */
    struct table_pages table;
};
void render_entries(struct cli *cli, const struct node *entries, struct entry_pages *pages);

/* The command for the next page: what was typed, with another --after. */
void put_next_page(struct cli *cli, str after);

void render_why(struct cli *cli, const struct node *answer);
void render_workers(struct cli *cli, const struct node *answer);
void render_nodes(struct cli *cli, const struct node *answer);
void render_gates(struct cli *cli, const struct node *answer);
void render_held(struct cli *cli, const struct node *answer);
void render_holds(struct cli *cli, const struct node *answer);
void render_retention(struct cli *cli, const struct node *answer);

#endif
