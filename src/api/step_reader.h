/* step_reader.h - the attempts of one instance, in creation order, one at a time.
 *
 * What became of an attempt is read ahead, for a window of them, without values; what it was given
 * is worked out from a memory that is folded along, or far from its beginning from the entries that
 * it takes. So a reader holds a memory and one attempt, however long the history is, and what is
 * before the first attempt that it reads costs next to nothing. */
#ifndef PAWL_API_STEP_READER_H
#define PAWL_API_STEP_READER_H

#include "api/ops_int.h"
#include "flow/flow.h"

struct step_reader;

struct step_view { /* lives until the next call */
    const struct flow_attempt *attempt;
    str name, tool, args, result, error; /* data NULL: none */
    str progress;                        /* of one that runs, what its worker said last; JSON */
    int64_t progress_ms;
    const struct waiting *gate;          /* of a gate that waits; else NULL */
};

struct step_filter {
    unsigned statuses; /* one bit for each, 1u << STEP_READY; 0: any. Others are not read further */
    uint32_t count;    /* so many are wanted at first, and no more are read ahead; 0: not known */
    bool without_args; /* a flow need not be folded then, unless it was amended */
};

/* Attempts behind ordinal `after`. NOT_KNOWN. */
pawl_status step_reader_open(struct engine *engine, struct scope *scope, str id, uint32_t after,
                             const struct step_filter *filter, struct step_reader **out);
/* Goes on at this ordinal, which is not before the one that was read last. */
pawl_status step_reader_seek(struct step_reader *reader, struct scope *scope, uint32_t ordinal);
pawl_status step_reader_next(struct step_reader *reader, struct scope *scope,
                             struct step_view *out, bool *is_found);
void print_step(str id, const struct step_view *step, struct buf *out); /* as instance.steps */
void step_reader_close(struct step_reader *reader); /* NULL is allowed */

#endif
