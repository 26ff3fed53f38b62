/* walk.h - every sequence of calls on one chart, through pawl.h, on the memory store. */
#ifndef PAWL_TESTS_SCOPE_WALK_H
#define PAWL_TESTS_SCOPE_WALK_H

#include "judge.h"

struct walked {
    uint64_t charts, sequences, calls;
};

/* All sequences of `depth` calls (shorter ones are their beginnings), all ten invariants after
 * each call. Each sequence has an instance of its own, and all of them live at once. False
 * where something is wrong, with what, and in which sequence, in `words`. */
bool walk_chart(const struct chart *chart, int depth, struct walked *count, char *words,
                size_t size);

/* Every `step`th chart from the `first`th on that has at most `places`, up to `most` of them;
 * where the order of writing matters, both orders. */
bool walk_charts(unsigned first, unsigned most, unsigned step, int places, int depth,
                 struct walked *count, char *words, size_t size);

#endif
