/* mcp.h - the Model Context Protocol over the operations: /mcp of an HTTP server, and stdio.
 *
 * Two eras are spoken at once: 2026-07-28, where each request stands alone, and those before it,
 * which begin with `initialize`. A task is an instance: there is no table of tasks. What may be
 * done is decided below, by the operations; docs/internals/mcp.md has the tables. */
#ifndef PAWL_SURFACE_MCP_MCP_H
#define PAWL_SURFACE_MCP_MCP_H

#include <pawl.h>

struct op;
struct mcp_server;

struct mcp_options {
    bool has_fixtures; /* what the conformance suite asks for is there, too */
    const char *tools; /* which tools are listed: "manage", "definitions", names; NULL: all */
    const char *actor; /* who acts where a call has no token; NULL: no name */
};

/* For a store, which must outlive it. NULL: no memory, or no thread; errno says why. */
struct mcp_server *mcp_start(pawl *p, const struct mcp_options *options);

/* A table for http_options.mounts; it lives as long as the server. */
const struct op *mcp_rows(const struct mcp_server *server);

/* Ends every stream and every call that waits: before the HTTP server is stopped. */
void mcp_end_streams(struct mcp_server *server); /* NULL is allowed */
void mcp_free(struct mcp_server *server);        /* when no request is under way; NULL is allowed */

/* One message a line, until `in` ends or `stop` (an eventfd; -1: none) is readable. */
void mcp_serve_stdio(struct mcp_server *server, int in, int out, int stop);

#endif
