/* threads.c - one pawl shared by many threads: each drives machines of its own, all of them
 * press one machine that only one may have at a time. Nothing is lost and nothing is counted
 * twice. Uses pawl.h alone. */
#include <pawl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, OWN = 5, PRESSES = 25 };

static const char lamp[] =
    "name: lamp\nstates: [off, on]\ninitial_state: off\nterminal_states: []\n"
    "transitions:\n"
    "  - {from_state: off, action: press, to_state: on}\n"
    "  - {from_state: on, action: press, to_state: off}\n";

struct worker {
    pthread_t thread;
    pawl *p;
    const char *shared;
    pawl_error err;
    uint64_t pressed;
};

static pawl_status press(struct worker *worker, const char *id, pawl_fired *out)
{
    pawl_status status =
        pawl_fire(worker->p, id, &(pawl_fire_args){ .action = "press", .actor_ref = "hand" }, out,
                  &worker->err);

    worker->pressed += status == PAWL_OK;
    return status;
}

/* A lamp of its own: its numbers must come one by one. */
static pawl_status drive_own(struct worker *worker)
{
    pawl_fired fired = { 0 };
    pawl_id id;
    pawl_status status =
        pawl_create(worker->p, &(pawl_create_args){ .definition = "lamp" }, &id, &worker->err);

    for (uint64_t i = 1; i <= PRESSES && status == PAWL_OK; i++) {
        status = press(worker, id.text, &fired);
        if (status == PAWL_OK &&
            (fired.sequence_number != i || strcmp(fired.new_state, i % 2 ? "on" : "off") != 0)) {
            snprintf(worker->err.message, sizeof worker->err.message,
                     "press %llu came out as %llu, %s", (unsigned long long)i,
                     (unsigned long long)fired.sequence_number, fired.new_state);
            return PAWL_CONFLICT;
        }
    }
    return status;
}

static void *work(void *context)
{
    struct worker *worker = context;
    pawl_status status = PAWL_OK;
    pawl_fired fired;

    for (int i = 0; i < OWN && status == PAWL_OK; i++)
        status = drive_own(worker);
    for (int i = 0; i < PRESSES && status == PAWL_OK; i++)
        status = press(worker, worker->shared, &fired);
    worker->err.status = status;
    return NULL;
}

static pawl_status count_history(pawl *p, const char *id, uint64_t *out, pawl_error *err)
{
    pawl_history *history;
    pawl_entry entry;
    pawl_status status = pawl_history_open(p, id, NULL, &history, err);
    bool in_order = true;

    *out = 0;
    while (status == PAWL_OK && pawl_history_next(history, &entry))
        in_order = entry.sequence_number == ++*out && in_order;
    if (status == PAWL_OK)
        status = pawl_history_close(history, err);
    return status == PAWL_OK && !in_order ? PAWL_CONFLICT : status;
}

static pawl_status verify(pawl *p, pawl_error *err)
{
    char *text;
    pawl_status status = pawl_call(p, "store.verify", "{}", &text, err);

    if (status != PAWL_OK)
        return status;
    puts(strstr(text, "\"valid\":true") ? "valid" : text);
    pawl_free(p, text);
    return PAWL_OK;
}

static pawl_status run(pawl *p, pawl_error *err)
{
    static struct worker workers[THREADS];
    uint64_t pressed = 0, counted;
    pawl_id shared;
    pawl_status status = pawl_define(p, lamp, sizeof lamp - 1, NULL, err);

    if (status == PAWL_OK)
        status = pawl_create(p, &(pawl_create_args){ .definition = "lamp" }, &shared, err);
    if (status != PAWL_OK)
        return status;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ .p = p, .shared = shared.text };
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return PAWL_NO_MEMORY;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        pressed += workers[i].pressed;
        *err = workers[i].err.status ? workers[i].err : *err;
        status = workers[i].err.status ? workers[i].err.status : status;
    }
    if (status == PAWL_OK)
        status = count_history(p, shared.text, &counted, err);
    if (status == PAWL_OK)
        printf("%llu pressed, %llu of them on one lamp\n", (unsigned long long)pressed,
               (unsigned long long)counted);
    return status == PAWL_OK ? verify(p, err) : status;
}

/* threads URL own|shared */
int main(int count, char **words)
{
    pawl_error err = { 0 };
    bool own = count > 2 && strcmp(words[2], "own") == 0;
    pawl *p;
    pawl_status status = pawl_open(&p, count > 1 ? words[1] : "memory:",
                                   &(pawl_options){ .own = own, .workers = own ? 2 : 0 }, &err);

    if (status == PAWL_OK)
        status = run(p, &err);
    if (status != PAWL_OK)
        fprintf(stderr, "%s: %s\n", pawl_status_name(status), err.message);
    pawl_close(p);
    return status == PAWL_OK ? 0 : 1;
}
