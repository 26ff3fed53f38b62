/* instance_log.h - for backends: the reads that each has, and how they make an instance's log. */
#ifndef PAWL_STORE_INSTANCE_LOG_H
#define PAWL_STORE_INSTANCE_LOG_H

#include "store/store.h"

/* The reads that every backend has, each in a file of its choice. */
#define STORE_READS(backend)                                                                       \
    pawl_status backend##_tip(struct store *store, struct scope *scope, struct store_tip *out);    \
    pawl_status backend##_find_row(struct store *store, struct scope *scope,                       \
                                   const struct find_query *query, void *out);                     \
    pawl_status backend##_rows(struct store *store, struct scope *scope,                           \
                               const struct rows_query *query, void **out, uint32_t *count);       \
    pawl_status backend##_live(struct store *store, struct scope *scope, uint64_t instance,        \
                               struct live *out);                                                  \
    pawl_status backend##_records_of(struct store *store, struct scope *scope,                     \
                                     struct chain_query *query, struct record *out, uint32_t room, \
                                     uint32_t *count);                                             \
    pawl_status backend##_records(struct store *store, struct scope *scope,                        \
                                  const uint64_t *positions, uint32_t count, struct record *out,   \
                                  uint32_t *read);                                                 \
    pawl_status backend##_scan(struct store *store, struct scope *scope, uint64_t from,            \
                               record_fn fn, void *context);                                       \
    pawl_status backend##_instance_logs(struct store *store, struct scope *scope,                  \
                                        struct instance_log_query *queries, uint32_t count);       \
    pawl_status backend##_list(struct store *store, struct scope *scope,                           \
                               const struct list_query *query, uint64_t **out, uint32_t *count);   \
    pawl_status backend##_counts(struct store *store, struct scope *scope, str name,               \
                                 uint32_t version, struct state_count **out, uint32_t *count)
#define STORE_READ_OPS(backend)                                                                    \
    .tip = backend##_tip, .find = backend##_find_row, .rows = backend##_rows,                      \
    .live = backend##_live, .records = backend##_records, .records_of = backend##_records_of,      \
    .scan = backend##_scan, .instance_logs = backend##_instance_logs, .list = backend##_list,      \
    .counts = backend##_counts

/* The `find` of store_ops, or a cheaper one inside of a read that has begun. */
typedef pawl_status (*find_fn)(struct store *store, struct scope *scope,
                               const struct find_query *query, void *out);

pawl_status instance_log_gather(find_fn find, struct store *store, struct scope *scope,
                                struct instance_log_query *queries, uint32_t count);

/* How many records are read. */
uint32_t instance_log_max(const struct instance_log_query *query, const struct instance_log *log);

/* Where a chain goes on behind this record; 0: it ends here. store.c */
uint64_t chain_next(const struct chain_query *query, const struct record *record);

/* lookup.c */
bool is_instance_number(uint64_t number); /* not 0, which is the store itself */
bool record_is_sound(const struct record *record, uint64_t pos);
pawl_status store_fail_damaged(struct scope *scope, const char *what); /* "a record" */
pawl_status live_check(struct scope *scope, const struct live *live);  /* STORAGE_FAILURE */
const char *find_word(enum find_kind kind); /* "instance": for what is not there */
/* STORAGE_FAILURE if what was found cannot be; else `status`. */
pawl_status find_check(struct scope *scope, const struct find_query *query, const void *out,
                       pawl_status status);

#endif
