/* group.h - groups of a tree that have a limit in time, or attempts of their own. */
#ifndef PAWL_FLOW_GROUP_H
#define PAWL_FLOW_GROUP_H

#include "flow/flow_int.h"

/* Is it the step of such a group? */
bool step_is_group(const struct plan *plan, const struct plan_step *step);

/* Its time was over, and it cleans up. */
bool group_is_stopping(const struct flow_memory *memory, const struct plan_step *step);

/* ---- Deciding ---- */

/* What is in it is settled: its row ends. True: it is tried again. For a walk, on the turn. */
bool group_over(void *context, uint32_t step, bool is_success, const struct kept_text *held);
void group_time_out(struct turn *turn, const struct attempt *attempt);
void group_begin_again(struct turn *turn, const struct attempt *attempt); /* after its backoff */

/* ---- Folding ---- */

/* The same of the entry that is folded. */
bool group_folded(void *context, uint32_t step, bool is_success, const struct kept_text *held);
/* An entry about the step of a group: its time is over, or its next attempt begins. */
pawl_status memory_group(struct flow_memory *memory, const struct entry_view *entry, uint32_t node,
                         struct tree_walk *walk, struct scope *scope);

#endif
