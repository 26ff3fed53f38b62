/* map_items.h - the items of a map: which have begun, what came of them, when the map is over. */
#ifndef PAWL_FLOW_MAP_ITEMS_H
#define PAWL_FLOW_MAP_ITEMS_H

#include "flow/flow_int.h"

#define MAP_PARALLEL_MAX 10000u /* that begin together: one commit holds them ... */
#define MAP_CHILDREN_MAX 1000u  /* ... and of items that spawn */

/* ---- Deciding: on the turn ---- */

/* Its entry, and its first items. INVALID_REQUEST: too many, NO_MEMORY. */
pawl_status map_open(struct turn *turn, const struct attempt *attempt, str list);
/* An item is over, for good: the next one begins, or the map is over too. */
void map_item_over(struct turn *turn, enum lifecycle_transition transition,
                   const struct attempt *attempt, bool is_success, str payload);
/* The map itself is over before its items are: they end with it. */
void map_end_items(struct turn *turn, const struct attempt *attempt);

/* What the templates of an item's step see. `map` NULL: nothing. */
struct template_item map_item_of(const struct plan *plan, const struct map_state *map,
                                 uint32_t step, uint32_t index);

/* ---- Folding ---- */

const struct map_state *memory_find_map(const struct flow_memory *memory, uint32_t ordinal);
pawl_status memory_open_map(struct flow_memory *memory, const struct attempt *attempt, str list,
                            struct scope *scope, struct arena *arena);
/* An item's attempt begins: which item it is. False: there is no such map, or no item is left. */
bool memory_begin_item(struct flow_memory *memory, uint32_t ordinal, uint32_t *item);
bool memory_end_item(struct flow_memory *memory, const struct attempt *attempt, bool is_success,
                     str payload, uint32_t seq, struct arena *arena);
/* A map's attempt is over. One that failed is kept until it begins again, for a redrive. */
void memory_close_map(struct flow_memory *memory, uint32_t ordinal, bool is_success);
/* A state as a snapshot has it. */
void map_print(const struct flow_memory *memory, uint32_t i, struct buf *out);
bool map_load(struct flow_memory *memory, const struct node *row, struct arena *arena);
void map_print_items(const struct flow_memory *memory, uint32_t i, struct buf *out);
bool map_load_item(struct flow_memory *memory, const struct node *row, struct arena *arena);

#endif
