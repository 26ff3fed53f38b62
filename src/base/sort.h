/* sort.h - arrays in an order.
 *
 * Heapsort: no hostile choice of keys makes it slow (as it would a hash table), and, unlike
 * qsort(), it takes no memory behind the host's back. */
#ifndef PAWL_BASE_SORT_H
#define PAWL_BASE_SORT_H

#include "base/node.h"

/* Below 0 if `a` comes before `b`. */
typedef int node_compare(void *context, const struct node *a, const struct node *b);
void sort_nodes(const struct node **nodes, size_t count, node_compare *compare, void *context);

int node_by_key(void *context, const struct node *a, const struct node *b); /* of sort_nodes() */

/* For qsort(): of arrays of str; of structs that begin with a uint64_t, by that. */
int compare_strs(const void *a, const void *b);
int compare_numbers_first(const void *a, const void *b);

typedef int index_compare(const void *context, uint32_t a, uint32_t b);
void sort_indices(uint32_t *items, uint32_t count, index_compare *compare, const void *context);

#endif
