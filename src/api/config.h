/* config.h - pawl.yaml: the settings of a server. docs/config.md lists the keys. */
#ifndef PAWL_API_CONFIG_H
#define PAWL_API_CONFIG_H

#include "base/scope.h"

struct config { /* NULL and 0: not set */
    const char *listen, *store, *hosts, *log;
    const char *tls_cert, *tls_key; /* files */
    const char *tools, *retention;  /* JSON, for pawl_options */
    uint32_t workers, max_entries, max_live_steps, shards;
    uint64_t body_memory;
    bool needs_token; /* also on loopback */
};

/* Read one; all lives in the scope. INVALID_REQUEST with line and column. */
pawl_status config_read(struct scope *scope, str text, struct config *out);

bool config_allows_shards(uint64_t count); /* may a store be made with so many? */

#endif
