"""Every metric that ringcron exports: name, labels, meaning. The only place that makes one.

One registry per process (prometheus-client's default). Never label by job id; label values come from closed lists,
from handler names or from slots. Names end in their base unit.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

DELAY_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
SHORT_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)

# Worker
RUN_START_DELAY = Histogram(
    "ringcron_run_start_delay_seconds",
    "From the instant a run was due (retries: from the end of their back-off) to its start",
    ["cause"],
    buckets=DELAY_BUCKETS,
)
RUN_DURATION = Histogram(
    "ringcron_run_duration_seconds", "From the start of a run to its end", ["handler"], buckets=DELAY_BUCKETS
)
RUNS = Counter("ringcron_runs_total", "Runs ended, by outcome", ["outcome"])
CLAIM_DURATION = Histogram(
    "ringcron_claim_duration_seconds", "Time of one claim statement", ["kind"], buckets=SHORT_BUCKETS
)
CLAIMED = Counter("ringcron_claimed_total", "Jobs claimed, by kind of claim (own, help, fair, solo)", ["kind"])
CLAIMS_EMPTY = Counter("ringcron_claims_empty_total", "Claims that found nothing", ["kind"])
LEASES_REAPED = Counter("ringcron_leases_reaped_total", "Lapsed leases that this worker took back")
RENEW_FAILURES = Counter("ringcron_lease_renew_failures_total", "Renewals that failed or timed out")
STALE_WRITES = Counter(
    "ringcron_stale_writes_total", "Writes of a run that the fence refused, by operation", ["operation"]
)
SKIPPED_TICKS = Counter("ringcron_skipped_ticks_total", "Ticks deliberately not run, by reason", ["reason"])
DEAD = Counter("ringcron_jobs_died_total", "Jobs that went dead here")
WORKER_RUNNING = Gauge("ringcron_worker_running", "Runs in progress in this worker")
WORKER_CAPACITY = Gauge("ringcron_worker_capacity", "How many jobs this worker runs at once")
TRUST_ENDED = Counter("ringcron_trust_ended_total", "Runs stopped because the worker could no longer prove its lease")

# Every process that talks to ZooKeeper
MEMBERSHIP_UP = Gauge("ringcron_membership_up", "1 while the ZooKeeper session is connected")

# Coordinator (the leader alone, but for the first)
COORDINATOR_LEADER = Gauge("ringcron_coordinator_leader", "1 in the coordinator that leads")
ASSIGNMENT_EPOCH = Gauge("ringcron_assignment_epoch", "Epoch of the assignment last published")
MEMBERS = Gauge("ringcron_members", "Live workers in ZooKeeper")
BAD_MEMBERS = Gauge("ringcron_bad_members", "Member nodes that could not be understood and were passed over")
SLOTS_UNOWNED = Gauge("ringcron_slots_unowned", "Slots that no worker owns in the assignment")
ACKS_OVERDUE = Counter("ringcron_acks_overdue_total", "Owners passed over because they did not acknowledge in time")
SLOT_LAG = Gauge("ringcron_slot_lag_seconds", "Now minus the oldest due, unclaimed, runnable job of a slot", ["slot"])
SLICE_LAG = Gauge("ringcron_slice_lag_seconds", "The same over the slice of a worker", ["worker"])
DUE_JOBS = Gauge("ringcron_due_jobs", "Jobs that are due and unclaimed, and whose handler some worker has")
UNCLAIMABLE_JOBS = Gauge("ringcron_unclaimable_jobs", "Due jobs whose handler no worker has", ["handler"])
UPKEEP_FAILURES = Counter("ringcron_upkeep_failures_total", "Partition upkeep steps that failed", ["step"])

# API
HTTP_REQUESTS = Counter("ringcron_http_requests_total", "Requests answered", ["method", "route", "status"])
HTTP_DURATION = Histogram("ringcron_http_request_duration_seconds", "Time to answer", ["route"], buckets=SHORT_BUCKETS)
CANCELS = Counter("ringcron_cancels_total", "Cancels by result", ["result"])

# Store
STORE_RETRIES = Counter("ringcron_store_retries_total", "Statements tried again, by SQLSTATE", ["sqlstate"])

BUILD_INFO = Gauge("ringcron_build_info", "1, labelled with the version", ["version"])
