/* dashboard.h - pages for people in a browser: files that are part of the program, and the exchange
 * of a token for a cookie. All that the pages show, they ask the operations for. */
#ifndef PAWL_SURFACE_DASHBOARD_DASHBOARD_H
#define PAWL_SURFACE_DASHBOARD_DASHBOARD_H

#include "api/ops.h"

extern const struct op dashboard_rows[]; /* to be mounted (http.h) */

#endif
