/* deadline.h - "when this state has been held that long, this action is fired".
 *
 * What an entry does to the timers follows from the definition alone, so that the engine, verify
 * and any other reader come to the same effects: leaving a state disarms its deadlines, entering
 * one arms its own, and a self-loop does both. An entry into a terminal state lists nothing: it
 * ends every timer by the rule of model/effect.h. A creation has no body; its timers are those of
 * the initial state, counted from the time of its record. */
#ifndef PAWL_MODEL_DEADLINE_H
#define PAWL_MODEL_DEADLINE_H

#include "model/definition.h"
#include "model/effect.h"

#define DEADLINE_NO_STATE UINT32_MAX

/* The effects of coming from `from` (DEADLINE_NO_STATE: created) into `to` at `at_ms`, added to
 * `out` in the order of the deadlines. */
pawl_status deadline_effects(struct scope *scope, const struct deadline *deadlines, uint32_t count,
                             uint32_t from, uint32_t to, bool to_is_terminal, int64_t at_ms,
                             struct effect_list *out);

/* The deadline of `state` whose action is `name`, or NULL. */
const struct deadline *deadline_find(const struct definition *definition, uint32_t state, str name);

#endif
