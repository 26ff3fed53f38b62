/* base_figures.c - what is counted lies where its bound says. */
#include "base/figures.h"
#include "lib/test.h"

TEST(figures, a_time_counts_in_every_bucket_whose_bound_it_does_not_pass)
{
    struct histogram times = { 0 };
    struct buf out;

    buf_init(&out, &heap_libc, 0);
    histogram_add(&times, 0);
    histogram_add(&times, 100);
    histogram_add(&times, 101);
    histogram_add(&times, 2500);
    histogram_add(&times, 10000001);
    figure_histogram(&out, "x_seconds", "of", "a", &times);
    EXPECT_HAS(buf_text(&out), "x_seconds_bucket{of=\"a\",le=\"0.0001\"} 2\n");
    EXPECT_HAS(buf_text(&out), "x_seconds_bucket{of=\"a\",le=\"0.00025\"} 3\n");
    EXPECT_HAS(buf_text(&out), "x_seconds_bucket{of=\"a\",le=\"0.001\"} 3\n");
    EXPECT_HAS(buf_text(&out), "x_seconds_bucket{of=\"a\",le=\"0.0025\"} 4\n");
    EXPECT_HAS(buf_text(&out), "x_seconds_bucket{of=\"a\",le=\"10\"} 4\n");
    EXPECT_HAS(buf_text(&out), "x_seconds_bucket{of=\"a\",le=\"+Inf\"} 5\n");
    EXPECT_HAS(buf_text(&out), "x_seconds_sum{of=\"a\"} 10.002702\n");
    EXPECT_HAS(buf_text(&out), "x_seconds_count{of=\"a\"} 5\n");
    buf_fini(&out);
}

TEST(figures, a_value_without_a_label_stands_alone)
{
    struct buf out;

    buf_init(&out, &heap_libc, 0);
    figure_head(&out, "x", "gauge", "What it is.");
    figure(&out, "x", NULL, NULL, 7);
    figure(&out, "y", "k", "v", 8);
    EXPECT_TEXT(buf_text(&out), "# HELP x What it is.\n# TYPE x gauge\nx 7\ny{k=\"v\"} 8\n");
    buf_fini(&out);
}
