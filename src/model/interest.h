/* interest.h - how a broadcast finds the instances that keep its signal although they await it not.
 *
 * They have a row in `pawl_interest`: `~SIGNAL` says that the instance keeps what nothing
 * awaits yet, `~SIGNAL=VALUE` that it has subscribed to this value of the signal. The rows only say
 * who is asked; each instance decides by what it remembers. */
#ifndef PAWL_MODEL_INTEREST_H
#define PAWL_MODEL_INTEREST_H

#include "base/arena.h"

/* Is it the name of such a row? */
static inline bool interest_is(str name)
{
    return name.size > 0 && name.data[0] == '~';
}

/* The row's name; value: JSON, or none. Data NULL: no memory. */
str interest_name(struct arena *arena, str signal, str value);

/* Is `name` what interest_name() gives for this? */
bool interest_fits(str name, str signal, str value);

#endif
