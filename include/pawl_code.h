/* pawl_code.h - durable code: a process written in sequence, whose variables, timers and place
 * survive the death of its program.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     #define BUFF(has)                              \
 *         has(input, uint32_t, duration_secs, 60)    \
 *         has(var, uint32_t, stacks, 1)              \
 *         has(timer, Expire)                         \
 *         has(signal, Dispel)                        \
 *         has(signal, Stack, uint32_t)               \
 *         has(result, uint32_t, final_stacks)        \
 *         has(await, buffed)
 *
 *     PAWL_CODE(buff, BUFF)
 *     {
 *         PAWL_BEGIN(BUFF);
 *         for (;;) {
 *             PAWL_SELECT(buffed) {
 *                 PAWL_ON_TIMER(Expire, PAWL_SECS(self->duration_secs)) break;
 *                 PAWL_ON_SIGNAL(Dispel) break;
 *                 PAWL_ON_SIGNAL(Stack) { self->stacks += got->Stack; continue; }
 *             } PAWL_AWAIT;
 *         }
 *         result->final_stacks = self->stacks;
 *         PAWL_END;
 *     }
 *
 * The list says all that the type has, once:
 *   has(var, KIND, NAME[, FIRST VALUE])   a variable that lives across awaits: self->NAME
 *   has(input, KIND, NAME[, DEFAULT])     likewise, read from the input's member NAME at the start
 *   has(required, KIND, NAME)             an input that the start may not lack
 *   has(result, KIND, NAME)               what it completes with: result->NAME
 *   has(timer, NAME)
 *   has(signal, NAME[, KIND])             its payload: got->NAME
 *   has(call, NAME[, KIND])               a tool it calls; the result: got->NAME
 *   has(retry, CALL, MAX[, FIRST_MS[, LONGEST_MS]])  a call that fails is tried MAX times in all;
 *                                         the delay doubles from the first to the longest
 *   has(no_retry, CALL, ERROR)            but not after this error
 *   has(external, NAME[, KIND])           what a person answers with step.complete: got->NAME
 *   has(child, NAME[, KIND])              a definition it spawns; the child's result: got->NAME
 *   has(buffered, NAME)                   a signal that is kept while nothing awaits it
 *   has(await, NAME)                      a place where it waits. The name is stored, so that code
 *                                         above it may change under waiting instances
 *   has(version, NUMBER), has(migrate, FUNCTION)
 *   has(renamed, OLD, NEW)                the variable NEW was called OLD: its stored value stays
 * A KIND is int8_t to int64_t, uint8_t to uint64_t, float, double, bool, or with more to say:
 *   text, NAME, SIZE                      a char array with its NUL
 *   json, NAME, SIZE                      the same, holding any JSON; "" is null
 *   list, NAME, KIND, MAX                 an array of numbers or bools, and NAME_count
 *   texts, NAME, SIZE, MAX                an array of texts, and NAME_count
 *   part, NAME, STRUCT                    a struct made by PAWL_STRUCT(STRUCT, LIST)
 *   parts, NAME, STRUCT, MAX              an array of those, and NAME_count
 *
 * What is stored is `self`. Other locals hold only until the next await, and the compiler refuses
 * one that would have to live longer, where it can tell. The arguments of an await are evaluated
 * once, when it begins to wait. An await may be anywhere in the function. What else the compiler
 * refuses, and with which words: docs/durable-code.md. */
#ifndef PAWL_CODE_H
#define PAWL_CODE_H

#include <pawl.h>
#include <pawl_code_here.h>
#include <pawl_code_list.h>

#if defined(__GNUC__)
#pragma GCC system_header /* so that a mistake is shown where the author made it, not in here */
#endif

/* When the event happened that woke the code, in Unix milliseconds by the store's clock, and how
 * long it is from then to such a time: PAWL_TIMER(place, Renew, PAWL_UNTIL(self->paid_until)).
 * PAWL_MS(n), PAWL_SECS(n), PAWL_MINUTES(n), PAWL_HOURS(n), PAWL_DAYS(n): see pawl_code_here.h. */
