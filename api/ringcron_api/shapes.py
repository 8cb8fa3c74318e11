"""The shapes of the answers that `answers` and `shards` write, for the OpenAPI document.

Invariant: nothing is validated by these at run time; the tests hold every answer against the document made from them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from ringcron.explain import Reason
from ringcron.models import Catchup, Cause, JobState, OnExhausted, Overlap, RunOutcome, SkipReason
from ringcron.store.audit import Action

StoredSchedule = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "description": "As it is stored: the normal form of what was sent, its defaults filled in.",
            "examples": [{"cron": "0 9 * * MON-FRI", "timezone": "Europe/Madrid"}],
        }
    ),
]

Instant = Annotated[
    str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2027-01-31T09:00:00Z"]})
]
Duration = Annotated[str, WithJsonSchema({"type": "string", "examples": ["PT15M"]})]
JobId = Annotated[
    str,
    WithJsonSchema({"type": "string", "format": "uuid", "examples": ["019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e"]}),
]
RunId = Annotated[
    str,
    WithJsonSchema({"type": "string", "examples": ["019f3a52-5d2c-7d0e-9d5c-0a8f6f3c1b2e.3"]}),
]
Slot = Annotated[int, Field(ge=0, le=4095)]
Arc = Annotated[
    list[int],
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": 4095},
            "minItems": 2,
            "maxItems": 2,
            "description": "First and last slot of an arc, both included.",
        }
    ),
]


class Shape(BaseModel):
    """Something that the API shows. Later versions may show more members."""

    model_config = ConfigDict(alias_generator=to_camel)


class StoredRetryShape(Shape):
    max_attempts: int
    min_backoff: Duration
    max_backoff: Duration
    multiplier: float
    max_lost: int


class JobShape(Shape):
    """A job as it is listed; exactly one of `schedule` and `runAt` is there."""

    job_id: JobId
    key: str | None
    name: str | None
    tags: list[str]
    handler: str
    state: JobState
    schedule: StoredSchedule | SkipJsonSchema[None] = None
    run_at: Instant | SkipJsonSchema[None] = None
    next_run_at: Instant | None = Field(description="The earliest next claim; null while paused, dead or ended.")
    scheduled_for: Instant = Field(description="The instant that names the occurrence: the tick, or runAt as given.")
    attempt: int = Field(description="Tries of the current occurrence so far; counted at the claim.")
    slot: Slot = Field(description="A hash of the id; decides which worker claims the job.")
    lease_owner: str | None = Field(description="The worker that holds the job; null unless claimed.")
    lease_until: Instant | None = Field(description="Null unless claimed.")
    lease_generation: int | None = Field(description="The fencing token: grows at every claim. Null unless claimed.")
    run_id: RunId | None = Field(description="The run in progress; null unless claimed.")
    pause_reason: str | None
    paused_by: str | None
    dead_reason: str | None
    retry: StoredRetryShape
    timeout: Duration | None
    alert_after_late: Duration | None
    alert_if_no_success_for: Duration | None
    overlap: Overlap
    catchup: Catchup
    catchup_window: Duration
    jitter: Duration
    on_exhausted: OnExhausted
    created_at: Instant
    updated_at: Instant = Field(description="When a caller last changed the job; runs do not move it.")


class WholeJobShape(JobShape):
    """A job; exactly one of `schedule` and `runAt` is there."""

    payload: Any


class ListedJobShape(JobShape):
    """A job in a list; `payload` only with `include=payload`."""

    payload: Any = None


class CreatedJobShape(WholeJobShape):
    """A job that was created, kept or replaced."""

    next_runs: list[Instant] = Field(description="When it will run next, at most ten instants.", max_length=10)


class JobPage(Shape):
    items: list[ListedJobShape]
    next_cursor: str | None = Field(description="Send it as `cursor` for the next page; null on the last one.")


class RunShape(Shape):
    """One attempt."""

    run_id: RunId
    attempt: int
    scheduled_for: Instant
    cause: Cause
    worker_id: str
    lease_generation: int
    started_at: Instant
    finished_at: Instant | None = Field(description="Null while in progress.")
    outcome: RunOutcome | None = Field(description="Null while in progress.")
    error: str | None
    result: Any = Field(description="What the handler returned.")


class RedrivenShape(Shape):
    count: int = Field(description="How many jobs were made due again. As many as `limit`: more may be dead.")
    last_at: Instant | None = Field(description="When the last of them is due; null where there was none.")


class StoppingRunShape(Shape):
    """The worker that was asked to stop the run. Whether it did shows in the run's outcome."""

    run_id: RunId
    worker_id: str


class ExplanationShape(Shape):
    """Why a job has not run yet, or what is becoming of it."""

    job_id: JobId
    state: JobState
    code: Reason = Field(description="For programs.")
    sentence: str = Field(description="For people; may change.")
    fields: dict[str, Any] = Field(description="What the sentence is made of; other members with other reasons.")
    taken_at: Instant


class SkipShape(Shape):
    """Ticks that were deliberately not run."""

    first: Instant = Field(alias="from")
    last: Instant = Field(alias="to", description="Included, as is `from`.")
    count: int
    reason: SkipReason


class AuditShape(Shape):
    """What a caller did to a job."""

    at: Instant
    action: Action
    key_id: str | None = Field(description="The key that the caller showed; null where none was needed.")
    key_name: str | None
    request_id: str | None = Field(description="The log has the same.")
    detail: dict[str, Any] | None = Field(description="Of a patch, a pause and a resume: the fields that were sent.")


class ShardShape(Shape):
    """A worker seen through its slice. A due job counts for each worker that may claim it by right."""

    worker: str
    arcs: list[Arc]
    lag_seconds: float
    due: int
    running: int


class SlotShape(Shape):
    slot: Slot
    lag_seconds: float
    due: int


class Shards(Shape):
    """Who owns which slots, and how late they are, at one instant."""

    items: list[ShardShape]
    slots: list[SlotShape] = Field(
        description="Slots with due jobs that nobody has claimed yet, of handlers that some worker has."
    )
    unowned: list[Arc] = Field(
        description="Arcs that no worker owns, on the ring of some handler. Their jobs run late, by helping workers."
    )
    epoch: int = Field(description="The newest assignment that a worker holds; 0: none.")
    taken_at: Instant


class WorkerShape(Shape):
    worker_id: str
    name: str
    capacity: int
    running: int
    handlers: list[str]
    version: str
    tzdata: str
    epoch: int
    draining: bool


class WorkerPage(Shape):
    items: list[WorkerShape]
    next_cursor: str | None


class Health(Shape):
    ok: Literal[True]


class Readiness(Shape):
    ready: Literal[True]
    schema_version: int


class OpenApiDocument(Shape):
    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


class FaultShape(Shape):
    pointer: str = Field(description="JSON pointer (RFC 6901) into the body, or `/name` of a parameter or header.")
    code: str
    detail: str
    place: Literal["query", "header"] | SkipJsonSchema[None] = Field(
        default=None, alias="in", description="Only where it is not the body."
    )


class ProblemShape(Shape):
    """RFC 9457. `code` is for programs; `detail` is for people and may change."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: str
