"""The bodies and queries of requests. camelCase lives here and in `answers`, and nowhere else.

Invariant: what is valid here is what the OpenAPI document allows, because both come from these models. Reading is
strict: no text becomes a number, and no unknown name is passed over. All faults of a request are found at once.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic.alias_generators import to_camel

from ringcron.models import JobState
from ringcron.schedule_document import MEMBERS
from ringcron_api.faults import Fault, Names, Place, faults_from
from ringcron_api.fields import (
    DEFAULT_PAGE,
    DURATION_PATTERN,
    Attempts,
    Backoff,
    CatchupWindow,
    Flag,
    HandlerName,
    Instant,
    Jitter,
    Key,
    Late,
    Name,
    NoSuccess,
    PageSize,
    PauseReason,
    PerSecond,
    RedriveLimit,
    Tag,
    Tags,
    Timeout,
)

W = TypeVar("W", bound="Wire")
Q = TypeVar("Q", bound="Query")


class Wire(BaseModel):
    """Something that a caller sends."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class Retry(Wire):
    """How often and when an occurrence is tried again.

    The delay after attempt n is min(maxBackoff, minBackoff × multiplier^(n−1)) × (0.5 + 0.5 × random). A handler may
    ask for more (`Retry-After` of an HTTP target).
    """

    max_attempts: Attempts = Field(
        default=5,
        description="Tries of one occurrence, the first included. A try whose worker was lost counts, but is never the "
        "one that ends the occurrence: for that there is `maxLost`.",
    )
    min_backoff: Backoff = timedelta(seconds=5)
    max_backoff: Backoff = timedelta(hours=1)
    multiplier: Annotated[float, Field(ge=1, le=100)] = 2.0
    max_lost: Attempts = Field(
        default=3,
        description="A job whose worker was lost so many times in a row is dead, whatever `maxAttempts` is; never "
        "before the third time, since from the second on a worker runs it alone, and only such a loss can kill it.",
    )


_INSTANT: Final = {"type": ["string", "null"], "format": "date-time"}
_COMMON: Final = {
    "startAt": {**_INSTANT, "description": "No tick before it."},
    "endAt": {**_INSTANT, "description": "No tick after it; a tick at it counts."},
    "maxRuns": {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": 2**31 - 1,
        "description": "The job is done after so many occurrences.",
    },
}
CRON_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Cron with five fields, in the wall-clock time of a zone.",
    "required": ["cron"],
    "additionalProperties": False,
    "properties": {
        "cron": {"type": "string", "maxLength": 256, "examples": ["0 9 * * MON-FRI", "*/15 * * * *", "@daily"]},
        "timezone": {
            "type": ["string", "null"],
            "default": "UTC",
            "description": "A name of the tz database.",
            "examples": ["Europe/Madrid"],
        },
        **_COMMON,
    },
}
EVERY_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Ticks at anchor + n × every, for whole n: they cannot drift.",
    "required": ["every"],
    "additionalProperties": False,
    "properties": {
        "every": {
            "type": "string",
            "pattern": DURATION_PATTERN,
            "description": "ISO 8601 without years and months, at least PT1S.",
            "examples": ["PT15M"],
        },
        "anchor": {
            **_INSTANT,
            "description": "Default: the instant of creation; the first tick is strictly after that.",
        },
        **_COMMON,
    },
}
CRON_TEXT_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "maxLength": 256,
    "description": "Cron in UTC.",
}
ScheduleDocument = Annotated[
    Any, WithJsonSchema({"anyOf": [CRON_SCHEMA, EVERY_SCHEMA, CRON_TEXT_SCHEMA, {"type": "null"}]})
]


