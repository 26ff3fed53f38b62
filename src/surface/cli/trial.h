/* trial.h - private to the command line: `run --test`. The clock is virtual, and what would come
 * from outside is given in advance. */
#ifndef PAWL_SURFACE_CLI_TRIAL_H
#define PAWL_SURFACE_CLI_TRIAL_H

#include "surface/cli/cli.h"

enum script_kind { SCRIPT_SIGNAL, SCRIPT_FIRE, SCRIPT_COMPLETE };

struct scripted { /* a line of the script: sent once, to the first that waits for it */
    const struct given *given;
    enum script_kind kind;
    str name, json;  /* json.data NULL: without */
    bool is_failure; /* json is an error */
    bool is_sent;
    int64_t at_ms; /* not before so much of its time has passed */
};

struct decided;

struct trial {
    struct cli *cli;
    struct scope scope; /* of `gates` */
    struct scripted script[CLI_OPTIONS_MAX];
    uint32_t script_count;
    struct decided *gates;
    struct borrowed *borrowed; /* definitions of the store that it is not in */
    bool has_meant;            /* that which is to be run among them */
    bool is_settled;           /* nothing is under way any more */
    int64_t span_ms;           /* so much of its time has passed */
};

/* May its clock be moved? CONFLICT: it has a past by the real one. */
pawl_status trial_store(struct cli *cli);

/* Reads the options; INVALID_REQUEST, with the error in cli->scope. trial_fini() in any case. */
pawl_status trial_init(struct trial *trial, struct cli *cli);
void trial_fini(struct trial *trial);

#define TRIAL_STUCK (-1)

/* Send what an instance waits for and the options say, or else move the clock to what falls due
 * next. *wait_ms: how long until the next call makes sense, or TRIAL_STUCK: there is nothing to
 * send, and nothing falls due. */
pawl_status trial_go_on(struct trial *trial, const char *id, int64_t *wait_ms);

/* ---- trial_script.c ---- */

bool option_is_for_trials(const char *option);
bool option_is_about_gates(const char *option);
pawl_status script_read(struct trial *trial); /* INVALID_REQUEST in cli->scope */

/* The kind of wait (instance.why) that takes it. */
const char *script_awaited(const struct scripted *line);

/* Until the time of the first that has one; -1: none has. */
int64_t script_next(const struct trial *trial);

/* Print on stderr what nothing waited for: it may be a typing error. */
void script_report(const struct trial *trial);

/* ---- borrow.c ---- */

struct borrowed;

/* What a store in a file defines, nothing if there is no such store; `meant` (NAME or NAME@VERSION)
 * is put last, *has_meant: if it was found. STORAGE_FAILURE, ... */
pawl_status borrow_read(struct cli *cli, const char *store, const char *meant, bool *has_meant,
                        struct borrowed **out);
/* Put it into the store that is open. */
pawl_status borrow_put(struct cli *cli, const struct borrowed *list);

/* ---- stuck.c ---- */

/* Say on stderr what it waits for, its children too, and the words that would help. */
pawl_status stuck_report(struct cli *cli, const char *id);

/* The last attempt of a step that has this status (NULL: any); *out NULL: it has none. */
pawl_status step_find(struct cli *cli, const char *id, str name, const char *status,
                      const struct node **out);

/* ---- stubs.c ---- */

/* JSON, @FILE or fail:REASON. INVALID_REQUEST. */
pawl_status answer_read(struct cli *cli, const struct cli_option *option, str value, str *json,
                        bool *is_failure);

#endif
