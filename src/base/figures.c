/* figures.c - counting, and the text of what was counted. */
#include "base/figures.h"
#include <stdio.h>

static const int64_t bounds_us[] = {
#define X(us, text) us,
    HISTOGRAM_MAP(X)
#undef X
};

static const char *const bound_texts[] = {
#define X(us, text) text,
    HISTOGRAM_MAP(X)
#undef X
};

void histogram_add(struct histogram *histogram, int64_t us)
{
    uint32_t i = 0;

    while (i < HISTOGRAM_BOUNDS && us > bounds_us[i])
        i++;
    atomic_fetch_add_explicit(&histogram->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_us, us > 0 ? (uint64_t)us : 0, memory_order_relaxed);
}

void histogram_join(struct histogram *histogram, const struct histogram *other)
{
    for (uint32_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        atomic_fetch_add_explicit(&histogram->counts[i], other->counts[i], memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_us, other->sum_us, memory_order_relaxed);
}

void figure_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void figure(struct buf *out, const char *name, const char *label, const char *value,
            uint64_t number)
{
    if (label)
        buf_fmt(out, "%s{%s=\"%s\"} %llu\n", name, label, value, (unsigned long long)number);
    else
        buf_fmt(out, "%s %llu\n", name, (unsigned long long)number);
}

static void bucket(struct buf *out, const char *name, const char *label, const char *value,
                   const char *bound, uint64_t count)
{
    buf_fmt(out, "%s_bucket{", name);
    if (label)
        buf_fmt(out, "%s=\"%s\",", label, value);
    buf_fmt(out, "le=\"%s\"} %llu\n", bound, (unsigned long long)count);
}

void figure_alone(struct buf *out, const char *name, const char *type, const char *help,
                  uint64_t number)
{
    figure_head(out, name, type, help);
    figure(out, name, NULL, NULL, number);
}

void figure_histogram(struct buf *out, const char *name, const char *label, const char *value,
                      const struct histogram *histogram)
{
    char tail[160] = "";
    uint64_t count = 0, sum_us = histogram->sum_us;

    for (uint32_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
        count += histogram->counts[i];
        bucket(out, name, label, value, bound_texts[i], count);
    }
    count += histogram->counts[HISTOGRAM_BOUNDS];
    bucket(out, name, label, value, "+Inf", count);
    if (label)
        snprintf(tail, sizeof tail, "{%s=\"%s\"}", label, value);
    buf_fmt(out, "%s_sum%s %llu.%06llu\n%s_count%s %llu\n", name, tail,
            (unsigned long long)(sum_us / 1000000), (unsigned long long)(sum_us % 1000000), name,
            tail, (unsigned long long)count);
}
