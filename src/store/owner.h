/* owner.h - who owns a store, asked without opening it. */
#ifndef PAWL_STORE_OWNER_H
#define PAWL_STORE_OWNER_H

#include "base/scope.h"
#include "base/str.h"
#include <pawl.h>

/* Find the live owner of the store at `path` (a URL behind "sqlite:"). On OK *pid is its
 * process, or 0 if the store has no owner, and `address` is where it can be reached, "" if the
 * owner gave no address or there is no owner. Disturbs neither owner nor writers. Fails with
 * INVALID_REQUEST (no path), STORAGE_FAILURE (the sidecar cannot be read), TOO_LARGE (`size` is too
 * small). */
pawl_status sqlite_owner(str path, char *address, size_t size, int *pid);

/* What that owner wants to be shown by its callers (FILE-secret), "" if nothing: 0. Else the errno
 * of the file, which is there and cannot be read. */
#define OWNER_SECRET_SIZE 128
int sqlite_owner_secret(str path, char out[OWNER_SECRET_SIZE]);

/* Is it the URL of a store in PostgreSQL? */
bool url_is_postgres(str url);

/* The node that owns the store at such a URL, "" if none does; what it wants to be shown, "" if
 * nothing. NOT_KNOWN: there is no store; STORAGE_FAILURE: it cannot be reached. */
struct postgres_owner {
    char node[96], address[256], secret[OWNER_SECRET_SIZE];
};
pawl_status postgres_owner(struct scope *scope, str url, struct postgres_owner *out);

/* Is there a store that this user may only read (its file, folder or disk)? */
bool sqlite_is_read_only(str path);

#endif
