/* work_queue.c - threads for what has to be waited for: commits of other operations than fire,
 * lists, verification. A request is queued, run by a free worker, and goes back to its connection.
 * One that waits for something to happen, as a claim does, is parked meanwhile, and holds no
 * thread. */
#include "api/world.h"
#include "surface/http/http_int.h"
#include <errno.h>

/* ---- The queue, and what is parked ---- */

static int64_t tick_ms(const struct work_queue *work)
{
    return world_tick_us(work->p) / 1000;
}

/* Thousands of streams may be woken at once: they have a list of their own, so that no request
 * waits for all of them, or is refused for them. */
static void put_last(struct work_queue *work, struct web_request *request)
{
    struct work_list *list = request->is_reading_on ? &work->pieces : &work->requests;

    ASSERT_HOLDS(&work->lock);
    request->next = NULL;
    *(list->first ? &list->last->next : &list->first) = request;
    list->last = request;
    work->count += list == &work->requests;
    pthread_cond_signal(&work->more);
}

#define PIECES_TURN 4u /* where both wait, each fourth turn is a piece's */

/* NULL: nothing waits. */
static struct web_request *take_first(struct work_queue *work)
{
    bool is_piece =
        work->pieces.first && (!work->requests.first || ++work->turns % PIECES_TURN == 0);
    struct work_list *list = is_piece ? &work->pieces : &work->requests;
    struct web_request *request = list->first;

    ASSERT_HOLDS(&work->lock);
    if (request)
        list->first = request->next;
    work->count -= request && !is_piece;
    return request;
}

static void unpark(struct work_queue *work, struct web_request *request)
{
    struct web_request **link = &work->parked;

    ASSERT_HOLDS(&work->lock);
    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    request->is_parked = false;
}

static bool waits_for_time(const struct work_queue *work)
{
    return work->parked && work->parked->parked_until_ms != UNTIL_WOKEN;
}

static void unpark_late(struct work_queue *work)
{
    ASSERT_HOLDS(&work->lock);
    while (waits_for_time(work) &&
           (work->is_closing || work->parked->parked_until_ms <= tick_ms(work))) {
        struct web_request *request = work->parked;

        unpark(work, request);
        put_last(work, request);
    }
}

/* Does no thread wait for the time of the first that gives up? One that was parked earlier may have
 * been woken since: then a thread waits for less than that. */
static bool is_unwatched(const struct work_queue *work)
{
    return waits_for_time(work) && work->parked->parked_until_ms < work->watched_ms;
}

static void watch_parked(struct work_queue *work)
{
    int64_t until_ms = work->parked->parked_until_ms;
    struct timespec at = { .tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000 };

    work->watched_ms = until_ms;
    guard_wait_until(&work->lock, &work->more, &at);
    if (work->watched_ms == until_ms) /* else another one watches */
        work->watched_ms = UNTIL_WOKEN;
}

/* Until something is queued, or a parked one has waited long enough. */
static void wait_for_more(struct work_queue *work)
{
    if (is_unwatched(work))
        watch_parked(work);
    else
        guard_wait(&work->lock, &work->more);
    unpark_late(work);
}

/* ---- Threads ---- */

static struct web_request *next_request(struct work_queue *work)
{
    struct web_request *request;

    guard_lock(&work->lock);
    while (!work->requests.first && !work->pieces.first && !work->is_stopping)
        wait_for_more(work);
    request = take_first(work);
    if (is_unwatched(work)) /* this one has work: another one watches over those */
        pthread_cond_signal(&work->more);
    guard_unlock(&work->lock);
    return request;
}

static void *work_thread(void *context)
{
    struct work_queue *work = context;
    struct web_request *request;

    while ((request = next_request(work)) != NULL)
        request_work(request);
    return NULL;
}

void work_init(struct work_queue *work, pawl *p)
{
    pthread_condattr_t monotonic;

    work->p = p;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    work->watched_ms = UNTIL_WOKEN;
    guard_init(&work->lock);
    pthread_cond_init(&work->more, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool work_start(struct work_queue *work)
{
    while (work->thread_count < HTTP_WORKERS) {
        errno = pthread_create(&work->threads[work->thread_count], NULL, work_thread, work);
        if (errno != 0)
            return false;
        work->thread_count++;
    }
    return true;
}

void work_stop(struct work_queue *work)
{
    guard_lock(&work->lock);
    work->is_stopping = true;
    pthread_cond_broadcast(&work->more);
    guard_unlock(&work->lock);
    for (uint32_t i = 0; i < work->thread_count; i++)
        pthread_join(work->threads[i], NULL);
    pthread_cond_destroy(&work->more);
    guard_fini(&work->lock);
}

bool work_has_room(struct work_queue *work)
{
    bool has_room;

    guard_lock(&work->lock);
    has_room = work->count < WORK_MAX;
    guard_unlock(&work->lock);
    return has_room;
}

void work_add(struct work_queue *work, struct web_request *request)
{
    guard_lock(&work->lock);
    put_last(work, request);
    guard_unlock(&work->lock);
}

bool work_add_lazily(struct work_queue *work, struct web_request *request)
{
    bool has_threads;

    guard_lock(&work->lock);
    has_threads = work->thread_count > 0 || work_start(work) || work->thread_count > 0;
    if (has_threads)
        put_last(work, request);
    guard_unlock(&work->lock);
    return has_threads;
}

/* ---- Parked ---- */

/* Those that give up first come first; most wait equally long, and go to the end. */
static void park(struct work_queue *work, struct web_request *request)
{
    struct web_request **link = &work->parked;

    while (*link && (*link)->parked_until_ms <= request->parked_until_ms)
        link = &(*link)->next;
    request->next = *link;
    request->is_parked = true;
    *link = request;
    if (is_unwatched(work))
        pthread_cond_signal(&work->more);
}

/* It was woken, and is in no list: a worker goes on with what may take long; anything else goes on
 * where its connection is read. True: that is to be told, without the lock. */
static bool goes_back(struct work_queue *work, struct web_request *request)
{
    bool is_slow = request->running.wait->is_slow;

    ASSERT_HOLDS(&work->lock);
    if (is_slow)
        put_last(work, request);
    return !is_slow;
}

void work_park(struct work_queue *work, struct web_request *request, int64_t for_ms)
{
    bool is_back = false;

    guard_lock(&work->lock);
    request->parked_until_ms = for_ms > 0 ? tick_ms(work) + for_ms : UNTIL_WOKEN;
    if (request->is_woken) {
        request->is_woken = false;
        is_back = goes_back(work, request);
    } else
        park(work, request);
    unpark_late(work); /* the server may be about to stop */
    guard_unlock(&work->lock);
    if (is_back)
        request_come_back(request, STAGE_BACK);
}

void work_wake(struct work_queue *work, struct web_request *request)
{
    bool is_back = false;

    guard_lock(&work->lock);
    if (request->is_parked) {
        unpark(work, request);
        is_back = goes_back(work, request);
    } else
        request->is_woken = true; /* it is being worked on, or about to be parked */
    guard_unlock(&work->lock);
    if (is_back)
        request_come_back(request, STAGE_BACK);
}

void work_close(struct work_queue *work)
{
    guard_lock(&work->lock);
    work->is_closing = true;
    unpark_late(work);
    guard_unlock(&work->lock);
}
