/* http_mcp.h - private to mcp: the rows that the HTTP server mounts. */
#ifndef PAWL_SURFACE_MCP_HTTP_MCP_H
#define PAWL_SURFACE_MCP_HTTP_MCP_H

#include "surface/mcp/mcp_int.h"

void rows_fill(struct mcp_server *server);

#endif
