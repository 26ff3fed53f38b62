/* reading.h - the history that is read, for the files that have rules about its entries. */
#ifndef PAWL_TESTS_SIM_READING_H
#define PAWL_TESTS_SIM_READING_H

#include "sim/sim.h"

struct reading {
    struct sim *sim;
    struct subject *subject;
    struct fold *fold;
    uint32_t index;
    const pawl_entry *entry;
};

#define FAIL(r, rule, ...) fold_fail((r)->sim, (r)->subject, (rule), __VA_ARGS__)

/* fold.c */
bool reading_is(const struct reading *r, const char *action);
bool reading_is_of(const struct reading *r, const char *step);
uint32_t reading_step(struct reading *r, const char *name); /* its place in the fold */
void reading_early(struct reading *r, int64_t armed_ms, int64_t after_ms);
struct claim *reading_nonce(struct reading *r); /* the claim whose result this is; NULL: none */
void reading_follow(struct reading *r, const char *step, const char *before);

/* groups.c: trees; sagas.c: compensations, and machines that start something. After the entry has
 * been noted in the fold. */
bool groups_is_item(const struct reading *r);
void groups_item(struct reading *r);
void groups_load(struct reading *r);
void groups_tree(struct reading *r);
void sagas_trip(struct reading *r);
void sagas_desk(struct reading *r);

#endif
