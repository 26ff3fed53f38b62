/* shell.h - the engine's threads, and callers that wait. Private to src/engine.
 *
 * Rules:
 *  (1) Here alone the engine starts threads, and here alone a thread sleeps until another one has
 *      done something.
 *  (2) A thread of the shell does units of work (engine_work()) of its own kinds, and sleeps when
 *      there is none. It decides nothing.
 *  (3) The core reports what there is to do: shell_changed(), shell_queued(), shell_drained(),
 *      shell_job(). None of these waits. Without threads they wake callers that wait, nothing else.
 *  (4) Everything here is under the engine's lock. */
#ifndef PAWL_ENGINE_SHELL_H
#define PAWL_ENGINE_SHELL_H

#include "base/guard.h"
#include "base/scope.h"

struct engine;
struct request;

/* A thread beyond the workers (tool_threads.c). */
struct runner {
    struct engine *engine;
    pthread_t thread;
    enum { RUNNER_NONE, RUNNER_ALIVE, RUNNER_ENDED /* to be joined */ } state;
};

struct shell {
    pthread_t *threads;
    uint32_t thread_count;     /* 0: callers and the host's loop do it all */
    pthread_cond_t changed;    /* mail done, jobs queued, the drain free */
    bool is_telling, has_news; /* see shell_hold() */

    /* The thread that commits. */
    pthread_cond_t more;     /* a request is queued */
    uint32_t wait_for_drain; /* threads that wait until none drains */
    bool rests;              /* it waits, for as long as it takes */
    bool drain_stopping;     /* the other threads are gone: so does this one */

    /* The thread for what falls due, and calls that move the clock of tests instead of it. */
    pthread_cond_t look;
    int64_t rests_until_ms; /* it waits so long; INT64_MIN: it is awake, or there is none */
    pthread_cond_t advanced;
    uint32_t advances; /* calls that move the clock */
    pthread_t mover;   /* one of their threads: it drains what it queues itself ... */
    bool has_mover;    /* ... until its call ends */

    /* Threads that run tools. */
    pthread_cond_t tools;             /* jobs queued or steps ready */
    uint32_t idle_runners;            /* of these threads, those that wait */
    struct runner *runners, *watcher; /* watcher NULL: none */
    pthread_cond_t late;              /* what the watcher waits on; its waits are short */
};

/* threads.c */
void shell_init(struct engine *engine);
void shell_fini(struct engine *engine);
bool shell_start(struct engine *engine); /* the threads of an owner; false: it cannot */
void shell_stop(struct engine *engine);
bool shell_has_threads(const struct engine *engine);
void shell_again(struct engine *engine); /* it has stopped, and may be started once more */
/* This thread has the drain's role between the two; none of the shell's runs. */
void shell_take_drain(struct engine *engine);
void shell_give_drain(struct engine *engine);

/* news.c: what the core reports. */
void shell_changed(struct engine *engine);    /* a thread may wait for it */
void shell_queued(struct engine *engine);     /* a request, and no thread drains */
void shell_drained(struct engine *engine);    /* the drain is free */
void shell_answered(struct request *request); /* of a caller that waits for it */
void shell_is_suspect(struct engine *engine); /* a commit has to look at the files */
/* A commit may end the turns of a thousand instances: between the two, threads are woken only when
 * shell_tell() says so. */
void shell_hold(struct engine *engine);
void shell_tell(struct engine *engine);
void shell_let_go(struct engine *engine);

/* waits.c */
/* One unit of work by a caller that waits, or else a sleep until another thread has done something.
 * The lock is released meanwhile. */
void shell_wait(struct engine *engine);
void shell_sleep(struct engine *engine);                     /* until something has changed */
void shell_sleep_for(struct engine *engine, int64_t for_ms); /* ... but no longer */
void shell_cond_init(pthread_cond_t *condition);             /* for this: */
void shell_wait_for(struct engine *engine, pthread_cond_t *condition, int64_t for_ms);
/* Queue a request, and wait until it is answered. */
pawl_status shell_submit(struct engine *engine, struct request *request);
void shell_submit_all(struct engine *engine, struct request **requests, size_t count);
/* What the calling thread queues between the two it drains itself, if no other thread drains. */
void shell_lead_begin(struct engine *engine);
void shell_lead_note(const struct engine *engine); /* a request was queued */
void shell_lead_end(struct engine *engine);
bool shell_leads(const struct engine *engine); /* is it for this thread to drain what is queued? */
/* One call at a time moves the clock of tests. */
void shell_begin_advance(struct engine *engine);
void shell_end_advance(struct engine *engine);

/* tool_threads.c */
bool tools_start(struct engine *engine); /* no lock; room for threads beyond the workers */
void tools_stop(struct engine *engine);  /* no lock: joins these */
void tools_fini(struct engine *engine);
void *tools_thread(void *engine);
void shell_job(struct engine *engine, bool is_quick); /* one is queued */

#endif
