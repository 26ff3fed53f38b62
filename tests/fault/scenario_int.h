/* scenario_int.h - what every scenario's pawl needs to know. */
#ifndef PAWL_TESTS_FAULT_SCENARIO_INT_H
#define PAWL_TESTS_FAULT_SCENARIO_INT_H

#include <pawl.h>

pawl_status scenario_register(pawl *p, pawl_error *error); /* tools and code */

#endif
