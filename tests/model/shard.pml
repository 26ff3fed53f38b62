/* shard.pml - one shard, its row in the database, nodes that own it in turn.
 *
 * The row holds (epoch, owner, pos). A commit is one transaction: it takes the row's lock, checks
 * epoch and pos, appends, and ends. It travels: between sending and ending there may be a cut, a
 * death or a stop of its sender, and the transaction still runs (a zombie). A node that does not
 * know how its commit ended claims the shard again, which takes the same lock.
 *
 * Held: what was acknowledged is in the log for ever, at one place (no loss, no double); what was answered with
 * "failed, nothing happened" is not there; positions have one writer (no fork); what a node answers
 * from its memory is not older than what was acknowledged before it was asked.
 *
 *   -DBUG_NO_FENCE        the commit does not look at the epoch (only the node's own belief counts)
 *   -DBUG_NO_BUMP         after an unknown outcome the tip is read, the epoch stays
 *   -DBUG_FENCE_OUTSIDE   the epoch is looked at before the transaction, not in it
 *   -DBUG_READ_NO_LEASE   reads are answered from memory whether the lease holds or not
 *   -DBUG_RENEW_BLIND     a lease that has run out is renewed by its holder, whether another has claimed meanwhile or not
 *   -DBUG_ACK_EARLY       the caller is answered before the transaction has ended
 */
#ifndef NODES
#define NODES 2
#endif
#ifndef OPS
#define OPS 3
#endif
#ifndef CUTS
#define CUTS 2
#endif
#ifndef TAKES
#define TAKES 3
#endif
#define NO_ONE 9

/* ---- the database ---- */
byte epoch = 0, owner = NO_ONE, pos = 0;
byte log_op[OPS + 2];            /* which call stands at each position; 0: none */
byte lock = NO_ONE;              /* who holds the row: a transaction's number */
byte lease_of = NO_ONE;          /* whose lease has not run out, by the database's clock */

/* ---- transactions under way: at most one of each node ---- */
mtype = { NONE, SENT, LOCKED, DONE, REFUSED };
mtype tx[NODES] = NONE;
byte tx_epoch[NODES], tx_pos[NODES], tx_op[NODES];
bool tx_heard[NODES];            /* its sender still listens */

/* ---- the calls ---- */
mtype = { NEW, ASKED, OK, FAILED, UNKNOWN };
mtype call[OPS + 1] = NEW;
byte cuts = CUTS, takes = TAKES;
byte acked = 0;                  /* how many calls were acknowledged */
byte placed[OPS + 1];            /* how often a call stands in the log */

inline append(n)
{
    d_step {
        assert(tx_pos[n] == pos);
        log_op[pos] = tx_op[n];
        placed[tx_op[n]]++;
        assert(placed[tx_op[n]] == 1);
        assert(call[tx_op[n]] != FAILED);   /* no caller was told that nothing had happened */
        pos++
    }
}

/* The database runs what was sent, whether its sender lives or not. */
proctype Database()
{
    byte n;
    do
    :: atomic { tx[0] == SENT && lock == NO_ONE -> lock = 0; tx[0] = LOCKED }
    :: atomic { tx[1] == SENT && lock == NO_ONE -> lock = 1; tx[1] = LOCKED }
    :: atomic { (tx[0] == LOCKED || tx[1] == LOCKED) ->
           n = (tx[0] == LOCKED -> 0 : 1);
           if
#if defined(BUG_NO_FENCE)
           :: tx_pos[n] == pos -> append(n); tx[n] = DONE
           :: tx_pos[n] != pos -> tx[n] = REFUSED
#elif defined(BUG_FENCE_OUTSIDE)
           :: tx_pos[n] == pos -> append(n); tx[n] = DONE
           :: tx_pos[n] != pos -> tx[n] = REFUSED
#else
           :: tx_epoch[n] == epoch && tx_pos[n] == pos -> append(n); tx[n] = DONE
           :: !(tx_epoch[n] == epoch && tx_pos[n] == pos) -> tx[n] = REFUSED
#endif
           /* its server dies before COMMIT: it is rolled back */
           :: cuts > 0 -> cuts--; tx[n] = REFUSED; tx_heard[n] = false
           fi;
           lock = NO_ONE;
           if :: !tx_heard[n] -> tx[n] = NONE :: else fi
       }
    /* a lease runs out: it may be while its holder is stopped */
    :: atomic { lease_of != NO_ONE && takes > 0 -> lease_of = NO_ONE }
    /* cut: a sender does not hear how it ends */
    :: atomic { cuts > 0 && (tx[0] == SENT || tx[0] == LOCKED || tx[0] == DONE || tx[0] == REFUSED) && tx_heard[0] ->
           cuts--; tx_heard[0] = false;
           if :: tx[0] == DONE || tx[0] == REFUSED -> tx[0] = NONE :: else fi }
    :: atomic { cuts > 0 && (tx[1] == SENT || tx[1] == LOCKED || tx[1] == DONE || tx[1] == REFUSED) && tx_heard[1] ->
           cuts--; tx_heard[1] = false;
           if :: tx[1] == DONE || tx[1] == REFUSED -> tx[1] = NONE :: else fi }
    od
}

