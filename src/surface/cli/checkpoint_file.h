/* place.h - FILE-verify: how far a check of FILE has come, for one that is interrupted. */
#ifndef PAWL_SURFACE_CLI_PLACE_H
#define PAWL_SURFACE_CLI_PLACE_H

#include "surface/cli/cli.h"

/* Where the place of cli's store is kept; NULL: nowhere, it is no file of ours. */
const char *place_path(struct cli *cli);

/* What was kept; data NULL: nothing. INVALID_REQUEST if it is there and can't be read. */
pawl_status place_read(struct cli *cli, const char *path, str *out);

/* Replace it whole or not at all. False, with errno: not written. */
bool place_write(const char *path, str place);

#endif
