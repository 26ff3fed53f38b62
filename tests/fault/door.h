/* door.h - a store on the stage with one machine, a door that is opened and shut: for tests that need
 * single calls and not a whole scenario. */
#ifndef PAWL_TESTS_FAULT_DOOR_H
#define PAWL_TESTS_FAULT_DOOR_H

#include "api/api.h"

/* With a test clock, and with the tools and code of the scenarios. */
pawl *door_open(bool own, pawl_error *error);
pawl_id door_make(pawl *p, pawl_error *error);
/* How many entries it has; their numbers must be 1, 2, ... */
uint64_t door_entries(pawl *p, const pawl_id *id, pawl_error *error);

#endif
