"""What requests may say that create many jobs or none: the batch, the rehearsal, the preview.

Invariant: as in `schemas`, on which these are built.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field

from ringcron_api.faults import Names
from ringcron_api.fields import Count, Flag, Instant
from ringcron_api.schemas import CreateJob, Query, ScheduleDocument, Wire, names_of

_DRY_RUN: Final = (
    "Answer as if, and store nothing: all is done in a transaction that is undone. `jobId` is of no job; `nextRuns` "
    "and every fault and conflict are what the call itself would find now. `Idempotency-Key` is not looked at."
)


class CreateJobQuery(Query):
    dry_run: Flag = Field(default=False, description=f"{_DRY_RUN} Status 200.")


class CreateJobs(Query):
    atomic: Flag = Field(default=False, description="All or none: 201, or 422 with every fault and nothing stored.")
    dry_run: Flag = Field(default=False, description=_DRY_RUN)


class Batch(Wire):
    """Many jobs. What is wrong with one of them is said in its result, unless `atomic`."""

    jobs: list[CreateJob] = Field(max_length=10_000)


class PreviewSchedule(Wire):
    """A schedule to be looked at."""

    schedule: ScheduleDocument = Field(description="As in the body of `POST /jobs`.")
    after: Instant | None = Field(default=None, description="Ticks strictly after this instant; by default after now.")
    count: Count = Field(default=10, description="At most so many.")


PREVIEW_NAMES: Final[Names] = {(): names_of(PreviewSchedule)}
