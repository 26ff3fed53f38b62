/* node_own.h - reading what pawl wrote itself: a compiled definition, a snapshot, the effects of an
 * entry. Such a text holds what was given to pawl, and so it is deeper. */
#ifndef PAWL_BASE_NODE_OWN_H
#define PAWL_BASE_NODE_OWN_H

#include "base/node.h"

#define NODE_OWN_DEPTH_MAX 128 /* twice what anything may have that is given to pawl */

/* As node_read_json(), but up to NODE_OWN_DEPTH_MAX levels: whatever was accepted once can be read
 * again where it is kept. */
pawl_status node_read_own(struct scope *scope, str text, struct node **out);

#endif
