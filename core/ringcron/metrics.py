"""Every metric that ringcron exports: name, meaning, programs, labels. The only place that makes one.

Invariants: a program exports its own metrics and nobody else's (`keep_only`), so that `absent()` and `min()` say what
they seem to say; a coordinator that does not lead shows no lag, not a lag of 0. Label values come from closed lists,
from handler names, slots and workers' names; never from a job's id. Names end in their base unit.

core/metrics.md is made from this list, and a test compares them.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import REGISTRY, Counter, Gauge, disable_created_metrics

from ringcron.instruments import DECLARED, OTHERS, counter, counters, declared, gauge, histograms, shown
from ringcron.models import RunOutcome, SkipReason

DELAY_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
SHORT_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
BATCH_BUCKETS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500)

START_CAUSES: Final = ("planned", "retry", "recovered")
CLAIM_KINDS: Final = ("own", "help", "fair", "solo")

_WORKER: Final = ("worker",)
_LEADER: Final = ("coordinator",)
_API: Final = ("api",)
_ALL: Final = ("api", "coordinator", "worker")


# Worker
RUN_START_DELAY: Final = histograms(
    "ringcron_run_start_delay_seconds",
    "From the instant a run was due (retries: from the end of their back-off) to its start. recovered: after a lapsed "
    "lease",
    _WORKER,
    "cause",
    START_CAUSES,
    buckets=DELAY_BUCKETS,
)
RUN_DURATION: Final = histograms(
    "ringcron_run_duration_seconds",
    "From the start of a run to its end",
    _WORKER,
    "handler",
    buckets=DELAY_BUCKETS,
    of="the worker's handlers",
)
RUNS: Final = counters(
    "ringcron_runs_total", "Runs that have ended and whose completion was accepted", _WORKER, "outcome", RunOutcome
)
OLDEST_RUN: Final = shown(
    "ringcron_oldest_run_age_seconds",
    "Age of the oldest run in progress; no series for a handler that runs nothing",
    _WORKER,
    "handler",
    of="the worker's handlers",
)
CLAIM_DURATION: Final = histograms(
    "ringcron_claim_duration_seconds",
    "Time of one claim statement, for the worker's own slice, in help, in a fairness turn, of a quarantined job",
    _WORKER,
    "kind",
    CLAIM_KINDS,
    buckets=SHORT_BUCKETS,
)
CLAIM_JOBS: Final = histograms(
    "ringcron_claim_jobs",
    "Jobs that came with a claim that found any; its sum is the jobs claimed",
    _WORKER,
    "kind",
    CLAIM_KINDS,
    buckets=BATCH_BUCKETS,
)
CLAIMS_EMPTY: Final = counters("ringcron_claims_empty_total", "Claims that found nothing", _WORKER, "kind", CLAIM_KINDS)
LEASES_LAPSED: Final = counter("ringcron_leases_lapsed_total", "Lapsed leases that this worker took back", _WORKER)
RENEW_FAILURES: Final = counter("ringcron_lease_renew_failures_total", "Renewals that failed or timed out", _WORKER)
STALE_WRITES: Final = counters(
    "ringcron_stale_writes_total",
    "Writes of a run that the fence refused: the worker had paused for longer than its lease",
    _WORKER,
    "operation",
    ("complete", "renew"),
)
TRUST_ENDED: Final = counter(
    "ringcron_trust_ended_total", "Runs stopped because the worker could no longer prove its lease", _WORKER
)
OCCURRENCES_MISSED: Final = counters(
    "ringcron_occurrences_missed_total",
    "Ticks deliberately not run, each recorded as part of a skip",
    _WORKER,
    "reason",
    SkipReason,
)
DEAD: Final = counter("ringcron_jobs_died_total", "Jobs that went dead here", _WORKER)
WORKER_RUNNING: Final = gauge("ringcron_worker_running", "Runs in progress in this worker", _WORKER)
WORKER_CAPACITY: Final = gauge("ringcron_worker_capacity", "How many jobs this worker runs at once", _WORKER)
CLOCK_OFFSET: Final = shown(
    "ringcron_clock_offset_seconds",
    "This machine's wall clock minus the database's. Decides nothing; shows in logs and in TLS",
    _WORKER,
)

# Coordinators and workers
MEMBERSHIP_UP: Final = shown(
    "ringcron_membership_up",
    "1 while the ZooKeeper session is connected, 0 while it is not; no series without ZooKeeper",
    ("coordinator", "worker"),
)

# Coordinator: the leader alone, but for the first
COORDINATOR_LEADER: Final = gauge("ringcron_coordinator_leader", "1 in the coordinator that leads, else 0", _LEADER)
ASSIGNMENT_EPOCH: Final = shown("ringcron_assignment_epoch", "Epoch of the assignment last published", _LEADER)
MEMBERS: Final = shown("ringcron_members", "Live workers in ZooKeeper", _LEADER)
BAD_MEMBERS: Final = shown(
    "ringcron_bad_members", "Member nodes that could not be understood and were passed over", _LEADER
)
SLOTS_UNOWNED: Final = shown("ringcron_slots_unowned", "Slots that no worker owns in the assignment", _LEADER)
SLOTS_IN_TRANSIT: Final = shown(
    "ringcron_slots_in_transit", "Slots revoked from one worker and not yet granted to the next", _LEADER
)
ACKS_OVERDUE: Final = counter(
    "ringcron_acks_overdue_total", "Owners passed over because they did not acknowledge in time", _LEADER
)
SLOT_LAG: Final = shown(
    "ringcron_slot_lag_seconds",
    "Now minus when the oldest due, unclaimed, runnable job of a slot was due; no series for a slot without one",
    _LEADER,
    "slot",
    of="0 to 4095",
)
SLOT_DUE_JOBS: Final = shown(
    "ringcron_slot_due_jobs", "Due, unclaimed, runnable jobs of a slot", _LEADER, "slot", of="0 to 4095"
)
SLICE_LAG: Final = shown(
    "ringcron_slice_lag_seconds", "Lag over the slice of a worker", _LEADER, "worker", of="workers' names"
)
DUE_JOBS: Final = shown(
    "ringcron_due_jobs", "Jobs that are due and unclaimed, and whose handler some worker has", _LEADER
)
DUE_NEXT_MINUTE: Final = shown(
    "ringcron_due_next_minute_jobs",
    "Jobs that will fall due within a minute, and whose handler some worker has",
    _LEADER,
)
UNCLAIMABLE_JOBS: Final = shown(
    "ringcron_unclaimable_jobs",
    "Due jobs whose handler no worker has",
    _LEADER,
    "handler",
    of=f"the 50 handlers that most of them name; {OTHERS} for the rest",
    at_most=50,
)
DEAD_JOBS: Final = shown(
    "ringcron_dead_jobs", "Jobs that are dead and wait for a person; counted up to 10,000", _LEADER
)
SILENT_JOBS: Final = shown(
    "ringcron_jobs_overdue_without_lease",
    "Enabled jobs that are long overdue and that nobody holds: the auditor's finding",
    _LEADER,
)
JOB_ALERTS: Final = shown(
    "ringcron_job_alerts",
    "Jobs that breach the alert that was asked for them: not started in time, or without a success for too long",
    _LEADER,
    "kind",
    of="late, no-success",
)
OLDEST_SNAPSHOT: Final = shown(
    "ringcron_oldest_snapshot_age_seconds",
    "Age of the oldest transaction, prepared ones included, that keeps dead rows from being removed",
    _LEADER,
)
UPKEEP_FAILURES: Final = counters(
    "ringcron_upkeep_failures_total", "Duties of the leader that failed", _LEADER, "step", of="the duties' names"
)

# API
_HTTP_REQUESTS_LABELS: Final = {"method": "HTTP methods, other", "route": "path templates", "status": "HTTP statuses"}
HTTP_REQUESTS: Final = declared(
    "counter",
    "ringcron_http_requests_total",
    "Requests answered",
    _API,
    _HTTP_REQUESTS_LABELS,
    Counter("ringcron_http_requests_total", "Requests answered", list(_HTTP_REQUESTS_LABELS)),
)
HTTP_DURATION: Final = histograms(
    "ringcron_http_request_duration_seconds",
    "Time to answer; streams of events left out",
    _API,
    "route",
    buckets=SHORT_BUCKETS,
    of="path templates",
)
EVENT_STREAMS: Final = gauge(
    "ringcron_event_streams", "Streams of events that are open: dashboards that are looked at", _API
)
CANCELS: Final = counters(
    "ringcron_cancels_total",
    "Cancels that were decided: nothing will start any more, or a worker had claimed the job already",
    _API,
    "result",
    ("cancelled", "conflict"),
)

# Every program
STORE_RETRIES: Final = counters(
    "ringcron_store_retries_total", "Statements tried again", _ALL, "sqlstate", of="SQLSTATEs that allow it, connection"
)
_BUILD_INFO_MEANING: Final = "1, labelled with the version"
BUILD_INFO: Final = declared(
    "gauge",
    "ringcron_build_info",
    _BUILD_INFO_MEANING,
    _ALL,
    {"version": "the version of this process"},
    Gauge("ringcron_build_info", _BUILD_INFO_MEANING, ["version"]),
)


def keep_only(program: str) -> None:
    """Export nothing but the metrics of `program` from this process, which runs no other."""
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series beside each counter that says when the process began
    for metric in DECLARED:
        if program not in metric.programs:
            REGISTRY.unregister(metric.collector)
