/* pawl_code_here.h - the few words of pawl_code.h that a warning may point at. Part of that header;
 * nothing here is for users. SPDX-License-Identifier: Apache-2.0
 *
 * gcc does not warn of words that come from a system header, and an installed header is one. The
 * line marker below makes what follows it count as the author's own words, wherever this file is.
 * The pragma is there so that -Wpedantic accepts the marker. Some names in here are sentences: gcc
 * shows them with its message. */
#ifndef PAWL_CODE_HERE_H
#define PAWL_CODE_HERE_H

#if defined(__GNUC__)
#pragma GCC system_header
# 16 "pawl_code_here.h"
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wuninitialized"
#pragma GCC diagnostic error "-Wmaybe-uninitialized"
#endif

/* Spans of time, in milliseconds. */
#define PAWL_MS(n) ((int64_t)(n))
#define PAWL_SECS(n) ((int64_t)(n) * 1000)
#define PAWL_MINUTES(n) ((int64_t)(n) * 60000)
#define PAWL_HOURS(n) ((int64_t)(n) * 3600000)
#define PAWL_DAYS(n) ((int64_t)(n) * 86400000)
#define PAWL_UNTIL(at_ms) ((int64_t)(at_ms) - PAWL_NOW)

/* What is given to an await, or said in between. */
#define PAWL_SEQ_TIMER_(...) pawl_seq_timer(__VA_ARGS__)
#define PAWL_SEQ_CALL_(...) pawl_seq_call(__VA_ARGS__)
#define PAWL_SEQ_CALL_KEYED_(...) pawl_seq_call_keyed(__VA_ARGS__)
#define PAWL_SEQ_EXTERNAL_(...) pawl_seq_external(__VA_ARGS__)
#define PAWL_SEQ_SPAWN_(...) pawl_seq_spawn(__VA_ARGS__)
#define PAWL_SEQ_SUBSCRIBE_(...) pawl_seq_subscribe(__VA_ARGS__)
#define PAWL_SEQ_UNSUBSCRIBE_(...) pawl_seq_unsubscribe(__VA_ARGS__)
#define PAWL_SEQ_GATHER_CALL_(...)     pawl_seq_gather_call(__VA_ARGS__)
#define PAWL_SEQ_GATHER_EXTERNAL_(...) pawl_seq_gather_external(__VA_ARGS__)
#define PAWL_SEQ_GATHER_CHILD_(...)    pawl_seq_gather_child(__VA_ARGS__)
#define PAWL_TURN_START_(...)          pawl_turn_start(__VA_ARGS__)
#define PAWL_TURN_SEND_(...)           pawl_turn_send(__VA_ARGS__)
#define PAWL_TURN_JSON_(...)           pawl_turn_json(__VA_ARGS__)
#define PAWL_TURN_REDUCE_(...) pawl_turn_reduce(__VA_ARGS__)
#define PAWL_TURN_FAIL_(...)                                                                       \
    pawl_turn_fail(turn, pawl_turn_quote(turn, pawl_turn_text(turn, __VA_ARGS__)))
#define PAWL_DROP_(value) (void)(value)
#define PAWL_ARMED_WITH_(value, none) pawl_seq_is_arming(turn) ? (value) : (none)

/* How the code comes back to the place where it waits. */
#define PAWL_no_local_lives_across_an_await_ goto

/* PAWL_SELECT(place) { arms } PAWL_AWAIT; : the first of the arms, and only that one. */
#define PAWL_SELECT(label)                                                                         \
    {                                                                                              \
        int PAWL_SELECT_has_no_PAWL_AWAIT_;                                            \
        PAWL_SELECT_AT_(label)
#define PAWL_AWAIT                                                                                 \
    (void)PAWL_SELECT_has_no_PAWL_AWAIT_;                                                          \
    (void)pawl_seq_over(turn);                                                                     \
    if (!pawl_woken_)                                                                              \
        return;                                                                                    \
    }

/* PAWL_GATHER(place) { what is begun } PAWL_EACH { one answer } PAWL_GATHERED; : all of them. */
#define PAWL_GATHER(label)                                                                         \
    {                                                                                              \
        int PAWL_GATHER_has_no_PAWL_EACH_;                                                         \
        PAWL_GATHER_AT_(label)                                                                     \
        if (pawl_seq_gathers(turn))
#define PAWL_EACH                                                                                  \
    (void)PAWL_GATHER_has_no_PAWL_EACH_;                                                           \
    int PAWL_EACH_has_no_PAWL_GATHERED_;                                                           \
    if (pawl_seq_gathered(turn))
#define PAWL_GATHERED                                                                              \
    (void)PAWL_EACH_has_no_PAWL_GATHERED_;                                                         \
    if (pawl_seq_gather_over(turn))                                                                \
        return;                                                                                    \
    }

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif
