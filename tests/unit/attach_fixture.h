/* attach_fixture.h - a host with a file, a table and a connection of its own, and pawl joined to
 * it. */
#ifndef PAWL_TESTS_ATTACH_FIXTURE_H
#define PAWL_TESTS_ATTACH_FIXTURE_H

#include "lib/test.h"
#include <pawl.h>
#include <sqlite3.h>

struct host {
    char folder[64], path[96], url[112];
    sqlite3 *db;
    pawl *p;
    pawl_error error;
};

void host_begin(struct host *host); /* an empty file of the host's in WAL mode; nobody attached */
void host_attach(struct host *host);
void host_end(struct host *host);

void host_run(struct host *host, const char *sql); /* must succeed */
int64_t host_number(struct host *host, const char *sql);
int64_t other_number(struct host *host, const char *sql); /* as another connection sees it */

void host_define(struct host *host, const char *text);
const char *host_create(struct host *host, const char *definition); /* in a static buffer */
pawl_status host_fire(struct host *host, const char *id, const char *action);
void host_expect_state(struct host *host, const char *id, const char *state);
void host_expect_valid(struct host *host); /* by a pawl of its own, opened by URL */

#define LAMP                                                                                       \
    "name: lamp\nstates: [off, on]\ninitial_state: off\nterminal_states: []\ntransitions:\n"       \
    "  - {from_state: off, action: press, to_state: on}\n"                                         \
    "  - {from_state: on, action: press, to_state: off}\n"

/* Another machine of the same name: one press more, and other words. */
#define LANTERN                                                                                    \
    "name: lamp\nstates: [dark, dim, bright]\ninitial_state: dark\nterminal_states: []\n"          \
    "transitions:\n"                                                                               \
    "  - {from_state: dark, action: press, to_state: dim}\n"                                       \
    "  - {from_state: dim, action: press, to_state: bright}\n"

#endif
