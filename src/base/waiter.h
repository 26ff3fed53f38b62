/* waiter.h - a caller that waits without a thread, and how to reach it. */
#ifndef PAWL_BASE_WAITER_H
#define PAWL_BASE_WAITER_H

#include <stdbool.h>

struct waiter {
    void (*wake)(void *context);     /* what it waits for may be there; quick: locks may be held */
    bool (*is_there)(void *context); /* NULL: always. Does the caller still exist? Quick as well */
    void *context;
};

#endif
