/* checkpoint_file.h - FILE-verify: how far a check of FILE has come, for one that is interrupted. */
#ifndef PAWL_SURFACE_CLI_CHECKPOINT_FILE_H
#define PAWL_SURFACE_CLI_CHECKPOINT_FILE_H

#include "surface/cli/cli.h"

/* Where the checkpoint of cli's store is kept; NULL: nowhere, it is no file of ours. */
const char *checkpoint_path(struct cli *cli);

/* What was kept; data NULL: nothing. INVALID_REQUEST if it is there and can't be read. */
pawl_status checkpoint_read(struct cli *cli, const char *path, str *out);

/* Replace it whole or not at all. False, with errno: not written. */
bool checkpoint_write(const char *path, str checkpoint);

#endif
