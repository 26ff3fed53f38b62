/* pawl_code_here.h - the few words of pawl_code.h that a warning may point at. Part of that header; nothing here
 * is for users.
 * SPDX-License-Identifier: Apache-2.0
 *
 * gcc does not warn of words that come from a system header, and an installed header is one. The line marker below
 * makes what follows it count as the author's own words, wherever this file is. The pragma is there so that
 * -Wpedantic accepts the marker. Some names in here are sentences: gcc shows them with its message. */
#ifndef PAWL_CODE_HERE_H
#define PAWL_CODE_HERE_H

#if defined(__GNUC__)
#pragma GCC system_header
# 16 "pawl_code_here.h"
#endif

/* How the code comes back to the place where it waits. */
#define PAWL_no_local_lives_across_an_await_ goto

/* PAWL_SELECT(place) { arms } PAWL_AWAIT; : the first of the arms, and only that one. */
#define PAWL_SELECT(label)                                                                         \
    {                                                                                              \
        int PAWL_SELECT_has_no_PAWL_AWAIT_;                                            \
        PAWL_SELECT_AT_(label)
#define PAWL_AWAIT                                                                                 \
    (void)PAWL_SELECT_has_no_PAWL_AWAIT_;                                                          \
    if (pawl_seq_over(turn))                                                                       \
        return;                                                                                    \
    }

#endif
