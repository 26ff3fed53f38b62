/* mcp_key.h - `mcp:` of a definition: how the MCP surface offers it. Nothing is compiled from it:
 * that surface reads the text. */
#ifndef PAWL_MODEL_MCP_KEY_H
#define PAWL_MODEL_MCP_KEY_H

#include "model/input_schema.h"

void mcp_key_check(const struct node *mcp, schema_report *report, void *context);

#endif
