/* planted.h - deliberate defects, to prove that the checks have teeth. In an ordinary build
 * PLANTED() is the constant false; with -Dplanted_bugs=true the environment variable PAWL_BUG
 * names the one that is on. */
#ifndef PAWL_BASE_PLANTED_H
#define PAWL_BASE_PLANTED_H

#include <stdbool.h>

#define PLANTED_MAP(X)                                                                             \
    X(ACK_BEFORE_COMMIT, "a call is answered before its commit is asked for")                      \
    X(SEQUENCE_RESET, "an instance read from the store begins again at entry 1")                   \
    X(STALE_DECISION, "a decision is committed though its instance has moved on")                  \
    X(KEY_IGNORED, "an idempotency key is recorded, but not looked for")                           \
    X(TIMER_TWICE, "a due timer is delivered twice, and it is not checked that it is due")         \
    X(TERMINAL_LEFT, "it is not checked whether an instance has ended")                            \
    X(GUARD_UNASKED, "a guarded transition is taken though its guard was not asserted")            \
    X(GUARD_NOTED, "an asserted guard is recorded also where none is declared")                    \
    X(REASON_UNASKED, "a transition that wants a reason is taken without one")                     \
    X(CANCEL_ANY_END, "cancel takes a terminal state of another kind")                             \
    X(REFUSED_COUNTS, "a refused fire takes a sequence number")                                    \
    X(EXPECTED_IGNORED, "expected_sequence is not looked at")                                      \
    X(FIRED_TOO_EARLY, "a fired_at before the instance came to be is accepted")                    \
    X(CLOCK_FALLS, "the store's clock follows the wall clock back")                                \
    X(BEFORE_EXCLUSIVE, "fired_before leaves out the very moment it names")                        \
    X(CURSOR_SKIPS, "a list's next page leaves out its first row")                                 \
    X(ROOT_LEAVES_OUT, "a root covers all records of its commit but the first")                    \
    X(FLUSHED_TOO_FAR, "`flushed` is moved past rows that lag")                                    \
    X(TAIL_CUT, "an open does not read the last record of the tail")                               \
    X(INTERNED_TWICE, "it is not checked whether the store knows an actor already")                \
    X(OWNER_UNLOCKED, "an owner lets go of its lock")                                              \
    X(DISARM_LOST, "a timer that was disarmed keeps its row")                                      \
    X(SNAPSHOT_LATE, "a snapshot is filed under the entry after its own")                          \
    X(JOIN_EARLY, "a join begins though a branch can still arrive")                                \
    X(BRANCH_LAST, "of the conditions that hold the last one wins")                                \
    X(RETRY_UNCOUNTED, "a step that may not be tried again is")                                    \
    X(RETRY_NEVER_IGNORED, "an error is tried again though `never` lists it")                      \
    X(DOPAR_HASTY, "a dopar is settled by the first of its branches")                              \
    X(RESCUE_MISSED, "a try that fails goes past its rescue")                                      \
    X(ERROR_FORGOTTEN, "what went wrong is not put into the context")                              \
    X(UNDO_FORWARD, "compensations run in the order in which steps were done")                     \
    X(MAP_UNORDERED, "the results of a map are not in the order of its list")                      \
    X(ITEM_CUT, "an item of a map is over after the first of its steps")                           \
    X(ERROR_UNROUTED, "a graph's step that fails goes past its on_error")                          \
    X(FINALLY_SKIPPED, "a cancel goes past an open finally")                                       \
    X(FORWARD_STOPPED, "what is stopped begins its next step")                                     \
    X(END_UNTOLD, "the machine that started an instance never learns of its end")                  \
    X(RESULTS_WHOLE, "a flow keeps the whole results of its steps in memory")                      \
    X(LEASE_UNFENCED, "the lease of an answer is not checked")                                     \
    X(LEASE_BY_WALL, "leases are counted by a clock that may be set")                              \
    X(PLACE_LOST, "the place where code waits is not stored")                                      \
    X(DEFAULTS_ZERO, "a variable that the stored state does not have begins at zero")              \
    X(LOSERS_STAY, "timers that lost against the first event of a turn stay armed")                \
    X(REDUCE_KEPT, "a reduce that refuses is committed all the same")                              \
    X(TURN_WHILE_HELD, "the code of a paused instance handles an answer")                          \
    X(NO_FENCE, "a commit does not look at the epoch of its shard")                                \
    X(FENCE_EARLY, "a commit looks at the epoch of its shard before its transaction, not in it")   \
    X(LOOK_NOT_CLAIM, "after an unknown outcome the tip is read, and nothing is claimed")          \
    X(BLIND_RENEWAL, "a node beats on though it was declared dead")                                \
    X(STALE_READ, "a node trusts its memory though its lease has run out")

enum planted {
#define X(name, text) PLANTED_##name,
    PLANTED_MAP(X)
#undef X
        PLANTED_COUNT
};

#ifdef PAWL_PLANTED_BUGS
#define PLANTED(name) planted_is_on(PLANTED_##name)
#else
#define PLANTED(name) false
#endif

bool planted_is_on(enum planted bug);
bool planted_is_built(void);

#endif