#define PAWL_NOW pawl_turn_now(turn)

/* ---- Writing in sequence ------------------------------------------------ */

/* Where the stored phase jumps in. Every name of the list is an enumerator in here. */
#define PAWL_BEGIN(LIST)                                                                           \
    PAWL_NO_MORE_(LIST(PAWL_NOTHING_))                                                             \
    enum pawl_timer_ { LIST(PAWL_NAME_TIMER_) pawl_timer_count_ };                                 \
    enum pawl_signal_ { LIST(PAWL_NAME_SIGNAL_) pawl_signal_count_ };                              \
    enum pawl_call_ { LIST(PAWL_NAME_CALL_) pawl_call_count_ };                                    \
    enum pawl_retry_ { LIST(PAWL_NAME_RETRY_) pawl_retry_count_ };                                 \
    enum pawl_external_ { LIST(PAWL_NAME_EXTERNAL_) pawl_external_count_ };                        \
    enum pawl_child_ { LIST(PAWL_NAME_CHILD_) pawl_child_count_ };                                 \
    enum pawl_await_ { pawl_await_begin_, LIST(PAWL_NAME_AWAIT_) };                                \
    PAWL_BEGINNING_                                                                                \
    bool pawl_woken_ = false; /* has an arm taken the event since code last began to wait? */      \
    (void)self, (void)got, (void)result, (void)pawl_woken_;                                        \
    switch ((enum pawl_await_)pawl_seq_at(turn)) {                                                 \
    case pawl_await_begin_:                                                                        \
        break;                                                                                     \
        LIST(PAWL_GO_TO_)                                                                          \
    default:                                                                                       \
        return;                                                                                    \
    }                                                                                              \
    {

/* The end of the code: completed, with what `result` holds. */
#define PAWL_END                                                                                   \
    pawl_seq_done(turn);                                                                           \
    }                                                                                              \
    PAWL_EASY_ (void)0

/* Complete here and now. */
#define PAWL_DONE                                                                                  \
    do {                                                                                           \
        pawl_seq_done(turn);                                                                       \
        return;                                                                                    \
    } while (0)

/* Fail here and now, with words as printf() makes them. */
#define PAWL_FAIL(...)                                                                             \
    do {                                                                                           \
        PAWL_TURN_FAIL_(__VA_ARGS__);                                                              \
        return;                                                                                    \
    } while (0)

/* Do something in the same transaction as this turn (pawl_reduce_register()); does not wait. */
#define PAWL_REDUCE(name, args) PAWL_TURN_REDUCE_(turn, #name, PAWL_GIVEN_(args))

/* PAWL_SELECT(place) { arms } PAWL_AWAIT; : the first of the arms, and only that one (both are in
 * pawl_code_here.h). An arm may break out of the loop around the select, or continue it. An arm
 * with a condition is in braces: if (self->is_short) { PAWL_ON_TIMER(Short, PAWL_SECS(1)) break;
 * } */
#define PAWL_SELECT_AT_(label)                                                                     \
    enum { PAWL_ON_outside_of_a_PAWL_SELECT_ };                                                    \
    PAWL_PLACE_(label)

