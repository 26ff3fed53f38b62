#include <pawl.h>
#include <stdio.h>

static const char order[] = "name: order\n"
                            "states: [new, paid, shipped, dropped]\ninitial_state: new\n"
                            "terminal_states: [shipped, dropped]\n"
                            "terminal_kinds: {shipped: success, dropped: cancel}\ntransitions:\n"
                            "  - {from_state: new, action: pay, to_state: paid}\n"
                            "  - {from_state: new, action: drop, to_state: dropped}\n"
                            "  - {from_state: paid, action: ship, to_state: shipped}\n";

int main(void)
{
    pawl *p = NULL;
    pawl_error err;
    pawl_id id;
    pawl_fired fired;
    pawl_history *h = NULL;
    pawl_entry e;

    if (pawl_open(&p, "sqlite:orders.db", NULL, &err)) goto fail;
    if (pawl_define(p, order, sizeof order - 1, NULL, &err)) goto fail;
    if (pawl_create(p, &(pawl_create_args){ .definition = "order", .subject_ref = "A-17" }, &id, &err)) goto fail;
    if (pawl_fire(p, id.text, &(pawl_fire_args){ .action = "ship" }, &fired, &err) == PAWL_INVALID_TRANSITION)
        puts(err.message); /* no 'ship' from 'new'; legal now: pay, drop */
    if (pawl_fire(p, id.text, &(pawl_fire_args){ .action = "pay", .actor_ref = "ann" }, &fired, &err)) goto fail;
    if (pawl_history_open(p, id.text, NULL, &h, &err)) goto fail;
    while (pawl_history_next(h, &e))
        printf("%llu %s -> %s\n", (unsigned long long)e.sequence_number, e.from_state, e.to_state);
    if (pawl_history_close(h, &err)) goto fail;
    pawl_close(p);
    return 0;
fail:
    fprintf(stderr, "%s: %s\n", pawl_status_name(err.status), err.message);
    pawl_close(p);
    return 1;
}
