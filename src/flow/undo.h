/* undo.h - sagas: what was done is undone, in reverse order, after a failure or a cancel. */
#ifndef PAWL_FLOW_UNDO_H
#define PAWL_FLOW_UNDO_H

#include "flow/flow_int.h"

/* ---- Deciding ---- */

/* The step has succeeded: can its compensation be called with what is known now? A status that is
 * not trouble is the step's failure. */
pawl_status undo_note(struct turn *turn, const struct attempt *attempt, str result);
/* The flow fails: at once, or when what was done is undone. */
void undo_or_fail(struct turn *turn, str error);
/* What it cleaned up is done, and it is cancelled: what was done is undone. False: nothing is. */
bool undo_after_cancel(struct turn *turn);
/* The flow is cancelled: likewise. False: nothing is to be undone, and nothing was drafted. */
bool undo_or_cancel(const struct flow_memory *memory);
void decide_undo_cancel(struct turn *turn);
/* While it undoes: a step is over, done or failed; its entry is drafted here. */
void undo_step_over(struct turn *turn, enum lifecycle_transition transition,
                    const struct attempt *attempt, bool is_success, enum retry_cause cause,
                    str payload);

/* ---- Folding ---- */

/* What the compensation of a step that is done is called with, from now on. */
pawl_status memory_note_undo(struct flow_memory *memory, const struct attempt *attempt, str result,
                             struct scope *scope, struct arena *arena);
/* While it undoes: a step is done. */
pawl_status memory_undone(struct flow_memory *memory, const struct attempt *attempt, str result,
                          struct scope *scope, struct arena *arena);
/* The entry that begins it. */
pawl_status memory_begin_undo(struct flow_memory *memory, const struct entry_view *entry,
                              struct scope *scope, struct arena *arena);
/* The arguments of the compensation that is under way; data NULL: it is not one. */
str memory_undo_args(const struct flow_memory *memory, uint32_t plan);
void undo_print(const struct flow_memory *memory, uint32_t i, struct buf *out);
bool undo_load(struct flow_memory *memory, const struct node *row, struct arena *arena);
void undoing_print(const struct flow_memory *memory, struct buf *out);
bool undoing_load(struct flow_memory *memory, const struct node *row, struct arena *arena);

#endif
