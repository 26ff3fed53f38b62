/* lease.pml - a step that workers elsewhere claim: lease, expiry, late and repeated answers; an
 * owner that dies and the one after it; commits that fail or whose outcome is not known. One step
 * with a few attempts. README.md says what is modelled; run_spin.py checks it, and that each twin
 * below is rejected.
 *
 *   -DBUG_HAND_OUT_EARLY  a worker gets the step before its start is durable
 *   -DBUG_NO_RECHECK      the decision trusts that the lease was held when the answer came
 *   -DBUG_ANY_LEASE       an answer is taken whoever's lease it shows
 *   -DBUG_LOST_AT_RESTART the next owner takes what a worker elsewhere holds for lost
 *   -DBUG_NO_SECOND_LOOK  after a commit that failed nobody looks what became of the step
 *   -DBUG_TIMEOUT_DROPPED an expiry that met a failing store is forgotten */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define NO_LEASE 0

mtype = { READY, RUNNING, DONE, FAILED };           /* the step's row */
mtype = { NOTHING, COMPLETED, TIMED_OUT };          /* what the history says of an attempt */
mtype = { QUIET, CLAIM, ANSWER, CHECKED,            /* what a worker asks */
          TOLD_OK, TOLD_LOST, TOLD_NOTHING, TOLD_FAILED }; /* and hears; NOTHING: there is no step */

/* The disk. A commit is one atomic step. */
mtype row = READY;
byte attempt = 0;                   /* from 0 */
byte row_lease = NO_LEASE;
mtype outcome[ATTEMPTS] = NOTHING;
byte answered_by[ATTEMPTS];         /* whose lease its result came with */

/* The owner's memory. */
bool is_up;
bool queued;                        /* the step waits for whoever claims it */
byte watched = NO_LEASE;            /* the lease that may still run out */
byte watched_attempt;
bool timeout_waits;                 /* it has run out; telling the instance met a failing store */
byte timeout_attempt;
bool must_look;                     /* ready_lost: what became of the step is looked up */

/* The workers, elsewhere. */
mtype call[WORKERS] = QUIET;
byte lease[WORKERS] = NO_LEASE;
byte mine[WORKERS];                  /* the attempt that was handed out with it */
bool has_asked[WORKERS];            /* an answer may have been recorded already */
byte gone;

byte leases;                        /* tokens made so far: never reused */
byte holders[ATTEMPTS];             /* to how many an attempt was handed out */
bool has_expired[ATTEMPTS];
byte deaths = DEATHS, faults = FAULTS;

hidden byte w, fresh;

/* What must hold whenever the disk changes. */
inline record(what, by)
{
    assert(outcome[attempt] == NOTHING);                 /* a result is recorded once */
    assert(what != TIMED_OUT || has_expired[attempt]);   /* a death ends nobody's lease elsewhere */
    assert(what != COMPLETED || by == row_lease);        /* only the holder's answer counts */
    outcome[attempt] = what;
    answered_by[attempt] = by;
    row_lease = NO_LEASE
}

inline record_result(by)
{
    record(COMPLETED, by);
    row = DONE
}

inline record_timeout()
{
    record(TIMED_OUT, NO_LEASE);
    if
    :: attempt + 1 < ATTEMPTS -> attempt++; row = READY
    :: else -> row = FAILED
    fi
}

inline start(with)
{
    assert(row == READY);
    row = RUNNING;
    row_lease = with
}

/* A commit's outcome: done; failed, nothing is written; or not known, and written or not. */
inline commit(is_written, is_done)
{
    if
    :: is_written = true; is_done = true
    :: faults > 0 -> faults--; is_written = false; is_done = false
    :: faults > 0 -> faults--; is_written = true; is_done = false
    fi
}

/* recover_instance(): a ready one waits, a running one is watched. */
inline look()
{
    if
    :: row == READY -> queued = true
    :: row == RUNNING && watched != row_lease ->
           watched = row_lease; watched_attempt = attempt
    :: else
    fi
}

inline tell_claim(who, with, which)
{
    assert(holders[which] == 0); /* one attempt, one worker */
    holders[which]++;
    lease[who] = with;
    mine[who] = which;
    has_asked[who] = false;
    call[who] = TOLD_OK
}

proctype Owner()
{
    bool is_written, is_done;

take_over:
    atomic { /* engine_open(): what was in memory is gone, the row tells */
        is_up = true; queued = false; watched = NO_LEASE; timeout_waits = false; must_look = false;
#ifdef BUG_LOST_AT_RESTART
        if
        :: row == RUNNING -> record_timeout()
        :: else
        fi;
#endif
        look()
    };

    do
    /* step.claim */
    :: atomic {
           (call[0] == CLAIM || call[WORKERS - 1] == CLAIM) ->
           w = (call[0] == CLAIM -> 0 : WORKERS - 1);
           if
           :: !queued || row != READY -> call[w] = TOLD_NOTHING
           :: else ->
                  queued = false;
                  leases++;
                  fresh = leases;
#ifdef BUG_HAND_OUT_EARLY
                  tell_claim(w, fresh, attempt);
#endif
                  commit(is_written, is_done);
                  if
                  :: is_written -> start(fresh)
                  :: else
                  fi;
                  if
                  :: is_done ->
                         if
                         :: deaths > 0 -> is_written = false; is_done = false; goto dead
                         :: true
                         fi;
                         watched = fresh; watched_attempt = attempt;
#ifndef BUG_HAND_OUT_EARLY
                         tell_claim(w, fresh, attempt)
#endif
                  :: else ->
#ifndef BUG_HAND_OUT_EARLY
                         call[w] = TOLD_FAILED;
#endif
#ifndef BUG_NO_SECOND_LOOK
                         must_look = true
#else
                         skip
#endif
                  fi
           fi;
           is_written = false; is_done = false
       }
    /* step.complete: is the lease held? */
    :: atomic {
           (call[0] == ANSWER || call[WORKERS - 1] == ANSWER) ->
           w = (call[0] == ANSWER -> 0 : WORKERS - 1);
           if
#ifdef BUG_ANY_LEASE
           :: true -> call[w] = CHECKED
#else
           :: watched == lease[w] && watched_attempt == mine[w] -> call[w] = CHECKED
#endif
           :: else ->
                  assert(has_asked[w] || outcome[mine[w]] != COMPLETED || answered_by[mine[w]] != lease[w]);
                  call[w] = TOLD_LOST
           fi
       }
    /* and then the decision, in the drain, against what is true then */
    :: atomic {
           (call[0] == CHECKED || call[WORKERS - 1] == CHECKED) ->
           w = (call[0] == CHECKED -> 0 : WORKERS - 1);
           if
#ifndef BUG_NO_RECHECK
#ifdef BUG_ANY_LEASE
           :: row != RUNNING -> call[w] = TOLD_LOST
#else
           :: row != RUNNING || attempt != mine[w] -> call[w] = TOLD_LOST
#endif
#endif
           :: else ->
                  commit(is_written, is_done);
                  has_asked[w] = true;
                  if
                  :: is_written -> record_result(lease[w])
                  :: else
                  fi;
                  if
                  :: deaths > 0 -> is_written = false; is_done = false; goto dead
                  :: true
                  fi;
                  call[w] = (is_done -> TOLD_OK : TOLD_FAILED);
                  must_look = must_look || !is_done
           fi;
           is_written = false; is_done = false
       }
    /* a lease runs out */
    :: atomic {
           watched != NO_LEASE ->
           has_expired[watched_attempt] = true;
           timeout_waits = true;
           timeout_attempt = watched_attempt;
           watched = NO_LEASE
       }
    /* and its instance is told, until that is recorded */
    :: atomic {
           timeout_waits ->
           if
           :: row != RUNNING || attempt != timeout_attempt -> timeout_waits = false
           :: else ->
                  commit(is_written, is_done);
                  if
                  :: is_written -> record_timeout()
                  :: else
                  fi;
#ifdef BUG_TIMEOUT_DROPPED
                  timeout_waits = false;
#else
                  timeout_waits = !is_done;
#endif
                  queued = is_done && row == READY;
                  must_look = must_look || (is_written && !is_done)
           fi;
           is_written = false; is_done = false
       }
    :: atomic { must_look -> must_look = false; look() }
    :: deaths > 0 -> goto dead
    :: atomic { /* at rest, nothing is forgotten */
           is_up && !must_look && !timeout_waits && gone == WORKERS ->
           assert(row != READY || queued);
           assert(row != RUNNING || watched == row_lease);
           goto finished
       }
    od;

dead:
    atomic {
        deaths--;
        is_up = false; queued = false; watched = NO_LEASE; timeout_waits = false; must_look = false;
        w = 0;
        do
        :: w < WORKERS ->
               call[w] = (call[w] == CLAIM || call[w] == ANSWER || call[w] == CHECKED -> TOLD_FAILED : call[w]);
               w++
        :: else -> break
        od
    };
    goto take_over;

finished:
    skip
}

/* A worker claims, works for as long as it likes, answers, answers again if it has not heard; or
 * goes away for good at any moment. */
proctype Worker(byte me)
{
    do
    :: lease[me] == NO_LEASE && row != DONE && row != FAILED ->
           call[me] = CLAIM;
           (call[me] != CLAIM);
           if
           :: call[me] == TOLD_OK
           :: atomic { call[me] != TOLD_OK -> call[me] = QUIET }
           fi
    :: lease[me] != NO_LEASE ->
           call[me] = ANSWER;
           (call[me] != ANSWER && call[me] != CHECKED);
           if
           :: atomic {
                  call[me] == TOLD_OK ->
                  assert(outcome[mine[me]] == COMPLETED && answered_by[mine[me]] == lease[me]);
                  lease[me] = NO_LEASE
              }
           :: atomic { call[me] == TOLD_LOST -> lease[me] = NO_LEASE }
           :: atomic { call[me] == TOLD_FAILED -> has_asked[me] = true } /* again, with the same lease */
           fi;
           call[me] = QUIET
    :: break
    od;
    skip;
    d_step { call[me] = QUIET; lease[me] = NO_LEASE; mine[me] = 0; has_asked[me] = false; gone++ }
}

init
{
    atomic {
        run Owner();
        w = 0;
        do
        :: w < WORKERS -> run Worker(w); w++
        :: else -> break
        od
    }
}
