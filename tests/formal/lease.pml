/* Claim, lease and fence: one job, two workers, a clock that is at its worst.
 *
 * What stands here                what it is in the product
 *   state, generation, owner        the row of `jobs`
 *   Claim                           queries/claim.sql: due -> claimed, generation + 1, owner, lease
 *   Fence                           the WHERE of every later write: id, state claimed, generation, owner
 *   Close                           queries/complete_runs.sql (done, due again, handed back), release_unknown_claims.sql
 *   Reaper                          queries/reap_leases.sql, shard_worker/reaper.py: every worker, any slot
 *   Renewer                         queries/renew_leases.sql, shard_worker/lease_keeper.py
 *   trust[w]                        lease_keeper.trust_of: ends, on the worker's own clock, before the lease can lapse
 *   Clock                           trust may end at any moment (a pause, a cut), and only then may the lease lapse
 *   a lost answer                   store/connection.py: the write is sent again (complete), or handed back (claim)
 *   a crash                         SIGKILL: the worker comes back as another owner and knows of nothing
 *
 * Left out: time itself, the day of a row, ticks and back-offs (unit tests and the simulation), handover (handover.pml).
 *
 * Safety: each claim is closed once (complete, hand back, reap), so no generation has two accepted completions; no two
 * runs of the job are going while both are trusted. Liveness: the job is done in the end, whatever happened meanwhile.
 * With -DNO_FENCE the closing writes ask for nothing but the id: two accepted completions of one generation must be
 * found.
 */

#define WORKERS 2
#define FAULTS  3               /* lost answers, crashes, ends of trust and failures, all together */
#define CLAIMS  6               /* more than FAULTS can bring about */

mtype = { due, claimed, done };

mtype state = due;
byte generation = 0;
byte owner = 255;               /* worker + WORKERS * incarnation */
bool lapsed = false;
bool closed[CLAIMS];
byte completions[CLAIMS];

byte incarnation[WORKERS];
byte held[WORKERS];             /* the generation that the worker believes to hold; 0: none */
bool trust[WORKERS];
bool running[WORKERS];
byte faults = FAULTS;

#define me(w)     (w + WORKERS * incarnation[w])
#define OWNER     (owner % WORKERS)

#ifdef NO_FENCE
#define fence(w)  true
#define also(x)   skip          /* only the sharpest promise is asked for */
#else
#define also(x)   assert(x)
#define fence(w)  (state == claimed && generation == held[w] && owner == me(w))
#endif

inline Closed(g) {
    also(!closed[g]);
    closed[g] = true
}

inline Close(w, next, completes) {
    if
    :: fence(w) ->
        if
        :: completes -> completions[held[w]]++; assert(completions[held[w]] <= 1)
        :: else
        fi;
        Closed(held[w]);
        state = next
    :: else                     /* 0 rows: stale, nothing is written */
    fi
}

inline Forget(w) {
    held[w] = 0; trust[w] = false; running[w] = false
}

proctype Worker(byte w) {
    byte outcome;
end:
    do
    :: atomic {
            state == due && held[w] == 0 ->
            generation++; assert(generation < CLAIMS);
            state = claimed; owner = me(w); lapsed = false;
            held[w] = generation; trust[w] = true
       };
       if
       :: atomic { faults > 0 -> faults--;              /* the answer is lost: hand back what is not known of */
            Close(w, due, false); Forget(w) }
       :: atomic { faults > 0 -> faults--; incarnation[w]++; Forget(w) }
       :: atomic {
            true ->
            if
            :: trust[w] -> running[w] = true; also(!(running[1 - w] && trust[1 - w]))
            :: else
            fi
          };
          if                                            /* the handler */
          :: atomic { trust[w] && running[w] -> outcome = 1; running[w] = false }
          :: atomic { faults > 0 -> faults--; outcome = 2; running[w] = false }
          :: atomic { !(trust[w] && running[w]) -> outcome = 3; running[w] = false }
          :: atomic { faults > 0 -> faults--; incarnation[w]++; Forget(w); outcome = 0 }
          fi;
          do
          :: outcome == 0 -> break
          :: atomic { outcome == 1 -> Close(w, done, true) };
             if
             :: atomic { faults > 0 -> faults-- }       /* no answer: once more */
             :: break
             fi
          :: atomic { outcome >= 2 -> Close(w, due, outcome == 2) };
             if
             :: atomic { faults > 0 -> faults-- }
             :: break
             fi
          od;
          atomic { Forget(w); outcome = 0 }
       fi
    :: atomic { state == done -> break }
    od
}

proctype Renewer(byte w) {
end:
    do
    :: atomic {
            held[w] > 0 && !trust[w] && state == claimed && generation == held[w] && owner == me(w) ->
            lapsed = false; trust[w] = true
       }
    :: atomic { state == done -> break }
    od
}

proctype Clock() {
end:
    do
    :: atomic { faults > 0 && trust[0] -> faults--; trust[0] = false }
    :: atomic { faults > 0 && trust[1] -> faults--; trust[1] = false }
    :: atomic { state == claimed && !lapsed && !trust[OWNER] -> lapsed = true }
    :: atomic { state == claimed && !lapsed && owner != me(OWNER) -> lapsed = true }
    :: atomic { state == done -> break }
    od
}

proctype Reaper() {
end:
    do
    :: atomic { state == claimed && lapsed -> Closed(generation); state = due }
    :: atomic { state == done -> break }
    od
}

init {
    atomic {
        run Worker(0); run Worker(1);
        run Renewer(0); run Renewer(1);
        run Clock(); run Reaper()
    }
}

ltl no_lost_job { <> (state == done) }
