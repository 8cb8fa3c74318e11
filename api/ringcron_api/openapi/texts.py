"""The prose of the document, in CommonMark."""

from __future__ import annotations

from typing import Final

from ringcron_api.problems import PROBLEMS

GUARANTEES: Final = (
    "At least once. A job whose worker dies mid-run runs again. **Jobs must be idempotent**; every handler and every "
    "target is given jobId, runId, scheduledFor, attempt and leaseGeneration to make that easy.",
    "Never two live leases on one job. Once the lease of a paused or cut-off worker has been taken back, every later "
    "write of that worker is rejected. (With asynchronous replication a failover may forget the last moments; commits "
    "synchronous to a quorum close that.)",
    "Late, never lost. With the database down nothing runs and nothing is lost. A tick deliberately not run leaves a "
    "skip that says which and why (`overlap`, `missed`, `paused`, `dead`, `rescheduled`).",
    "Claims are oldest first within a slice, but jobs are not executed strictly by due time. (A worker that finds a "
    "row locked by another takes the next one.)",
    "Cancel is decided by one atomic statement: 204 means that nothing will start any more; 409 means that a worker "
    "had already claimed it.",
    "Time is the database's. No worker's or client's clock decides what is due or which lease has lapsed.",
    "ZooKeeper keeps claims free of contention; correctness never needs it, and losing it never stops due jobs from "
    "running.",
)

_PROMISES = "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(GUARANTEES, 1))

DESCRIPTION: Final = f"""\
ringcron runs a job once, on time, on some machine of a pool whose machines may vanish without warning. A **job** is one
schedule and its payload; a one-off is a schedule that fires once. A **tick** is an instant that the schedule names. A
**run** is one attempt at it.

## What is promised

{_PROMISES}

## How to read this

Names are camelCase. Instants are RFC 3339 in UTC with `Z`; any offset is accepted. Durations are ISO 8601 without years
and months. Ids are text. Answers may gain members; a request with an unknown field or parameter is refused, so that a
slip of the pen is never passed over in silence.

Bodies are strict JSON in UTF-8, with `Content-Type: application/json`, at most 1 MiB, that
of a batch 64 MiB. NaN, Infinity and more than 64
levels are refused (400). U+0000, lone surrogates, numbers beyond a double and integers beyond 64 bits are refused
(422), because PostgreSQL or a reader cannot hold them.

Everything that is not a success is `application/problem+json` (RFC 9457). Programs act on `code`; the table of codes is
at the end. Faults in a request come all at once, in `errors`, each with a JSON pointer. Every answer carries
`X-Request-Id`; the log has the same id.

Lists come in pages without totals. A cursor is opaque, holds no server's state, and is good for the filters that it
came with.

## API keys

Send `Authorization: Bearer rc_…`. The command `ringcron key add NAME --scope read|write|admin` makes a key and shows it
once; `key list` and `key revoke` do the rest. A scope includes the ones before it: `read` looks, `write` creates,
changes and cancels, `admin` acts on many jobs at once. A new key works within half a second; a revoked one opens
nothing after 5 seconds. A key may have a rate; beyond it the answer is 429 with `Retry-After`. The rate counts for each
API process by itself.

While no key exists, calls without one are let in, if the API listens on the loopback interface only (or was started
with `--insecure`) and `RINGCRON_REQUIRE_KEYS` is not `always`. Over the loopback interface browsers are then answered
only under names of this machine and those in `RINGCRON_ALLOWED_HOSTS`, and nothing is changed for pages of other sites
(403 `host-not-allowed`, `origin-not-allowed`). From the first key on every call needs one, but for
`/healthz`, `/readyz`, `/openapi.json` and `/docs`, which say nothing of any job. The audit of a job says whose key
changed it.

## Time

A job is **late** when it is claimed after its instant; it runs, however late. A tick is **missed** only when a later
tick of the same job has passed too, or it is older than `catchup` allows: by default the newest runs and the others
leave one skip. Ticks that pass while an occurrence is going (its retries included) leave one skip `overlap`, unless
`overlap` says otherwise. The next tick comes from the schedule, never from when a run ended, so nothing drifts.
"""

GROUPS: Final = {
    "Jobs": "Create, read, list, change and cancel.",
    "Acts": "What a person does to a job: run it now, run it again, stop a run, ask why it waits.",
    "History": "What became of each tick: runs, and skips for those that were deliberately not run.",
    "Pool": "The workers, and how late each part of the schedule is.",
    "Operations": "For probes, Prometheus and readers.",
}

PROBLEM_MEANINGS: Final = {
    "bad-request": "The request line, a header or the framing of the body is broken or too long.",
    "malformed-json": "Not JSON, not UTF-8, NaN, Infinity, or more than 64 levels deep. `line` and `column` say where.",
    "invalid-cursor": "The cursor was cut, made up, or comes from another list or other filters.",
    "unauthorized": "No key was sent, or one that is not known, is revoked or has a wrong secret. The header "
    "`WWW-Authenticate` says what to send.",
    "forbidden": "`neededScope` says what the call needs. Scopes are `read`, `write`, `admin`; each includes the ones "
    "before it.",
    "host-not-allowed": "No key exists, and the header `Host` is neither a name of this machine nor one of "
    "`RINGCRON_ALLOWED_HOSTS`: a page whose name was made to point here is kept out.",
    "origin-not-allowed": "No key exists, and the headers `Origin` or `Sec-Fetch-Site` name a page of another site.",
    "not-found": "No such job, or no such path.",
    "method-not-allowed": "The header `Allow` says which methods there are.",
    "request-timeout": "The body did not arrive in time. Nothing was done.",
    "job-claimed": "A worker holds the job: it was claimed before this request. `runId` names the run that may be "
    "under way, `leaseUntil` how long its lease lasts unless it is renewed. To stop the run, post to `cancelUrl`.",
    "run-finished": "The run had ended before it could be stopped; its outcome stands.",
    "wrong-state": "`state` says what the job is. One that has ended stays as it is; a dead one can be redriven.",
    "key-exists": "`jobId` names the job that holds the key. `onConflict` says what else to do.",
    "idempotency-in-progress": "A request with this `Idempotency-Key` was not answered within 2 s. Nothing was done "
    "for this one: send it again, with the same key.",
    "payload-too-large": "The body may have 1 MiB, that of a batch 64 MiB, the payload 256 KiB as compact JSON.",
    "unsupported-media-type": "Send `Content-Type: application/json`, in UTF-8, uncompressed.",
    "expectation-failed": "Only `Expect: 100-continue` is known.",
    "validation-failed": "`errors` holds every fault: `pointer`, `code` and `detail`.",
    "idempotency-key-reused": "This `Idempotency-Key` came with another body or query within the last 24 h.",
    "schedule-never-fires": "The schedule has no tick within eight years, or none before its end.",
    "too-many-requests": "The key's own limit. `Retry-After` says in how many seconds the next call is let through. "
    "Nothing was done.",
    "internal-error": "A fault of ringcron. The log has it under `requestId`.",
    "store-unavailable": "The database is down or too slow. `Retry-After` says when to try again. A create that was "
    "cut off may have been stored: send an `Idempotency-Key` to find out by trying again.",
}

assert PROBLEM_MEANINGS.keys() == PROBLEMS.keys()
