/* scope_walk.c - a part of the exhaustive walk, for run_scope.py.
 *
 *   scope_walk            how many charts there are
 *   scope_walk FIRST MOST walk so many of them, with every sequence of four calls */
#include "walk.h"
#include <stdio.h>
#include <stdlib.h>

static int tell_how_many(void)
{
    struct chart_walk walk = { 0 };
    struct chart chart;

    while (chart_next(&walk, &chart))
        continue;
    printf("%u charts of %u\n", walk.found, walk.raw);
    return 0;
}

int main(int count, char **words)
{
    struct walked walked = { 0 };
    char broken[3000];

    if (count != 3)
        return tell_how_many();
    if (!walk_charts((unsigned)strtoul(words[1], NULL, 10), (unsigned)strtoul(words[2], NULL, 10),
                     1, PLACES, DEPTH, &walked, broken, sizeof broken)) {
        printf("broken: %s\n", broken);
        return 1;
    }
    printf("%llu charts, %llu sequences, %llu calls\n", (unsigned long long)walked.charts,
           (unsigned long long)walked.sequences, (unsigned long long)walked.calls);
    return 0;
}
