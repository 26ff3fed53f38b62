/* code_int.h - private to code: one turn of a handler, and what an instance remembers. */
#ifndef PAWL_CODE_CODE_INT_H
#define PAWL_CODE_CODE_INT_H

#include "code/code.h"

#define LIMIT_DECLARED 1024u /* timers, signals or variables of one type */

/* ---- memory.c: what an instance remembers between turns ---- */

struct code_timer {
    str name;
    int64_t due_at_ms;
};

/* Lives in one arena and is changed in place: an instance of many turns must not grow it. */
struct code_memory {
    char *state; /* JSON of the tracked variables; NULL before the first turn */
    size_t state_size, state_capacity;
    struct code_timer *timers; /* in the order they were armed */
    str *signals;              /* in the order they were awaited */
    uint32_t timer_count, timer_capacity, signal_count, signal_capacity;
    str *names; /* each name once, however often it is armed */
    uint32_t name_count, name_capacity;
};

void *code_memory_new(const struct definition *definition, str input, struct arena *arena);
pawl_status code_memory_apply(const struct definition *definition, void *memory,
                              const struct entry_view *entry, struct scope *scope,
                              struct arena *arena);
void code_memory_restamp(void *memory, const struct effect_list *effects);
void code_memory_print(const struct definition *definition, const void *memory, struct buf *out);
pawl_status code_memory_load(const struct definition *definition, str text, str input,
                             struct scope *scope, struct arena *arena, void **out);

str code_memory_state(const struct code_memory *memory); /* data NULL: none yet */
bool code_memory_has_timer(const struct code_memory *memory, str name);
bool code_memory_has_signal(const struct code_memory *memory, str name);

/* ---- turn.c: what the handler said ---- */

enum turn_end { TURN_WAITS, TURN_COMPLETES, TURN_FAILS };

struct pawl_turn {
    struct scope *scope;
    const pawl_code_type *type;
    int64_t at_ms;
    struct effect_list timers, signals; /* ARM and AWAIT */
    enum turn_end end;
    str value;          /* JSON: the result or the error; data NULL: none */
    str problem;        /* words for a turn that cannot stand; data NULL: none */
    pawl_status status; /* NO_MEMORY sticks */
};

/* The handler asked for something impossible: its turn has failed. The first one counts. */
void turn_problem(struct pawl_turn *turn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Settle how the turn ends, once the handler has returned. Fails with NO_MEMORY. */
pawl_status turn_settle(struct pawl_turn *turn);

/* ---- state.c: the tracked variables, struct <-> JSON ---- */

/* Fill the zeroed `state` from `text` (data NULL: leave it). Fields the text does not have
 * stay zero, fields the type does not have are passed over. NOT_KNOWN if a value does not fit
 * the variable: this program cannot run the instance, another build might. */
pawl_status state_load(struct scope *scope, const pawl_code_type *type, str text, void *state);

/* Print the variables; what cannot be printed is the turn's problem, and *out stays. */
void state_print(struct pawl_turn *turn, const void *state, str *out);

const char *var_type_name(pawl_var_type type); /* "int64", ...; NULL if it is none */

/* ---- registration.c ---- */

/* The type's name in the plan's text: "code". For messages when no handler is registered. */
str code_name(const struct definition *definition, struct scope *scope);

#endif