/* The code comes to a place, or wakes there. */
#define PAWL_PLACE_(label)                                                                         \
    PAWL_BEGUN_                                                                                    \
    pawl_seq_arm(turn, pawl_await_##label##_);                                                     \
    if (0) {                                                                                       \
        pawl_place_##label##_:                                                                     \
        PAWL_OF_THE_LIST_;                                                                         \
        pawl_seq_wake(turn);                                                                       \
    }                                                                                              \
    pawl_woken_ = false;

/* An arm, whose arguments are evaluated when it is armed, and not again when it wakes. */
#define PAWL_ON_TIMER(timer, after_ms)                                                             \
    PAWL_ONCE_(timer_##timer)                                                                      \
    if (PAWL_SEQ_TIMER_(turn, PAWL_ARM_(pawl_timer_##timer##_), PAWL_ARMED_WITH_(after_ms, 0)) &&  \
        PAWL_WOKEN_)
#define PAWL_ON_SIGNAL(signal)                                                                     \
    PAWL_ONCE_(signal_##signal)                                                                    \
    if (pawl_seq_signal(turn, PAWL_ARM_(pawl_signal_##signal##_)) && PAWL_WOKEN_)
#define PAWL_ON_CALL(call, args)                                                                   \
    PAWL_ONCE_(calls_externals_or_children)                                                        \
    if (PAWL_SEQ_CALL_(turn, PAWL_ARM_(pawl_call_##call##_), PAWL_ARMED_WITH_(args, NULL)) &&      \
        PAWL_WOKEN_)
#define PAWL_ON_CALL_KEYED(call, key, args)                                                        \
    PAWL_ONCE_(calls_externals_or_children)                                                        \
    if (PAWL_SEQ_CALL_KEYED_(turn, PAWL_ARM_(pawl_call_##call##_), PAWL_ARMED_WITH_(key, NULL),    \
                             PAWL_ARMED_WITH_(args, NULL)) &&                                      \
        PAWL_WOKEN_)
#define PAWL_ON_EXTERNAL(external, args)                                                           \
    PAWL_ONCE_(calls_externals_or_children)                                                        \
    if (PAWL_SEQ_EXTERNAL_(turn, PAWL_ARM_(pawl_external_##external##_),                           \
                           PAWL_ARMED_WITH_(args, NULL)) &&                                        \
        PAWL_WOKEN_)
#define PAWL_ON_CHILD(child, input)                                                                \
    PAWL_ONCE_(calls_externals_or_children)                                                        \
    if (PAWL_SEQ_SPAWN_(turn, PAWL_ARM_(pawl_child_##child##_), PAWL_ARMED_WITH_(input, NULL),     \
                        false) &&                                                                  \
        PAWL_WOKEN_)

#define PAWL_ARM_(index) ((unsigned)(index) + (unsigned)PAWL_ON_outside_of_a_PAWL_SELECT_)
/* Without an arm the flag is not set: so gcc knows that what every arm assigns has a value behind
 * the select. */
#define PAWL_WOKEN_ (pawl_woken_ = true)
/* clang does not take a pointer that is passed to a function for used; of this it does. */
#if defined(__clang__)
#define PAWL_GIVEN_(text) (__extension__((text) ?: (const char *)0))
#else
#define PAWL_GIVEN_(text) (text)
#endif
/* A declaration, so that a second one in the same select is an error, and one without braces after
 * an `if` as well; but to C++ that one is all that the `if` guards. */
#ifdef __cplusplus
#define PAWL_ONCE_(what)
#else
#define PAWL_ONCE_(what) pawl_arm_with_a_condition_needs_braces two_arms_of_one_select_for_##what;
typedef char pawl_arm_with_a_condition_needs_braces
#if defined(__GNUC__)
    __attribute__((unused))
#endif
    ;
#endif

/* Wait for one thing alone. */
#define PAWL_ALONE_(label, arming, waking)                                                         \
    PAWL_BEGUN_                                                                                    \
    pawl_seq_arm(turn, pawl_await_##label##_);                                                     \
    PAWL_DROP_(arming);                                                                            \
    (void)pawl_seq_over(turn);                                                                     \
    return;                                                                                        \
    pawl_place_##label##_:                                                                         \
    PAWL_OF_THE_LIST_;                                                                             \
    pawl_seq_wake(turn);                                                                           \
    (void)(waking);                                                                                \
    pawl_woken_ = true;                                                                            \
    if (pawl_seq_over(turn))                                                                       \
    return
#define PAWL_TIMER(label, timer, after_ms)                                                         \
    do {                                                                                           \
        PAWL_ALONE_(label, PAWL_SEQ_TIMER_(turn, (unsigned)pawl_timer_##timer##_, (after_ms)),     \
                    PAWL_SEQ_TIMER_(turn, (unsigned)pawl_timer_##timer##_, 0));                    \
    } while (0)
#define PAWL_SIGNAL(label, signal)                                                                 \
    do {                                                                                           \
        PAWL_ALONE_(label, pawl_seq_signal(turn, (unsigned)pawl_signal_##signal##_),               \
                    pawl_seq_signal(turn, (unsigned)pawl_signal_##signal##_));                     \
    } while (0)

/* Call a tool with `args` (JSON) and wait for its result. If it fails and has no attempts left
 * (has(retry, ...)), or its result is not of the KIND in the list, the instance fails with its
 * error; PAWL_TRY_CALL goes on, and PAWL_ERROR is the error as JSON then, else NULL. */
#define PAWL_TRY_CALL(label, call, args)                                                           \
    do {                                                                                           \
        PAWL_ALONE_(label, PAWL_SEQ_CALL_(turn, (unsigned)pawl_call_##call##_, PAWL_GIVEN_(args)), \
                    PAWL_SEQ_CALL_(turn, (unsigned)pawl_call_##call##_, NULL));                    \
    } while (0)
#define PAWL_CALL(label, call, args)                                                               \
    do {                                                                                           \
        PAWL_TRY_CALL(label, call, args);                                                          \
        PAWL_FAIL_WITH_IT_;                                                                        \
    } while (0)
/* With a key of one's own, for a loop that calls again by itself: all calls of this instance with
 * the same key are one to the tool, which is given INSTANCE:KEY as the idempotency key. */
#define PAWL_TRY_CALL_KEYED(label, call, key, args)                                                \
    do {                                                                                           \
        PAWL_ALONE_(label,                                                                         \
                    PAWL_SEQ_CALL_KEYED_(turn, (unsigned)pawl_call_##call##_, PAWL_GIVEN_(key),    \
                                         PAWL_GIVEN_(args)),                                       \
                    PAWL_SEQ_CALL_(turn, (unsigned)pawl_call_##call##_, NULL));                    \
    } while (0)
#define PAWL_CALL_KEYED(label, call, key, args)                                                    \
    do {                                                                                           \
        PAWL_TRY_CALL_KEYED(label, call, key, args);                                               \
        PAWL_FAIL_WITH_IT_;                                                                        \
    } while (0)
#define PAWL_TRY_EXTERNAL(label, external, args)                                                   \
    do {                                                                                           \
        PAWL_ALONE_(label,                                                                         \
                    PAWL_SEQ_EXTERNAL_(turn, (unsigned)pawl_external_##external##_,                \
                                       PAWL_GIVEN_(args)),                                         \
                    PAWL_SEQ_EXTERNAL_(turn, (unsigned)pawl_external_##external##_, NULL));        \
    } while (0)
#define PAWL_EXTERNAL(label, external, args)                                                       \
    do {                                                                                           \
        PAWL_TRY_EXTERNAL(label, external, args);                                                  \
        PAWL_FAIL_WITH_IT_;                                                                        \
    } while (0)

/* Spawn a child with `input` (JSON) and wait for its result. If it fails or is cancelled, so does
 * this one, with its error; PAWL_TRY_SPAWN goes on, with PAWL_ERROR. PAWL_SPAWN_ABANDON: one that
 * goes on by itself if this one ends while it waits for it. */
#define PAWL_TRY_SPAWN(label, child, input) PAWL_SPAWN_AS_(label, child, input, false)
#define PAWL_SPAWN(label, child, input)                                                            \
    do {                                                                                           \
        PAWL_SPAWN_AS_(label, child, input, false);                                                \
        PAWL_FAIL_WITH_IT_;                                                                        \
    } while (0)
#define PAWL_SPAWN_ABANDON(label, child, input)                                                    \
    do {                                                                                           \
        PAWL_SPAWN_AS_(label, child, input, true);                                                 \
        PAWL_FAIL_WITH_IT_;                                                                        \
    } while (0)
#define PAWL_SPAWN_AS_(label, child, input, abandon)                                               \
    do {                                                                                           \
        PAWL_ALONE_(label,                                                                         \
                    PAWL_SEQ_SPAWN_(turn, (unsigned)pawl_child_##child##_, PAWL_GIVEN_(input),     \
                                    abandon),                                                      \
                    PAWL_SEQ_SPAWN_(turn, (unsigned)pawl_child_##child##_, NULL, abandon));        \
    } while (0)
#define PAWL_FAIL_WITH_IT_                                                                         \
    if (pawl_seq_failed(turn))                                                                     \
    return

/* PAWL_GATHER(place) { ... } PAWL_EACH { ... } PAWL_GATHERED; : several calls, externals and
 * children at once (the three are in pawl_code_here.h). What the first block begins is under way
 * together, in a loop perhaps. The second block runs for each answer, in the order in which they
 * come: got->NAME or PAWL_ERROR, and PAWL_WHICH, its number among what was begun, from 0. The
 * code goes on when all have answered; at once, if nothing was begun. An end in between
 * (PAWL_FAIL) gives up what is still under way. */
#define PAWL_GATHER_AT_(label)                                                                     \
    enum { PAWL_GATHER_CALL_outside_of_a_PAWL_GATHER_ };                                           \
    PAWL_PLACE_(label)
#define PAWL_GATHERING_(index)                                                                     \
    ((unsigned)(index) + (unsigned)PAWL_GATHER_CALL_outside_of_a_PAWL_GATHER_)
#define PAWL_GATHER_CALL(call, args)                                                               \
    PAWL_SEQ_GATHER_CALL_(turn, PAWL_GATHERING_(pawl_call_##call##_), NULL, PAWL_GIVEN_(args))
#define PAWL_GATHER_CALL_KEYED(call, key, args)                                                    \
    PAWL_SEQ_GATHER_CALL_(turn, PAWL_GATHERING_(pawl_call_##call##_), PAWL_GIVEN_(key),            \
                          PAWL_GIVEN_(args))
#define PAWL_GATHER_EXTERNAL(external, args)                                                       \
    PAWL_SEQ_GATHER_EXTERNAL_(turn, PAWL_GATHERING_(pawl_external_##external##_), PAWL_GIVEN_(args))
#define PAWL_GATHER_CHILD(child, input)                                                            \
    PAWL_SEQ_GATHER_CHILD_(turn, PAWL_GATHERING_(pawl_child_##child##_), PAWL_GIVEN_(input))
#define PAWL_WHICH pawl_seq_which(turn)

/* Start another instance, or signal one by its id, with the commit of this turn; does not wait, and
 * a refusal is in the log alone. The names are texts: they are those of other types. */
#define PAWL_START(definition, input)                                                              \
    PAWL_TURN_START_(turn, PAWL_GIVEN_(definition), PAWL_GIVEN_(input))
#define PAWL_SEND(instance, signal, payload)                                                       \
    PAWL_TURN_SEND_(turn, PAWL_GIVEN_(instance), PAWL_GIVEN_(signal), PAWL_GIVEN_(payload))

/* A struct of PAWL_STRUCT as JSON, for arguments: PAWL_JSON(line, &self->line), and in C
 * PAWL_JSON(line, &(struct line){ .sku = "a", .count = 2 }). */
#define PAWL_JSON(struct_, pointer)                                                                \
    PAWL_TURN_JSON_(turn, struct_##_fields_(), (const struct struct_ *)(pointer))

/* From now on a broadcast of the signal reaches this instance with this value (JSON) as its filter,
 * or without a filter; does not wait. Said again with another value: with either. NULL takes all of
 * them back, PAWL_UNSUBSCRIBE one. While it does not await the signal it is reached only if the
 * signal is `buffered`. */
#define PAWL_SUBSCRIBE(signal, value)                                                              \
    PAWL_SEQ_SUBSCRIBE_(turn, (unsigned)pawl_signal_##signal##_, PAWL_GIVEN_(value))
#define PAWL_UNSUBSCRIBE(signal, value)                                                            \
    PAWL_SEQ_UNSUBSCRIBE_(turn, (unsigned)pawl_signal_##signal##_, PAWL_GIVEN_(value))
#define PAWL_ERROR pawl_seq_error(turn)

/* ---- What the compiler is asked to refuse -------------------------------- */

/* An await needs PAWL_BEGIN above it. clang stops at the first without; others report it first. */
#if defined(__clang__) && !defined(__cplusplus)
#define PAWL_BEGINNING_ struct PAWL_BEGIN_is_missing_;
#define PAWL_BEGUN_                                                                                \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic fatal \"-Wvisibility\"")            \
    typedef void pawl_has_begun_(struct PAWL_BEGIN_is_missing_ *) __attribute__((unused));         \
    _Pragma("clang diagnostic pop")
#else
#define PAWL_BEGINNING_ enum { PAWL_BEGIN_is_missing_ };
#define PAWL_BEGUN_ (void)PAWL_BEGIN_is_missing_;
#endif
/* A place that the list does not have is an error by its name, and needs no warning besides. */
#if defined(__GNUC__)
#define PAWL_OF_THE_LIST_ __attribute__((unused))
#else
#define PAWL_OF_THE_LIST_
#endif

/* From the head of the code to PAWL_END a local that would have to live across an await is an
 * error, where the compiler can tell; to C++ it is one anyway. -Wshadow would mind a select inside
 * of a select, and -Wdeclaration-after-statement what PAWL_ONCE_ declares. (gcc 12 has a slip:
 * asked for this once, it gives the notes of -Wjump-misses-init, without the warning, to functions
 * below that jump over an initialization.) */
#if defined(__clang__)
#define PAWL_STRICT_                                                                               \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic error \"-Wuninitialized\"")         \
    _Pragma("clang diagnostic error \"-Wsometimes-uninitialized\"")                                \
    _Pragma("clang diagnostic warning \"-Wconditional-uninitialized\"")                            \
    _Pragma("clang diagnostic ignored \"-Wshadow\"")                                               \
    _Pragma("clang diagnostic ignored \"-Wdeclaration-after-statement\"")
#define PAWL_EASY_ _Pragma("clang diagnostic pop")
#define PAWL_FOLLOWED_
#elif defined(__GNUC__)
#define PAWL_STRICT_                                                                               \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wuninitialized\"")             \
    _Pragma("GCC diagnostic error \"-Wmaybe-uninitialized\"")                                      \
    _Pragma("GCC diagnostic ignored \"-Wshadow\"") PAWL_NO_JUMPS_
#define PAWL_EASY_ _Pragma("GCC diagnostic pop")
#else
#define PAWL_STRICT_
#define PAWL_EASY_
#define PAWL_FOLLOWED_
#endif

/* gcc looks late for uses of what has no value, and before that its conditional constant
 * propagation makes a constant of such a use: a counter that is lost across an await is 0 each time
 * then, without a word. So that pass does not run for code; others do most of the same. Without
 * optimization gcc looks at sure uses alone, so code is optimized for debugging then (-Og). */
#if defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ < 12
#define PAWL_FOLLOWED_
#elif defined(__OPTIMIZE__)
#define PAWL_FOLLOWED_ __attribute__((optimize("no-tree-ccp")))
#else
#define PAWL_FOLLOWED_ __attribute__((optimize("Og", "no-tree-ccp")))
#endif
#endif

#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
#define PAWL_NO_JUMPS_                                                                             \
    _Pragma("GCC diagnostic error \"-Wjump-misses-init\"")                                         \
    _Pragma("GCC diagnostic ignored \"-Wdeclaration-after-statement\"")
#else
#define PAWL_NO_JUMPS_
#endif

/* Where a line of the list has lost its backslash, the lines below it are text between functions,
 * and what a compiler drops to go on from there ends with the next semicolon: this declaration.
 * Without it gcc finds no head of the code, says so, and passes over the code, which lacks half of
 * its names; so does g++, by the type that the functions return; clang stops. */
#define PAWL_WHOLE_(type_) type_##_if_no_backslash_is_missing_
#define PAWL_TURN_OF_(type_) pawl_turn
#define PAWL_VOID_OF_(type_) void
#if defined(__clang__) && !defined(__cplusplus)
#define PAWL_LIST_IS_WHOLE_(type_)                                                                 \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic fatal \"-Wvisibility\"")            \
    struct type_##_if_no_backslash_is_missing_;                                                    \
    void type_##_list_(struct type_##_if_no_backslash_is_missing_ *);                              \
    _Pragma("clang diagnostic pop")
#elif defined(__clang__)
#define PAWL_LIST_IS_WHOLE_(type_)                                                                 \
    char(&pawl_whole_(struct type_ *))[2];                                                         \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic fatal \"-Wuser-defined-warnings\"") \
    inline void type_##_list_()                                                                    \
    {                                                                                              \
        pawl_list_is_whole_(sizeof(pawl_whole_((struct type_ *)0)) == 2);                          \
    }                                                                                              \
    _Pragma("clang diagnostic pop")
char pawl_whole_(...);
void pawl_list_is_whole_(bool is_whole) __attribute__((
    diagnose_if(!is_whole, "a line of the list above it has lost its backslash", "warning")));
#elif !defined(__GNUC__)
#define PAWL_LIST_IS_WHOLE_(type_)
#elif defined(__cplusplus)
#define PAWL_LIST_IS_WHOLE_(type_) typedef void PAWL_WHOLE_(type_);
#undef PAWL_VOID_OF_
#define PAWL_VOID_OF_(type_) PAWL_WHOLE_(type_)
#else
#define PAWL_LIST_IS_WHOLE_(type_) __attribute__((unused)) typedef pawl_turn PAWL_WHOLE_(type_);
#undef PAWL_TURN_OF_
#define PAWL_TURN_OF_(type_) PAWL_WHOLE_(type_)
#endif

/* ---- What the list becomes ---------------------------------------------- */

/* A type: the structs, the tables, and the head of the function that follows. `name()` is the
 * registration, for pawl_code_register() and PAWL_MODULE(). */
#define PAWL_CODE(type_, LIST)                                                                     \
    PAWL_NO_MORE_(LIST(PAWL_NOTHING_)) /* in both: clang shows every macro on the way */           \
    LIST(PAWL_NOTHING_) /* a parenthesis that is not closed swallows the rest here */              \
    PAWL_NO_WRONG_(LIST(PAWL_WORDS_))                                                              \
    PAWL_CODE_OF_(type_, #type_, LIST)
#define PAWL_CODE_AS(type_, text, LIST)                                                            \
    PAWL_NO_MORE_(LIST(PAWL_NOTHING_))                                                             \
    LIST(PAWL_NOTHING_)                                                                            \
    PAWL_NO_WRONG_(LIST(PAWL_WORDS_))                                                              \
    PAWL_CODE_OF_(type_, text, LIST)
#define PAWL_CODE_OF_(type_, text, LIST)                                                           \
    PAWL_LIST_IS_WHOLE_(type_)                                                                     \
    struct type_ {                                                                                 \
        bool pawl_none_;                                                                           \
        LIST(PAWL_MEMBER_)                                                                         \
    };                                                                                             \
    struct type_##_got {                                                                           \
        bool pawl_none_;                                                                           \
        LIST(PAWL_GOT_)                                                                            \
    };                                                                                             \
    struct type_##_result {                                                                        \
        bool pawl_none_;                                                                           \
        LIST(PAWL_RESULT_)                                                                         \
    };                                                                                             \
    static PAWL_VOID_OF_(type_) type_##_code_(PAWL_TURN_OF_(type_) *turn, struct type_ *self,      \
                                              const struct type_##_got *got,                       \
                                              struct type_##_result *result) PAWL_FOLLOWED_;       \
    static PAWL_VOID_OF_(type_) type_##_handle_(void *context, pawl_turn *turn, void *state,       \
                                                const pawl_event *event)                           \
    {                                                                                              \
        struct type_##_result result = { .pawl_none_ = false };                                    \
                                                                                                   \
        (void)context;                                                                             \
        type_##_code_(turn, (struct type_ *)state, (const struct type_##_got *)event->value,       \
                     &result);                                                                     \
        pawl_seq_finish(turn, &result);                                                            \
    }                                                                                              \
    const pawl_code_type *type_(void);                                                             \
    const pawl_code_type *type_(PAWL_VOID_OF_(type_))                                              \
    {                                                                                              \
        typedef struct type_ pawl_self_;                                                           \
        typedef struct type_##_got pawl_got_;                                                      \
        typedef struct type_##_result pawl_result_;                                                \
        static const struct type_ initial = { .pawl_none_ = false, LIST(PAWL_FIRST_) };            \
        static const char *const timers[] = { LIST(PAWL_TIMER_) NULL };                            \
        static const char *const signals[] = { LIST(PAWL_SIGNAL_) NULL };                          \
        static const char *const calls[] = { LIST(PAWL_CALL_) NULL };                              \
        static const char *const externals[] = { LIST(PAWL_EXTERNAL_) NULL };                      \
        static const char *const children[] = { LIST(PAWL_CHILD_) NULL };                          \
        static const char *const buffered[] = { LIST(PAWL_BUFFERED_) NULL };                       \
        static const char *const phases[] = { LIST(PAWL_AWAIT_) NULL };                            \
        static const pawl_var vars[] = { LIST(PAWL_ROW_) PAWL_NO_ROW_ };                           \
        static const pawl_retry retries[] = { LIST(PAWL_RETRY_) { NULL, 0, 0, 0 } };               \
        static const pawl_no_retry no_retries[] = { LIST(PAWL_NO_RETRY_) { NULL, NULL } };         \
        static const pawl_rename renamed[] = { LIST(PAWL_RENAMED_) { NULL, NULL } };               \
        static const pawl_var payloads[] = { LIST(PAWL_GOT_ROW_) PAWL_NO_ROW_ };                   \
        static const pawl_var results[] = { LIST(PAWL_RESULT_ROW_) PAWL_NO_ROW_ };                 \
        static const pawl_code_type type = {                                                       \
            .name = text,                                                                          \
            LIST(PAWL_VERSIONED_)                                                                  \
            .timers = timers,                                                                      \
            .signals = signals,                                                                    \
            .calls = calls,                                                                        \
            .externals = externals,                                                                \
            .children = children,                                                                  \
            .buffered = buffered,                                                                  \
            .phases = phases,                                                                      \
            .vars = vars,                                                                          \
            .state_size = sizeof(pawl_self_),                                                      \
            .initial = &initial,                                                                   \
            .payloads = payloads,                                                                  \
            .payload_size = sizeof(pawl_got_),                                                     \
            .result = sizeof(pawl_result_) > sizeof(bool) ? results : NULL,                        \
            .handle = type_##_handle_,                                                             \
            LIST(PAWL_MIGRATED_)                                                                   \
            .renews = true,                                                                        \
            .renamed = renamed,                                                                    \
            .retries = retries,                                                                    \
            .no_retries = no_retries,                                                              \
        };                                                                                         \
                                                                                                   \
        return &type;                                                                              \
        PAWL_STRICT_                                                                               \
    }                                                                                              \
    static PAWL_VOID_OF_(type_) type_##_code_(PAWL_TURN_OF_(type_) *turn, struct type_ *self,      \
                                              const struct type_##_got *got,                       \
                                              struct type_##_result *result)

/* A struct that may be a part of others: `has(KIND, NAME...)` in its list, or `has(required, KIND,
 * NAME...)` for a member that what is sent may not lack. */
#define PAWL_STRUCT(name, LIST)                                                                    \
    PAWL_NO_MORE_(LIST(PAWL_NOTHING_))                                                             \
    struct name {                                                                                  \
        LIST(PAWL_PART_MEMBER_)                                                                    \
    };                                                                                             \
    static const pawl_var *name##_fields_(void)                                                    \
    {                                                                                              \
        typedef struct name pawl_self_;                                                            \
        static const pawl_var rows[] = { LIST(PAWL_PART_ROW_) PAWL_NO_ROW_ };                      \
                                                                                                   \
        return rows;                                                                               \
    }                                                                                              \
    struct name

#endif
