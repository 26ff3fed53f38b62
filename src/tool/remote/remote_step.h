/* remote_step.h - what the tools of the flow `pawl.mcp` share (remote_steps.c, remote_task.c), and
 * what becomes of a server's answer (outcome.c). */
#ifndef PAWL_TOOL_REMOTE_STEP_H
#define PAWL_TOOL_REMOTE_STEP_H

#include "tool/remote/remote_int.h"

struct remote_step {
    struct call *call;
    struct remote_talk talk;
    str server, tool;
    const struct node *at;        /* NULL: none */
    const struct node *described; /* the tool, as its server lists it; NULL: not listed */
    bool is_safe;                 /* it may be repeated */
    str link;                     /* the program that knows the task */
};

/* outcome.c: the call fails. */
void step_fails_as(struct remote_step *step, const char *kind, str message,
                   const struct node *result, bool is_final);
/* ... because a request has no result. `is_read`: it changes nothing, so it may be repeated. */
void step_fails_by_talk(struct remote_step *step, bool is_read);

/* A result: {"state":STATE, what is printed between the two}. */
void step_print_begin(struct remote_step *step, const char *state, struct buf *out);
void step_put_task(struct remote_step *step, str task, struct buf *out);
void step_print_end(struct remote_step *step, struct buf *out);

/* What a server answers becomes the result. */
void step_take_done(struct remote_step *step, const struct node *result);
void step_take_working(struct remote_step *step, const struct node *task, str id);
void step_take_task(struct remote_step *step, const struct node *task); /* of either era */
void step_take_result(struct remote_step *step, const struct node *result);

/* The first question that has no response yet; NULL: none. */
const struct node *step_open_question(const struct node *requests, const struct node *responses,
                                      const struct node *at);
/* {"state":"input"}: what was asked, the answers so far, and the question that is next. */
void step_put_input(struct remote_step *step, const struct node *requests, str responses,
                    const struct node *next, str state, str task);

/* remote_steps.c */
bool step_read(struct remote_step *step, struct call *call);
bool step_begin_talk(struct remote_step *step);
/* Calls the tool; `at`: again, with responses to what its server asked. */
void step_call_tool(struct remote_step *step, const struct node *at);
/* What became of a call on a connection that is held. */
void step_take_held(struct remote_step *step, bool is_done, uint64_t number,
                    const struct held_result *held);
bool given_is_true(const struct node *object, const char *key);

#endif
