/* drain.pml - how a call becomes durable: queue, decision, batch, commit, acknowledgement; an
 * owner that dies, the one after it, and shared writers beside. One instance. README.md says what
 * is modelled and what is not; run_spin.py checks it, and that each twin below is rejected.
 *
 *   -DBUG_ACK_BEFORE_COMMIT  a caller is told before the commit is asked for
 *   -DBUG_STALE_DECISION     a decision is committed though the instance has gone on
 *   -DBUG_NO_TAIL            a shared writer believes the row that a dead owner left lagging
 *   -DBUG_NO_LOCK            a shared writer does not look whether somebody owns the store
 *   -DBUG_TWO_OWNERS         an owner does not look either
 *   -DBUG_KEEP_MEMORY        after a failed commit the owner goes on with what it believed */

#ifndef REQUESTS
#define REQUESTS 3
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef OWNERS
#define OWNERS 2
#endif
#define ANY 99    /* decided in the drain, against whatever is true then */
#define NOBODY 99

mtype = { NEW, QUEUED, TOLD_OK, TOLD_FAILED, TOLD_UNKNOWN, AGAIN, UNANSWERED };

/* The disk. A commit is one atomic step: that is what SQLite is trusted with. */
byte log_count;
byte log_request[REQUESTS]; /* whose entry it is */
byte log_seq[REQUESTS];     /* the number written into it */
byte row_seq;               /* the instance's row: may lag behind the log */

/* FILE-owner, an flock: a death releases it. And SQLite's turn to write. */
byte owner = NOBODY;
byte owners, sharers;
bool turn;

/* The owner's memory that others see: its queue, and the head its readers are shown. */
bool queued[REQUESTS];
byte shown_seq;

mtype fate[REQUESTS] = NEW;
byte expected[REQUESTS]; /* ANY, or the seq a decision was made against, before the drain */
byte deaths = DEATHS;
byte done;

/* Scratch, used within one atomic step only: no part of the state. */
hidden byte i, k, n, who, number, standing;

/* How often request r is in the log. */
inline count_of(r, out)
{
    out = 0;
    k = 0;
    do
    :: k < log_count -> out = out + (log_request[k] == r -> 1 : 0); k++
    :: else -> break
    od;
}

/* What must hold whenever the disk or a caller's knowledge has changed. */
inline check(r)
{
    count_of(r, n);
    assert(n <= 1);                              /* nothing is doubled */
    assert(fate[r] != TOLD_OK || n == 1);        /* acknowledged is durable */
    assert(fate[r] != TOLD_FAILED || n == 0);    /* refused is not there */
}

inline append(r, number, standing)
{
    assert(number == log_count + 1);             /* numbered 1..N without gaps */
    assert(standing == number - 1);              /* decided against what was true */
    log_request[log_count] = r;
    log_seq[log_count] = number;
    log_count++;
    check(r);
}

inline tell(r, what)
{
    fate[r] = what;
    check(r);
}

/* Where the instance stands: its row, then the tail of the log that is newer. */
inline read_head(out)
{
    out = row_seq;
    k = 0;
    do
    :: k < log_count -> out = (log_seq[k] > out -> log_seq[k] : out); k++
    :: else -> break
    od;
}

/* What is over is made equal, so that it is one state. */
inline forget_batch()
{
    i = 0;
    do
    :: i < batch_count -> batch[i] = 0; batch_seq[i] = 0; batch_against[i] = 0; i++
    :: else -> break
    od;
    batch_count = 0;
    pending = 0;
    outcome = 0;
}

/* ---- an owner: holds the file for life, keeps the head in memory, lets the row lag ---- */

proctype Owner(byte me)
{
    byte head, pending;
    byte batch_count, batch[REQUESTS], batch_seq[REQUESTS], batch_against[REQUESTS];
    mtype outcome;

take_over:
#ifdef BUG_TWO_OWNERS
    atomic { sharers == 0 && done < REQUESTS -> owner = me; owners++; assert(owners == 1) }
#else
    atomic {
        if
        :: owner == NOBODY && sharers == 0 -> owner = me; owners++; assert(owners == 1)
        :: done == REQUESTS -> goto finished
        fi
    }
#endif
    d_step { read_head(head); shown_seq = head; }

    do
    :: atomic {
           (queued[0] || queued[1] || queued[REQUESTS - 1]) -> /* take all that waits, decide */
           pending = head;
           batch_count = 0;
           i = 0;
           do
           :: i < REQUESTS ->
                  if
                  :: queued[i] ->
                         queued[i] = false;
#ifndef BUG_STALE_DECISION
                         if
                         :: expected[i] != ANY && expected[i] != pending -> fate[i] = AGAIN
                         :: else ->
#endif
                                batch[batch_count] = i;
                                batch_seq[batch_count] = pending + 1;
                                batch_against[batch_count] = (expected[i] == ANY -> pending : expected[i]);
                                batch_count++;
                                pending++;
#ifndef BUG_STALE_DECISION
                         fi
#endif
                  :: else
                  fi;
                  i++
           :: else -> break
           od
       };
#ifdef BUG_ACK_BEFORE_COMMIT
       d_step { i = 0; do :: i < batch_count -> who = batch[i]; tell(who, TOLD_OK); i++ :: else -> break od };
#endif
       if
       :: deaths > 0 -> goto dead /* before the commit */
       :: true
       fi;
       atomic {
           !turn ->
           if
           :: outcome = TOLD_OK
           :: outcome = TOLD_FAILED  /* before COMMIT was asked for: nothing is written */
           :: outcome = TOLD_UNKNOWN /* out of COMMIT: written, or not */
           fi;
           if
           :: outcome != TOLD_FAILED ->
                  i = 0;
                  do
                  :: i < batch_count ->
                         who = batch[i]; number = batch_seq[i]; standing = batch_against[i];
                         append(who, number, standing); i++
                  :: else -> break
                  od;
                  if
                  :: true
                  :: row_seq = pending /* a sweep goes along, or does not */
                  fi
           :: outcome != TOLD_OK
           fi
       };
       if
       :: deaths > 0 -> goto dead /* after the commit, before anybody is told */
       :: true
       fi;
       d_step {
           if
           :: outcome == TOLD_OK -> head = pending
#ifdef BUG_KEEP_MEMORY
           :: else -> head = pending
#else
           :: else -> read_head(head) /* start_over(): forget, reopen, replay */
#endif
           fi;
           shown_seq = head;
           i = 0;
           do
           :: i < batch_count -> who = batch[i]; tell(who, outcome); i++
           :: else -> break
           od;
           forget_batch()
       }
    :: row_seq != head -> row_seq = head /* idle: rows are put right */
    :: deaths > 0 -> goto dead
    :: atomic { done == REQUESTS -> row_seq = head; owner = NOBODY; owners--; goto finished }
    od;

dead: /* the lock goes with the process, and so does everything in its memory */
    skip;
    d_step {
        deaths--;
        owner = NOBODY;
        owners--;
        i = 0;
        do
        :: i < REQUESTS ->
               if
               :: fate[i] == QUEUED -> queued[i] = false; fate[i] = UNANSWERED; check(i)
               :: else
               fi;
               i++
        :: else -> break
        od;
        forget_batch();
        head = 0;
        shown_seq = 0
    };
    goto take_over;

finished:
    skip
}