class Settable(Wire):
    """What a caller may say of a job, when it is created and later."""

    run_at: Instant | None = Field(
        default=None, description="Run once, at this instant. In the past: at once; `scheduledFor` keeps the instant."
    )
    schedule: ScheduleDocument = Field(
        default=None,
        description="Run at each tick. Nothing before creation is caught up. "
        "Refused (`schedule-never-fires`) when it has no tick within eight years.",
    )
    payload: Any = Field(
        default=None,
        description="Any JSON, at most 256 KiB, given to the handler. Stored as jsonb: the order of members, duplicate "
        "names and the spelling of numbers are not kept. Refused: U+0000, lone surrogates, numbers beyond a double, "
        "integers beyond 64 bits.",
    )
    handler: HandlerName = "default"
    name: Name | None = Field(default=None, description="For people and filters; need not be unique.")
    tags: Tags = Field(default_factory=list, description="For filters; duplicates are dropped.")
    retry: Retry = Field(default_factory=Retry)
    timeout: Timeout | None = Field(
        default=None, description="Of one attempt. None: it may run as long as its worker lives and renews the lease."
    )
    alert_after_late: Late | None = Field(
        default=None,
        description="Raise an alert where a run has not started so long after it was due: on the dashboard, in the "
        "metrics, and at `RINGCRON_ALERT_URL`. A coordinator looks; it needs no worker.",
    )
    alert_if_no_success_for: NoSuccess | None = Field(
        default=None,
        description="Raise an alert where no run has succeeded for so long: since the last that did, or since the job "
        "was created. Also while the job is paused or dead.",
    )
    overlap: Literal["skip", "buffer_one", "buffer_all", "cancel_other"] = Field(
        default="skip",
        description="Ticks that pass while an occurrence is going, its retries included. `skip`: none is run. "
        "`buffer_one`: the first is run afterwards. `buffer_all`: the first 100, in order. `cancel_other`: at the tick "
        "the running attempt is cancelled, or the retry that waits is dropped, and the tick is run. "
        "What is not run leaves a skip.",
    )
    catchup: Literal["latest", "all", "none"] = Field(
        default="latest",
        description="Missed ticks. `latest`: the newest is run. `all`: the newest 100, in order. `none`: the newest, "
        "if it is not older than 60 seconds. What is not run leaves a skip.",
    )
    catchup_window: CatchupWindow = Field(
        default=timedelta(days=365),
        description="A tick of a schedule that is older than this is never caught up.",
        json_schema_extra={"default": "P365D"},  # pydantic would write P1Y
    )
    jitter: Jitter = Field(
        default=timedelta(0),
        description="The job runs this much later at most: by one fixed offset in [0, jitter), a hash of its id. "
        "`scheduledFor` stays the tick. Keep it below the distance of two ticks: one that passes meanwhile is missed.",
    )
    on_exhausted: Literal["continue", "dead"] = Field(
        default="continue",
        description="A recurring job of which one occurrence has used up its attempts goes on with the next tick, or "
        "is dead until a person redrives it. A one-off is always dead then.",
    )


class CreateJob(Settable):
    """A job: exactly one of `runAt` and `schedule`, and what is to be run."""

    key: Key | None = Field(
        default=None,
        description="Unique business key. Held until the job is cancelled or its row leaves with retention, so that a "
        "one-off that is done still deduplicates.",
    )
    on_conflict: Literal["error", "keep", "replace"] = Field(
        default="error",
        description="When the key belongs to a job already: `error`: 409 `key-exists`; `keep`: 200 with that job, "
        "unchanged; `replace`: 200, that job gets this whole definition and is due again, unless it is claimed (409).",
    )


class PatchJob(Settable):
    """A merge patch (RFC 7396): fields that are not there stay, null takes a field back to its default."""

    paused: bool | None = Field(
        default=None, description="`true`: nothing starts any more until `false`. A run in progress is not stopped."
    )
    pause_reason: PauseReason | None = Field(default=None, description="For people; only with `paused: true`.")


class Query(Wire):
    """The parameters after the `?`. Every one is text; none may be given twice."""

    model_config = ConfigDict(strict=False)


class Page(Query):
    limit: PageSize = DEFAULT_PAGE
    cursor: str | None = Field(default=None, description="`nextCursor` of the page before; opaque.")


class ListJobs(Page):
    state: JobState | None = None
    tag: Tag | None = Field(default=None, description="A cancelled job has lost its tags.")
    handler: HandlerName | None = None
    name: Name | None = None
    due_before: Instant | None = Field(default=None, description="nextRunAt before this instant.")
    due_after: Instant | None = Field(default=None, description="nextRunAt at or after this instant.")
    include: Literal["payload"] | None = Field(default=None, description="Also show each job's payload.")
    order: Literal["jobId", "nextRunAt"] = Field(
        default="jobId",
        description="`jobId`: newest first; a walk through the pages sees each job once. `nextRunAt`: soonest first, "
        "only jobs that have one; a moving view: a job whose nextRunAt changes meanwhile may come twice or not at all.",
    )


class AfterCurrent(Query):
    after_current: Flag = Field(
        default=False, description="Where a run is in progress, wait for its end instead of being refused."
    )


class RedriveJobs(Query):
    handler: HandlerName | None = None
    tag: Tag | None = None
    limit: RedriveLimit = Field(default=1000, description="At most so many, the oldest first.")
    per_second: PerSecond | None = Field(
        default=None, description="So many become due each second. Without it all are due at once."
    )


class NoQuery(Query):
    """A call without parameters."""


def read(model: type[W], document: Any, *, known: Names, place: Place) -> tuple[W | None, list[Fault]]:
    """The document as `model`, or None; and every fault in it."""
    try:
        return model.model_validate(document), []
    except ValidationError as error:
        return None, faults_from(error.errors(include_url=False), known, place)


def names_of(model: type[Wire]) -> list[str]:
    """The names that a model's object may have on the wire."""
    return [field.alias or name for name, field in model.model_fields.items()]


PATCH_NAMES: Final[Names] = {(): names_of(PatchJob), ("retry",): names_of(Retry), ("schedule",): MEMBERS}
JOB_NAMES: Final[Names] = {(): names_of(CreateJob), ("retry",): names_of(Retry), ("schedule",): MEMBERS}
