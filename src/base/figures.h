/* figures.h - what is counted while it runs, and its text for Prometheus. Counting is safe from any
 * thread and costs an atomic addition or two. */
#ifndef PAWL_BASE_FIGURES_H
#define PAWL_BASE_FIGURES_H

#include "base/buf.h"
#include <stdatomic.h>

/* Upper bounds in microseconds, and the same in seconds. */
#define HISTOGRAM_MAP(X)                                                                           \
    X(100, "0.0001")                                                                               \
    X(250, "0.00025")                                                                              \
    X(500, "0.0005")                                                                               \
    X(1000, "0.001")                                                                               \
    X(2500, "0.0025")                                                                              \
    X(5000, "0.005")                                                                               \
    X(10000, "0.01")                                                                               \
    X(25000, "0.025")                                                                              \
    X(50000, "0.05")                                                                               \
    X(100000, "0.1")                                                                               \
    X(250000, "0.25")                                                                              \
    X(1000000, "1")                                                                                \
    X(10000000, "10")

enum {
#define X(us, text) HISTOGRAM_##us,
    HISTOGRAM_MAP(X)
#undef X
        HISTOGRAM_BOUNDS
};

struct histogram {
    _Atomic uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* the last: above every bound */
    _Atomic uint64_t sum_us;
};

void histogram_add(struct histogram *histogram, int64_t us);
void histogram_join(struct histogram *histogram, const struct histogram *other);

/* ---- Text ---- */

/* "# HELP" and "# TYPE"; once for each name, before its values. */
void figure_head(struct buf *out, const char *name, const char *type, const char *help);

/* One value; label NULL: none. Values of labels are words of our own: nothing is escaped. */
void figure(struct buf *out, const char *name, const char *label, const char *value,
            uint64_t number);
/* The only value of its name, with its head. */
void figure_alone(struct buf *out, const char *name, const char *type, const char *help,
                  uint64_t number);
void figure_histogram(struct buf *out, const char *name, const char *label, const char *value,
                      const struct histogram *histogram);

#endif
