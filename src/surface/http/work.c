/* work.c - threads for what has to be waited for: commits of other operations than fire, lists,
 * verification. A request is queued, run by whoever is free, and goes back to its connection. */
#include "surface/http/http_int.h"
#include <errno.h>

static struct request *next_request(struct work *work)
{
    struct request *request;

    pthread_mutex_lock(&work->lock);
    while (!work->first && !work->is_stopping)
        pthread_cond_wait(&work->more, &work->lock);
    request = work->first;
    if (request) {
        work->first = request->next;
        work->count--;
    }
    pthread_mutex_unlock(&work->lock);
    return request;
}

static void *work_thread(void *context)
{
    struct work *work = context;
    struct request *request;

    while ((request = next_request(work)) != NULL)
        request_work(request);
    return NULL;
}

bool work_start(struct work *work)
{
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->more, NULL);
    while (work->thread_count < HTTP_WORKERS) {
        errno = pthread_create(&work->threads[work->thread_count], NULL, work_thread, work);
        if (errno != 0)
            return false;
        work->thread_count++;
    }
    return true;
}

void work_stop(struct work *work)
{
    pthread_mutex_lock(&work->lock);
    work->is_stopping = true;
    pthread_cond_broadcast(&work->more);
    pthread_mutex_unlock(&work->lock);
    for (uint32_t i = 0; i < work->thread_count; i++)
        pthread_join(work->threads[i], NULL);
    pthread_cond_destroy(&work->more);
    pthread_mutex_destroy(&work->lock);
}

bool work_has_room(struct work *work)
{
    bool has_room;

    pthread_mutex_lock(&work->lock);
    has_room = work->count < WORK_MAX;
    pthread_mutex_unlock(&work->lock);
    return has_room;
}

void work_add(struct work *work, struct request *request)
{
    request->next = NULL;
    pthread_mutex_lock(&work->lock);
    *(work->first ? &work->last->next : &work->first) = request;
    work->last = request;
    work->count++;
    pthread_cond_signal(&work->more);
    pthread_mutex_unlock(&work->lock);
}
