/* chart.h - every machine of up to three states and two actions, and what it must do.
 *
 * Written from the requirements (D18-D23, D26, A17-A23) in words and tables of its own: nothing
 * here comes from src/machine or src/model, so that a mistake there is not made here again. */
#ifndef PAWL_TESTS_SCOPE_CHART_H
#define PAWL_TESTS_SCOPE_CHART_H

#include <stdbool.h>
#include <stddef.h>

enum { PLACES = 3, HANDS = 2, DEPTH = 4, NOWHERE = -1 };

/* How a place ends what stands there. */
enum ending { GOES_ON, ENDS, ENDS_BY_CANCEL };

/* The first place is where it begins. */
struct chart {
    int places;
    signed char ending[PLACES];
    signed char leads_to[PLACES][HANDS]; /* NOWHERE: no such transition */
    signed char gated[PLACES][HANDS];
    unsigned number; /* which of all; turns what must not matter: order of states, kinds */
    bool backwards;  /* its transitions are written last to first */
};

/* Walks over all charts: no two are the same up to the names of states and actions. */
struct chart_walk {
    unsigned kind, code; /* where it stands among the raw ones */
    unsigned raw, found;
};
bool chart_next(struct chart_walk *walk, struct chart *out);

/* Does the order in which transitions are written change what cancel does? */
bool chart_has_two_ways_to_cancel(const struct chart *chart);

const char *place_name(int place);
const char *hand_name(int hand);
void chart_print(const struct chart *chart, char *out, size_t size); /* a declaration, JSON */

/* What is done to an instance, and what must come of it. */
enum call { FIRE_A, FIRE_A_ASSERTED, FIRE_B, FIRE_B_ASSERTED, FIRE_UNKNOWN, CANCEL, CALLS };

struct trace {
    int place, length;
    struct {
        int from, hand, to;
        bool gated, named, by_cancel;
    } steps[DEPTH];
};

/* The token of what must be answered; `trace` goes on where that is "ok". */
const char *chart_call(const struct chart *chart, struct trace *trace, enum call call);

#endif
