/* instance_log.h - for backends: how an instance's log is put together from their reads. */
#ifndef PAWL_STORE_INSTANCE_LOG_H
#define PAWL_STORE_INSTANCE_LOG_H

#include "store/store.h"

/* The `find` of store_ops, or a cheaper one inside of a read that has begun. */
typedef pawl_status (*find_fn)(struct store *store, struct scope *scope,
                               const struct find_query *query, void *out);

pawl_status instance_log_gather(find_fn find, struct store *store, struct scope *scope,
                                struct instance_log_query *queries, uint32_t count);

/* Where a chain goes on behind this record; 0: it ends here. store.c */
uint64_t chain_next(const struct chain_query *query, const struct record *record);

/* lookup.c */
bool is_instance_number(uint64_t number); /* not 0, which is the store itself */
bool record_is_sound(const struct record *record, uint64_t pos);
pawl_status store_fail_damaged(struct scope *scope, const char *what); /* "a record" */
const char *find_word(enum find_kind kind); /* "instance": for what is not there */
/* STORAGE_FAILURE if what was found cannot be; else `status`. */
pawl_status find_check(struct scope *scope, const struct find_query *query, const void *out,
                       pawl_status status);

#endif
