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

/* ---- Items of several steps: item_way.c ---- */

bool map_has_ways(const struct plan *plan, uint32_t map);
/* The step with which an item begins: the first one, or where it stood when it was given. */
uint32_t map_begins_at(const struct plan *plan, const struct map_state *map, uint32_t item);
/* A step of the item begins; the key that it has. */
str item_way_begin(struct map_state *map, uint32_t item, const struct attempt *attempt);
/* A step of it is done, and it goes on. False: no memory. */
bool item_way_pass(struct flow_memory *memory, struct item_way *way, uint32_t plan, str result,
                   uint32_t seq, struct arena *arena);
void item_way_end(struct flow_memory *memory, struct item_way *way); /* it is done */
/* Of an item that is not done, for the instance that runs its own again: a row, or nothing. */
pawl_status item_way_give(const struct flow_redrive *args, const struct map_state *map,
                          uint32_t item, struct scope *value, struct buf *out);
bool item_way_take(struct flow_memory *memory, struct item_way *way, str given,
                   struct arena *arena);
/* Another plan is in force: a map may have more steps, or only one. False: no memory. */
bool item_ways_amend(struct flow_memory *memory, struct arena *arena);
bool item_ways_any(const struct flow_memory *memory);
void item_ways_print(const struct flow_memory *memory, struct buf *out);
bool item_way_load(struct flow_memory *memory, const struct node *row, struct arena *arena);

/* ---- Folding ---- */

const struct map_state *memory_find_map(const struct flow_memory *memory, uint32_t ordinal);
pawl_status memory_open_map(struct flow_memory *memory, const struct attempt *attempt, str list,
                            struct scope *scope, struct arena *arena);
/* An item begins: which one it is. False: there is no such map, no item is left, or no memory. */
bool memory_begin_item(struct flow_memory *memory, uint32_t ordinal, uint32_t *item,
                       struct arena *arena);
/* A step of an item begins; its key may be the item's. */
void memory_begin_way(struct flow_memory *memory, struct attempt *attempt);
/* A step of an item is done, and the next one begins; or it was stopped. */
bool memory_pass_item(struct flow_memory *memory, const struct attempt *attempt, bool goes_on,
                      str payload, uint32_t seq, struct arena *arena);
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
