/* forward.h - private to forward.c and spread.c: a call on its way to the owners of its shards. */
#ifndef PAWL_API_FORWARD_H
#define PAWL_API_FORWARD_H

#include "api/station.h"

/* By that node. IN_USE: nothing happened; OUTCOME_UNKNOWN; else what the operation says. */
pawl_status forward_there(struct op_call *call, const struct station_where *where, struct buf *out,
                          struct op_answer *answer);
int64_t forward_until_ms(const struct op_call *call);
/* After this status: is it safe to try again? */
bool forward_may_repeat(const struct op_call *call, pawl_status status);
/* A moment, or until something has changed; false: it is late. */
bool forward_pause(struct op_call *call, uint64_t change, int64_t until_ms);

/* spread.c: a part of a call that another node adds up; the shards that are here; the whole
 * call. */
pawl_status spread_begin_part(struct op_call *call);
pawl_status spread_begin_own(struct op_call *call, uint32_t *count);
pawl_status spread_turn(struct op_call *call, struct buf *out, struct op_answer *answer,
                        bool *waits);

/* roaming.c: a claim of steps, whose answer begins with these members (data NULL: with none). */
pawl_status roaming_begin(struct op_call *call, str told, struct buf *out, struct op_answer *answer,
                          bool *waits);
bool roaming_looks(const struct op_call *call); /* it goes on by asking other nodes */

#endif