proctype Node(byte me)
{
    byte my_epoch = 0, my_pos = 0, op = 0, seen, floor, i;
    bool owns = false;

idle:
    do
    /* claim: no lease holds. It waits for the row's lock, as any UPDATE does. */
    :: atomic { !owns && takes > 0 && lease_of == NO_ONE && lock == NO_ONE ->
           takes--; epoch++; owner = me; lease_of = me;
           my_epoch = epoch; my_pos = pos; owns = true }
    /* a call */
    :: owns && tx[me] == NONE ->
           atomic {
               i = 1;
               do
               :: i <= OPS && call[i] != NEW -> i++
               :: else -> break
               od;
               if
               :: i > OPS -> goto rest
               :: else -> op = i; call[op] = ASKED
               fi
           };
#ifdef BUG_FENCE_OUTSIDE
           if
           :: epoch == my_epoch
           :: epoch != my_epoch -> atomic { call[op] = FAILED; owns = false; goto idle }
           fi;
#endif
           atomic {
               tx_epoch[me] = my_epoch; tx_pos[me] = my_pos; tx_op[me] = op; tx_heard[me] = true;
               tx[me] = SENT
#ifdef BUG_ACK_EARLY
               ; call[op] = OK; acked++
#endif
           };
           if
           :: atomic { tx_heard[me] && tx[me] == DONE ->
                  tx[me] = NONE; my_pos++;
#ifndef BUG_ACK_EARLY
                  call[op] = OK; acked++
#endif
              }
           :: atomic { tx_heard[me] && tx[me] == REFUSED ->
                  tx[me] = NONE; owns = false;
                  call[op] = FAILED }
           :: atomic { !tx_heard[me] -> goto unknown }
           fi
    /* renewing: only a lease that still holds; else this node's time is over */
    :: atomic { owns && tx[me] == NONE && lease_of != me ->
#ifdef BUG_RENEW_BLIND
           lease_of = me
#else
           owns = false
#endif
       }
    /* a read, from memory: what was acknowledged before it was asked has to be in it */
    :: owns && tx[me] == NONE ->
           floor = acked;
           seen = my_pos;
           if
#ifdef BUG_READ_NO_LEASE
           :: assert(seen >= floor)
#else
           :: atomic { lease_of == me -> assert(seen >= floor) }
           :: lease_of != me
#endif
           fi
    :: goto rest
    od;

unknown:
#ifdef BUG_NO_BUMP
    atomic { /* look where the log ends, and believe it */
        my_pos = pos;
        if
        :: pos > 0 && log_op[pos - 1] == op -> call[op] = OK; acked++
        :: else -> call[op] = FAILED
        fi;
        owns = (epoch == my_epoch);
        goto idle
    };
#else
    /* claim again if it is still ours: the lock is waited for, and what was under way has ended then */
    if
    :: atomic { lock == NO_ONE && epoch == my_epoch ->
           epoch++; my_epoch = epoch; my_pos = pos;
           if
           :: pos > 0 && log_op[pos - 1] == op -> call[op] = OK; acked++
           :: else -> call[op] = FAILED
           fi;
           goto idle }
    :: atomic { epoch != my_epoch -> call[op] = UNKNOWN; owns = false; goto idle }
    fi;
#endif
rest:
    skip
}

init { atomic { run Database(); run Node(0); run Node(1) } }

/* At every end: what was acknowledged stands in the log once. */
#define HELD (call[1] != OK || placed[1] == 1) && (call[2] != OK || placed[2] == 1) && (call[3] != OK || placed[3] == 1)
ltl held { [] (HELD) }
