/* evidence_world.h - a small store for the tests of verify, written record by record with the
 * hashes of chain.c and no engine: so it can hold what an engine would never write, rightly
 * hashed. And a store that lies: it reads through to another and alters what it gives. */
#ifndef PAWL_TESTS_UNIT_EVIDENCE_WORLD_H
#define PAWL_TESTS_UNIT_EVIDENCE_WORLD_H

#include "evidence/evidence.h"
#include "lib/test.h"
#include "model/definition.h"
#include "store/store.h"

#define WORLD_INSTANCES 8
#define WORLD_PENDING   256

/* Transitions of the machine "order": open -pay(guard)-> paid -ship-> done; open -note-> open;
 * open -void(with a reason)-> done. */
enum { ORDER_PAY, ORDER_SHIP, ORDER_NOTE, ORDER_VOID };
enum { DEFINITION_ORDER = 1, DEFINITION_FLOW = 2 };

struct world_chain {
    uint64_t seq, pos, skip_pos;
    uint32_t definition, state;
    uint8_t random[ID_RANDOM_SIZE], hash[SHA_SIZE];
    bool is_dirty;
};

struct world {
    struct test *t;
    struct env *env;
    struct store *store;
    struct sha *sha;
    uint8_t root[SHA_SIZE];
    uint64_t pos, value_count;
    int64_t at_ms;
    bool lag; /* write no head rows */
    struct definition_row definitions[2];
    struct definition *compiled[2];
    struct world_chain chains[WORLD_INSTANCES];
    struct record records[WORLD_PENDING]; /* these and the rest go with the next commit */
    struct value values[WORLD_PENDING];
    struct instance_row instances[WORLD_INSTANCES];
    struct live_change live[WORLD_PENDING];
    struct commit next;
};

void world_open(struct world *w, struct test *t); /* with both definitions put: positions 1, 2 */
void world_close(struct world *w);
void world_create(struct world *w, uint64_t number, uint32_t definition);
struct record *world_record(struct world *w, uint64_t number, int32_t what, const char *body);
void world_seal(struct world *w, struct record *record); /* hash it, after a change */
void world_live(struct world *w, struct live_change change);
void world_commit(struct world *w);
void world_check(struct world *w, uint64_t number, struct verify_report *report);
void world_expect_valid(struct world *w, uint64_t records, uint64_t entries, uint64_t instances);
void world_expect_bad(struct world *w, uint64_t pos, uint64_t seq, const char *what);

/* Two instances of "order". Positions: 1, 2 define; 3 create; 4 pay, 5 ship (one commit);
 * 6 create, 7 note. */
void world_two_orders(struct world *w, struct test *t);

/* What a liar changes; NULL: nothing. Each is called with what was read. */
struct liar {
    struct store store;
    struct store *truth;
    void (*record)(struct record *record);
    void (*value)(struct value *value);
    void (*definition)(struct definition_row *row);
    void (*instance)(struct instance_row *row);
    void (*head)(struct head_row *row);
    void (*live)(struct live *live);
    void (*tip)(struct store_tip *tip);
    uint64_t fail_pos; /* records from here on can't be read; 0: all can */
};

void liar_init(struct liar *liar, struct store *truth);

#endif
