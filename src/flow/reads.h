/* reads.h - which members of the results of its steps a plan reads. */
#ifndef PAWL_FLOW_READS_H
#define PAWL_FLOW_READS_H

#include "flow/flow_int.h"

struct plan_read {
    struct plan_read *next;
    str path; /* dotted; data NULL: all of the result */
};

struct plan_reads {
    struct scope *scope;
    const struct plan *plan;
    struct plan_read **of; /* by step */
};

pawl_status reads_find(struct scope *scope, const struct plan *plan, struct plan_reads *out);

/* The result of a step with what is read of it: templates find the same in it. */
void reads_print(const struct plan_reads *reads, uint32_t step, str result, struct scope *scratch,
                 struct buf *out);

#endif
