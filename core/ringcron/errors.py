"""Every error that ringcron raises on purpose, as one tree.

    RingcronError
    ├── ConfigError            the settings are wrong; all faults of one reading are in `faults`
    ├── HandlerNotFound        no handler of that name is registered here
    ├── ScheduleError          a schedule that cannot be accepted            (HTTP 422)
    │   └── NeverFires         … because it has no tick within eight years   (HTTP 422)
    ├── JobNotFound            no job has that id                            (HTTP 404)
    ├── RunNotFound            no run has that id                            (HTTP 404)
    ├── RunFinished            the run has ended already                     (HTTP 409)
    ├── JobAlreadyClaimed      a worker claimed the job first                (HTTP 409)
    ├── WrongState             the job's state does not allow this           (HTTP 409)
    ├── KeyExists              another job holds that key                    (HTTP 409)
    ├── ApiKeyNotFound         no API key has that id
    ├── ApiKeyNameTaken        a live API key has that name
    ├── IdempotencyInProgress  a request with that key is being answered     (HTTP 409)
    ├── LeaseLost              the fence refused a write of a run
    ├── MembershipUnavailable  ZooKeeper cannot be reached; retriable
    │   └── SessionLost        … because the session is over; retriable
    ├── BadAssignment          an assignment that cannot be read or written
    │   └── ForeignAssignment  … because another version, or for another number of slots, wrote it
    ├── StoreUnavailable       PostgreSQL cannot be reached; retriable       (HTTP 503)
    │   └── StatementFailed    … or a statement failed for another reason that may pass
    └── StatementRefused       PostgreSQL cannot store a value of this statement

A message defaults to the first line of the class docstring, so that an error explains itself wherever it is raised.
`retriable` tells whether the same call may succeed later without anybody changing anything.
"""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID


class RingcronError(Exception):
    """Something in ringcron went wrong."""

    retriable: ClassVar[bool] = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or type(self).__name__).strip().splitlines()[0])


class ConfigError(RingcronError):
    """The settings are wrong."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("the settings are wrong:\n" + "\n".join(f"  - {fault}" for fault in faults))


class HandlerNotFound(RingcronError):
    """No handler of that name is registered in this worker."""


class ScheduleError(RingcronError):
    """The schedule cannot be accepted."""

    def __init__(self, message: str, *, pointer: str = "", code: str = "invalid") -> None:
        """`pointer` is relative to the schedule document: "/cron", "/timezone", "/every", "" for the whole of it."""
        self.pointer = pointer
        self.code = code
        super().__init__(message)


class NeverFires(ScheduleError):
    """The schedule has no tick within eight years."""


class JobNotFound(RingcronError):
    """No job has that id."""


class RunNotFound(RingcronError):
    """No run has that id."""


class RunFinished(RingcronError):
    """The run has ended already."""


class JobAlreadyClaimed(RingcronError):
    """A worker has already claimed the job."""

    def __init__(self, job_id: UUID, *, lease_owner: str, lease_until: Any, lease_generation: int) -> None:
        self.job_id = job_id
        self.lease_owner = lease_owner
        self.lease_until = lease_until
        self.lease_generation = lease_generation
        super().__init__(f"job {job_id} has already been claimed by {lease_owner}")


class WrongState(RingcronError):
    """The job's state does not allow this."""

    def __init__(self, message: str, *, state: str) -> None:
        self.state = state
        super().__init__(message)


class KeyExists(RingcronError):
    """Another job holds that key."""

    def __init__(self, key: str, job_id: UUID) -> None:
        self.key = key
        self.job_id = job_id
        super().__init__(f"the key {key!r} belongs to job {job_id}")


class ApiKeyNotFound(RingcronError):
    """No API key has that id."""


class ApiKeyNameTaken(RingcronError):
    """A live API key has that name."""


class IdempotencyInProgress(RingcronError):
    """Another request with this Idempotency-Key is being answered."""

    retriable = True


class LeaseLost(RingcronError):
    """The lease is gone: the fence refused this write."""

    def __init__(self, job_id: UUID, *, held_generation: int, current_generation: int | None, operation: str) -> None:
        self.job_id = job_id
        self.held_generation = held_generation
        self.current_generation = current_generation
        self.operation = operation
        super().__init__(
            f"{operation} of job {job_id} refused: held generation {held_generation}, "
            f"the row has {'none' if current_generation is None else current_generation}"
        )


class MembershipUnavailable(RingcronError):
    """ZooKeeper cannot be reached."""

    retriable = True


class SessionLost(MembershipUnavailable):
    """The ZooKeeper session is over."""


class BadAssignment(RingcronError):
    """The assignment cannot be read or written."""


class ForeignAssignment(BadAssignment):
    """The assignment was written by another version of this program, or for another number of slots."""


class StoreUnavailable(RingcronError):
    """PostgreSQL cannot be reached."""

    retriable = True


class StatementFailed(StoreUnavailable):
    """A statement failed, and not for want of a connection; it may pass later."""


class StatementRefused(RingcronError):
    """PostgreSQL cannot store a value of this statement; trying it again cannot help."""
