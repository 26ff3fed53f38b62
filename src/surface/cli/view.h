/* view.h - private to the command line: pieces that show and run draw with. */
#ifndef PAWL_SURFACE_CLI_VIEW_H
#define PAWL_SURFACE_CLI_VIEW_H

#include "surface/cli/cli.h"

struct showing {
    struct node *view;             /* the answer of instance.view; parts of it: */
    struct node *instance, *graph; /* graph NULL: not of a flow */
    int64_t entries_max;           /* of the newest */
    uint32_t lines_max;            /* of steps; 0: the usual */
    const char *spinner; /* of a frame: drawn before a running step; NULL: no frame */
};

/* instance.view: its newest entries, at most so many, and neither steps nor children. */
pawl_status view_read(struct cli *cli, const char *id, int64_t entries, struct node **out);

/* One instance in about so many rows; *view as it was read. For views that are drawn again
 * and again; this is frame number `frame`, which turns the spinner. */
pawl_status view_draw(struct cli *cli, const char *id, int rows, uint32_t frame,
                      struct node **view);
const char *spinner_at(uint32_t frame);

/* How many attempts were made that are not in the view: a long instance is read from its end. */
uint64_t earlier_attempts(const struct showing *showing);

/* The rows of instance.list as a table. */
void put_list(struct cli *cli, const struct node *answer);

/* The steps of a flow as its definition has them: what came of each, attempts, how long. */
void put_steps(struct cli *cli, const struct showing *showing);

/* Bars: a machine's states, a flow's attempts, from beginning to end. */
void put_timeline(struct cli *cli, const struct showing *showing);

str entry_note(struct cli *cli, const struct node *entry);
enum style action_style(str action);

/* When it was fired, and when it was recorded, without the date if both have the same. */
void print_times(const struct node *entry, char fired[MOMENT_SIZE], char recorded[MOMENT_SIZE]);

/* The heading of a path, and one entry of it; `before`: when the previous entry happened, or "". */
void put_path_head(struct cli *cli);
void put_entry(struct cli *cli, const struct node *entry, str before);

/* A state on the path, with its mark. */
void put_state(struct cli *cli, enum style style, const char *mark, str state);

/* The legal next actions with what they want, and the command that fires the first. */
void put_actions(struct cli *cli, const struct node *instance);

/* One line: name, id and status of an instance. */
void put_title(struct cli *cli, const struct node *instance);
/* The end of a line: its state, and its status if that is another word. */
void put_standing(struct cli *cli, const struct node *instance);

/* Of a gate that waits: for whom, and since when. Nothing for other waits. */
void put_gate(struct cli *cli, const struct node *waiting);

/* What it ended with, if it has ended. */
void put_outcome(struct cli *cli, const struct node *instance);

/* show --evidence: the exit status. evidence_page.c */
int show_evidence(struct cli *cli);

bool has_ended(const struct node *instance);
int exit_of_end(const struct node *instance); /* DONE if it succeeded, else REJECTED */

/* Of instance.why's items: does a step wait for a worker that has its tool? And: say which tool. */
bool lacks_worker(const struct node *item);
void put_tool(struct cli *cli, const struct node *item);

/* Why what an item waits for has not come: sentences, a line or more each. */
void put_causes(struct cli *cli, const char *id, const struct node *item);
/* Of an instance that has failed or was cancelled: the command that runs it again. */
void put_redrive(struct cli *cli, const char *id, const struct node *instance);

#endif
