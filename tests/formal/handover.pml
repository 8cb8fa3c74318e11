/* Handover: revoke, acknowledge, grant. Two slots, two workers, two coordinators.
 *
 * What stands here                what it is in the product
 *   epoch, owner, to, since         the assignment znode: core/ringcron/assignment.py
 *   live, incarnation, acked        the workers' ephemeral nodes: core/ringcron/members.py
 *   Leader                          coordinator/ringcron_coordinator/leader.py: look, then one publish that ZooKeeper
 *                                   refuses unless the writer leads and the version is the one that was read
 *   Step                            handover._step: free ──plan──▶ owned ──▶ in transit ──acked──▶ owned by another
 *   passed over                     settling.Patience: after the bound, which is never less than a proof lasts
 *   Reader                          slice_holder._follow, _apply: hold what the assignment says, nothing below acked
 *   Acker                           slice_holder._follow: acknowledge once no older claim is in flight
 *   Claimer                         claimer._claim_in_slice inside holder.claiming()
 *   proven                          slice_holder._proven: ends by itself, before the server can end the session
 *   Faults                          a proof that runs out, a session that ends, a worker that registers again, a
 *                                   coordinator that is deposed, perhaps in the middle of a step
 *
 * Left out: how a plan is made (here: slot s goes to worker s, or to who is there), lost assignments and their lineage
 * (tests/unit/test_handover_histories.py), time.
 *
 * Safety: no slot has two holders who are proven, and, where nobody was passed over or gone, no proven holder meets a
 * claim of another. Liveness: once faults have ended every slot comes to a live owner who holds it, and stays there.
 * A counter-example must be found with each of
 *   -DNO_ACK     granted before the acknowledgement       -DEARLY      passed over while still proven
 *   -DNO_CHECK   a deposed leader's write is accepted     -DNO_PROOF   held as proven until something else is read
 */

#ifndef FAULTS
#define FAULTS 2
#endif
#define NOBODY 255

byte epoch = 0;
byte owner[2] = NOBODY;         /* worker + 2 * incarnation */
byte to[2] = NOBODY;
byte since[2];                  /* in transit since that epoch; 0: not */

bool live[2] = true;
byte incarnation[2];
byte acked[2];                  /* in its node */

bool proven[2];
byte applied[2];
bool holds[4];                  /* worker * 2 + slot */
bool claiming[4];               /* a claim in flight, begun as the owner */

bool unwaited;                  /* a claim in flight may not have been waited for: its owner was passed over, or gone */
byte leading = 0;
byte faults = FAULTS;

#define me(w)     (w + 2 * incarnation[w])
#ifdef NO_PROOF
#define believes(w)  (applied[w] > 0)
#else
#define believes(w)  proven[w]
#endif

inline Check() {
    assert(!(believes(0) && believes(1) && holds[0] && holds[2]));
    assert(!(believes(0) && believes(1) && holds[1] && holds[3]));
    assert(unwaited || !(believes(0) && believes(1) && (claiming[0] && holds[2] || claiming[2] && holds[0])));
    assert(unwaited || !(believes(0) && believes(1) && (claiming[1] && holds[3] || claiming[3] && holds[1])))
}

/* What the leader saw: a0/a1 acknowledged, m0/m1 the live incarnations (NOBODY: none). Slot s of the assignment. */
inline Step(s) {
    target = (s == 0 -> (m0 != NOBODY -> m0 : m1) : (m1 != NOBODY -> m1 : m0));
    if
    :: owner[s] == NOBODY || owner[s] == target || (owner[s] != m0 && owner[s] != m1) -> free = true
    :: else ->
#ifdef NO_ACK
        free = since[s] > 0
#else
        free = since[s] > 0 && ((owner[s] == m0 && a0 >= since[s]) || (owner[s] == m1 && a1 >= since[s]));
#endif
        if
#ifdef EARLY
        :: !free && since[s] > 0 -> free = true; unwaited = true
#else
        :: !free && since[s] > 0 && !proven[owner[s] % 2] -> free = true; unwaited = true
#endif
        :: true
        fi
    fi;
    if
    :: free && owner[s] == target && since[s] == 0
    :: free && !(owner[s] == target && since[s] == 0) ->
        owner[s] = target; to[s] = NOBODY; since[s] = 0; changed = true
    :: !free && since[s] > 0 && to[s] == target
    :: !free && !(since[s] > 0 && to[s] == target) ->
        to[s] = target; since[s] = (since[s] > 0 -> since[s] : epoch + 1); changed = true
    fi
}

proctype Leader(byte id) {
    byte seen, a0, a1, m0, m1, target;
    bool free, changed;
end:
    do
    :: atomic {
            leading == id ->
            seen = epoch; a0 = acked[0]; a1 = acked[1];
            m0 = (live[0] -> me(0) : NOBODY); m1 = (live[1] -> me(1) : NOBODY)
       };
       atomic {                 /* anything may have happened in between */
            changed = false;
            if
#ifdef NO_CHECK
            :: true ->
#else
            :: leading == id && epoch == seen ->
#endif
                Step(0); Step(1);
                if
                :: changed -> epoch++
                :: else
                fi
            :: else
            fi;
            seen = 0; a0 = 0; a1 = 0; m0 = 0; m1 = 0; target = 0; free = false; changed = false
       }
    od
}

proctype Reader(byte w) {
end:
    do
    :: atomic {
            live[w] && epoch > 0 && epoch >= acked[w] && (applied[w] != epoch || !proven[w]) ->
            holds[w * 2] = (owner[0] == me(w) && since[0] == 0);
            holds[w * 2 + 1] = (owner[1] == me(w) && since[1] == 0);
            applied[w] = epoch; proven[w] = true;
            Check()
       }
    od
}

proctype Acker(byte w) {
end:
    do
    :: atomic {
            live[w] && acked[w] != applied[w] &&
            !(claiming[w * 2] && !holds[w * 2]) && !(claiming[w * 2 + 1] && !holds[w * 2 + 1]) ->
            acked[w] = applied[w]
       }
    od
}

proctype Claimer(byte w; byte s) {
end:
    do
    :: atomic { holds[w * 2 + s] && believes(w) && !claiming[w * 2 + s] -> claiming[w * 2 + s] = true; Check() };
       claiming[w * 2 + s] = false
    od
}

proctype Faults() {
    byte w;
end:
    do
    :: atomic { faults > 0 -> faults--;
            if
            :: w = 0
            :: w = 1
            fi;
            if
            :: proven[w] -> proven[w] = false
            :: !proven[w] && live[w] -> live[w] = false; unwaited = true
            :: leading = 1 - leading
            fi
       }
    :: atomic { !live[0] -> live[0] = true; incarnation[0]++ }
    :: atomic { !live[1] -> live[1] = true; incarnation[1]++ }
    od
}

init {
    atomic {
        run Leader(0); run Leader(1);
        run Reader(0); run Reader(1); run Acker(0); run Acker(1);
        run Claimer(0, 0); run Claimer(1, 0);
#ifndef LIVENESS                /* one slot's claims are enough there, and many states fewer */
        run Claimer(0, 1); run Claimer(1, 1);
#endif
        run Faults()
    }
}

#define owned(s)  (since[s] == 0 && owner[s] != NOBODY && live[owner[s] % 2] && owner[s] == me(owner[s] % 2) \
                   && holds[(owner[s] % 2) * 2 + s])

ltl every_slot_is_owned { <> [] (owned(0) && owned(1)) }
