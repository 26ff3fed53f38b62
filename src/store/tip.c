/* tip.c - how a commit changes the tip, for every backend and for callers that keep a copy of
 * it. */
#include "store/store.h"

void tip_note_kept(struct store_tip *tip, const struct kept_change *change)
{
    if (change->row.what != CONTROL_CLOCK || !change->is_put)
        return;
    if (str_is(change->row.id, CLOCK_TEST)) {
        tip->test_now_ms = change->row.due_at_ms;
        tip->test_is_old = false;
    } else {
        tip->clock_offset_ms = change->row.due_at_ms;
        tip->clock_pos = change->row.pos;
    }
}