/* ---- a caller: through the owner if there is one, else by itself, sharing the file ---- */

proctype Caller(byte r)
{
    byte head;
    bool ahead;
    mtype outcome;

#ifdef AHEAD
    ahead = (r < AHEAD); /* callers are alike: how many decide ahead is all that matters */
#else
    if
    :: ahead = false /* a machine: decided in the drain */
    :: ahead = true  /* a flow or code: decided before it, against what is shown now */
    fi;
#endif
    expected[r] = ANY;

decide:
    if
    :: atomic { /* the queue of the owner */
           owner != NOBODY ->
           expected[r] = (ahead -> shown_seq : ANY);
           fate[r] = NEW
       };
       if
       :: atomic { owner != NOBODY -> fate[r] = QUEUED; queued[r] = true }
       :: atomic { owner == NOBODY -> goto decide }
       fi;
       (fate[r] != QUEUED);
       if
       :: fate[r] == AGAIN -> goto decide
       :: else -> goto told
       fi
#ifdef BUG_NO_LOCK
    :: true ->
#else
    :: owner == NOBODY ->
#endif
       if
       :: ahead -> d_step { read_head(head); expected[r] = head }
       :: else -> expected[r] = ANY
       fi;
#ifdef BUG_NO_LOCK
       sharers++;
#else
       if
       :: atomic { owner == NOBODY -> sharers++ }
       :: atomic { owner != NOBODY -> goto decide } /* in-use: go through it */
       fi;
       assert(owner == NOBODY);
#endif
       atomic { !turn -> turn = true }; /* BEGIN IMMEDIATE; only now is what we read still true */
#ifdef BUG_NO_TAIL
       head = row_seq;
#else
       d_step { read_head(head) };
#endif
#ifndef BUG_STALE_DECISION
       if
       :: atomic {
              ahead && expected[r] != head -> turn = false; sharers--;
              goto decide
          }
       :: else
       fi;
#endif
#ifdef BUG_ACK_BEFORE_COMMIT
       d_step { tell(r, TOLD_OK) };
#endif
       if
       :: atomic { deaths > 0 -> deaths--; turn = false; sharers--; fate[r] = UNANSWERED; goto told }
       :: true
       fi;
       atomic {
           if
           :: outcome = TOLD_OK
           :: outcome = TOLD_FAILED
           :: outcome = TOLD_UNKNOWN
           fi;
           if
           :: outcome != TOLD_FAILED ->
                  number = head + 1;
                  standing = (ahead -> expected[r] : head);
                  append(r, number, standing);
                  row_seq = head + 1 /* nothing lags where nobody owns */
           :: outcome != TOLD_OK
           fi
       };
       if
       :: atomic { deaths > 0 -> deaths--; turn = false; sharers--; fate[r] = UNANSWERED; goto told }
       :: d_step { true -> turn = false; sharers--; tell(r, outcome) }
       fi
    fi;

told:
    skip;
    d_step { head = 0; expected[r] = ANY; outcome = 0; check(r); done++ }
}

/* At the end everything that was told is still true, and the row has caught up or can. */
proctype Auditor()
{
    byte r, head;

    atomic {
        done == REQUESTS && owner == NOBODY ->
        r = 0;
        do
        :: r < REQUESTS -> check(r); r++
        :: else -> break
        od;
        read_head(head);
        assert(head == log_count);
        assert(row_seq <= head)
    }
}

init
{
    atomic {
        i = 0;
        do
        :: i < REQUESTS -> run Caller(i); i++
        :: else -> break
        od;
        run Owner(1);
#if OWNERS > 1
        run Owner(2);
#endif
        run Auditor()
    }
}
