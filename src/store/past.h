/* past.h - for backends: how the past of an instance is put together from their reads. */
#ifndef PAWL_STORE_PAST_H
#define PAWL_STORE_PAST_H

#include "store/store.h"

/* The methods of store_ops of these names; a backend may have cheaper ones for reading several at
 * one go. */
struct past_reads {
    pawl_status (*head)(struct store *store, struct scope *scope, uint64_t instance, bool trust_rows,
                        struct head_row *out);
    pawl_status (*instance)(struct store *store, struct scope *scope, uint64_t number,
                            struct instance_row *out);
    pawl_status (*record)(struct store *store, struct scope *scope, uint64_t pos,
                          struct record *out);
    pawl_status (*value)(struct store *store, struct scope *scope, uint64_t id, struct value *out);
    pawl_status (*snapshot)(struct store *store, struct scope *scope, uint64_t instance,
                            struct snapshot_row *out);
};

pawl_status past_gather(const struct past_reads *reads, struct store *store, struct scope *scope,
                        struct past_query *queries, uint32_t count);

/* Where a trail goes on behind this record; 0: it ends here. store.c */
uint64_t trail_next(const struct trail_query *query, const struct trail_row *row);

bool record_is_sound(const struct record *record, uint64_t pos); /* store.c */
bool instance_is_sound(const struct instance_row *row);
bool head_is_sound(const struct head_row *row);

#endif
