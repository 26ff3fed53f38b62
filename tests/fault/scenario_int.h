/* scenario_int.h - what every scenario's pawl needs to know, and what the witness's files share. */
#ifndef PAWL_TESTS_FAULT_SCENARIO_INT_H
#define PAWL_TESTS_FAULT_SCENARIO_INT_H

#include "fault/scenario.h"

#define SIGNALLER "bob" /* does nothing else */

pawl_status scenario_register(pawl *p, pawl_error *error); /* tools and code */

/* scenario_machine.c: machines in all they can do. */
extern const char machine_order_1[], machine_order_2[], machine_inline[];
extern const struct act machine_inline_acts[], machine_version_acts[], machine_batch_acts[];
extern const char machine_claim[];
extern const struct act machine_deadline_acts[], machine_held_acts[];

/* witness.c */
void witness_expect_honest(const struct witness *w, const char *doing, pawl_status status);
uint32_t seen_known(const struct seen *seen); /* entries there must be; some may not be seen yet */

/* witness_act.c */
bool witness_catch_up(struct witness *w); /* look up whether the act that was left open happened */
bool witness_act_once(struct witness *w); /* false: not known whether it happened */
pawl_status witness_do(struct witness *w, const struct act *act);

extern pawl_error witness_error; /* of the last call */

#endif
