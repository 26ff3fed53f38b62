/* stop.h - a flow is cancelled, and cleans up first: its `finally` runs, and compensations. */
#ifndef PAWL_FLOW_STOP_H
#define PAWL_FLOW_STOP_H

#include "flow/flow_int.h"

/* ---- Deciding ---- */

/* Is a `finally` open, so that a cancel does not end the flow at once? */
bool stop_cleans(const struct flow_memory *memory);
void decide_clean_up(struct turn *turn);
/* What is open at `node` of a tree ends, on the last draft; with `awaits` not what is running and
 * has a compensation. */
enum settled turn_stop(struct turn *turn, struct tree_walk *walk, uint32_t node, bool awaits);
/* All of it is cleaned up: the compensations begin, or the flow is cancelled. */
void stop_end(struct turn *turn);
/* Nothing follows this step, and it is not tried again: it lies in what is being stopped. */
bool stop_holds(struct turn *turn, const struct plan_step *step);

/* ---- Folding ---- */

/* The entry that begins it. */
pawl_status memory_clean_up(struct flow_memory *memory, const struct entry_view *entry,
                            uint32_t compiler, struct scope *scope, struct arena *arena);

#endif
