/* judge.h - the ten invariants of D35, held against what an instance shows of itself. */
#ifndef PAWL_TESTS_SCOPE_JUDGE_H
#define PAWL_TESTS_SCOPE_JUDGE_H

#include "chart.h"
#include <stdint.h>

/* What is shown, as plain data: so that a test can forge it and see that the judge has eyes. */
struct shown_entry {
    uint64_t number;
    char id[64], from[16], action[16], to[16], actor[16], reason[64], hash[65];
    bool has_actor, has_reason, guard;
    int64_t fired_at_ms;
};
struct shown {
    bool is_known;
    char declaration[1500], state[16];
    struct shown_entry entries[DEPTH + 1];
    int count;
};

/* NULL, or which invariant is broken, "3: ..."; `before` is what was shown after the call
 * before this one. */
const char *judge(const struct chart *chart, const char *declaration, const struct trace *trace,
                  const struct shown *before, const struct shown *now, int64_t at_ms);

#endif
