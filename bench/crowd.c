/* crowd.c - a store full of machines that can be fired for ever. */
#include "bench.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAKERS 192 /* there is no batch of creations: many callers share each commit */

static const char wheel[] = "name: wheel\n"
                            "states: [here, there]\n"
                            "initial_state: here\n"
                            "transitions:\n"
                            "  - {from_state: here, action: turn, to_state: there}\n"
                            "  - {from_state: there, action: turn, to_state: here}\n";

pawl *store_open(const struct bench *bench, const char *name)
{
    char path[PATH_SIZE], url[PATH_SIZE + 8];
    pawl_options options = { .own = true };
    pawl_error error;
    pawl *p;

    path_in(bench, name, path);
    snprintf(url, sizeof url, "sqlite:%s", path);
    check(pawl_open(&p, url, &options, &error), &error, url);
    return p;
}

void define(pawl *p, const char *text)
{
    pawl_error error;

    check(pawl_define(p, text, strlen(text), NULL, &error), &error, "define");
}

struct maker {
    struct crowd *crowd;
    const char *definition;
    size_t *next; /* shared */
};

static void *make_some(void *context)
{
    struct maker *maker = context;
    struct crowd *crowd = maker->crowd;
    pawl_create_args args = { .definition = maker->definition };
    pawl_error error;

    for (;;) {
        size_t i = __atomic_fetch_add(maker->next, 1, __ATOMIC_RELAXED);

        if (i >= crowd->count)
            return NULL;
        check(pawl_create(crowd->p, &args, &crowd->ids[i], &error), &error, "create");
    }
}

void crowd_make(const struct bench *bench, const char *name, size_t count, struct crowd *out)
{
    crowd_make_of(bench, name, wheel, "wheel", count, out);
}

static void fill(pawl *p, const char *text, const char *definition, size_t count, struct crowd *out)
{
    size_t next = 0;
    struct maker maker = { out, definition, &next };
    pthread_t threads[MAKERS];

    *out = (struct crowd){ .count = count, .seed = 7, .fires_room = 1000 };
    out->ids = get_memory(sizeof *out->ids * count);
    out->fires = get_memory(sizeof *out->fires * out->fires_room);
    out->p = p;
    define(p, text);
    for (size_t i = 0; i < MAKERS; i++)
        if (pthread_create(&threads[i], NULL, make_some, &maker) != 0)
            die("no thread");
    for (size_t i = 0; i < MAKERS; i++)
        pthread_join(threads[i], NULL);
}

void crowd_make_of(const struct bench *bench, const char *name, const char *text,
                   const char *definition, size_t count, struct crowd *out)
{
    store_remove(bench, name);
    fill(store_open(bench, name), text, definition, count, out);
}

void crowd_fill(pawl *p, size_t count, struct crowd *out)
{
    fill(p, wheel, "wheel", count, out);
}

void crowd_reopen(const struct bench *bench, const char *name, struct crowd *crowd)
{
    crowd_close(crowd);
    crowd->p = store_open(bench, name);
}

void crowd_close(struct crowd *crowd)
{
    pawl_close(crowd->p);
    crowd->p = NULL;
}

void crowd_free(struct crowd *crowd)
{
    crowd_close(crowd);
    free(crowd->ids);
    free(crowd->fires);
    *crowd = (struct crowd){ 0 };
}

static const char *anyone(struct crowd *crowd)
{
    return crowd->ids[random_next(&crowd->seed) % crowd->count].text;
}

static void fire_one(struct crowd *crowd)
{
    pawl_fire_args args = { .action = "turn", .actor_ref = ACTOR };
    pawl_fired fired;
    pawl_error error;

    check(pawl_fire(crowd->p, anyone(crowd), &args, &fired, &error), &error, "fire");
}

void crowd_fire_these(struct crowd *crowd, size_t size)
{
    pawl_error error;

    check(pawl_fire_batch(crowd->p, crowd->fires, size, &error), &error, "fire_batch");
    for (size_t i = 0; i < size; i++)
        if (crowd->fires[i].status != PAWL_OK)
            die("%s: %s", crowd->fires[i].id, pawl_status_name(crowd->fires[i].status));
}

void crowd_fire(struct crowd *crowd, size_t size)
{
    if (size == 1) {
        fire_one(crowd);
        return;
    }
    for (size_t i = 0; i < size; i++)
        crowd->fires[i] = (pawl_batch_fire){ .id = anyone(crowd),
                                             .args = { .action = "turn",
                                                       .actor_ref = ACTOR,
                                                       .payload = crowd->payload } };
    crowd_fire_these(crowd, size);
}
