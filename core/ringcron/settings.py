"""What each program is told: one frozen dataclass per program, read once, before anything starts.

Invariants: a settings object is complete and valid, or there is none: every fault is found in one reading and reported
in one ConfigError. No other module looks at the environment for a setting. A value comes from the flag, else from the
variable, else from the file that the variable with `_FILE` behind its name names (for secrets), else from the default.
An empty variable is one that is not set. No message shows a secret.
"""

from __future__ import annotations

import dataclasses
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

from ringcron import readers
from ringcron.errors import ConfigError
from ringcron.redaction import redact

DAY: Final = 86400.0
PREFIX: Final = "RINGCRON_"
OVERDUE_SECONDS: Final = 300.0


def _setting(
    reader: readers.Reader,
    meaning: str,
    *,
    default: Any = dataclasses.MISSING,
    factory: Any = dataclasses.MISSING,
    variables: tuple[str, ...] = (),
    required: bool = False,
    secret: bool = False,
) -> Any:
    """One setting. `variables` are its names where they are not RINGCRON_<FIELD>; the first that is set counts."""
    notes = {
        "reader": reader,
        "meaning": meaning,
        "variables": variables,
        "required": required,
        "secret": secret,
    }
    if factory is not dataclasses.MISSING:
        return field(default_factory=factory, metadata=notes)
    if default is not dataclasses.MISSING:
        return field(default=default, metadata=notes)
    return field(metadata=notes)


def variables_of(setting: dataclasses.Field[Any]) -> tuple[str, ...]:
    """The environment variables that give a setting, the one to recommend first."""
    own: tuple[str, ...] = setting.metadata["variables"]
    return own or (PREFIX + setting.name.upper(),)


def flag_of(setting: dataclasses.Field[Any]) -> str:
    """The flag that gives a setting."""
    return "--" + setting.name.replace("_", "-")


def _log_format() -> str:
    return "console" if sys.stderr.isatty() else "json"


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseSettings:
    """What a program is told that needs PostgreSQL and nothing else."""

    database_url: str = _setting(
        readers.database_url,
        "PostgreSQL, as postgresql://user:password@host:5432/database",
        variables=("RINGCRON_DATABASE_URL", "DATABASE_URL"),
        required=True,
        secret=True,
    )
    database_pooler: Literal["none", "transaction"] = _setting(
        readers.choice("none", "transaction"),
        "What stands before PostgreSQL; transaction: a pooler that gives each transaction another session, such as "
        "PgBouncer in transaction mode. Nothing is then kept in sessions, workers need RINGCRON_BELL=poll, and planner "
        "settings come from the role (sql/README.md)",
        default="none",
    )

    REQUIRED: ClassVar[frozenset[str]] = frozenset()

    @property
    def behind_pooler(self) -> bool:
        """Whether what is set, prepared or listened for in a session is gone with the next transaction."""
        return self.database_pooler == "transaction"

    @classmethod
    def load(cls, environment: Mapping[str, str], **overrides: object) -> Self:
        """Read every setting. `overrides` are flags by field name (text as typed, or values); None is not given.

        Raises ConfigError with every fault.
        """
        values: dict[str, Any] = {}
        faults: list[str] = []
        for setting in dataclasses.fields(cls):
            try:
                given = _given(setting, environment, overrides.get(setting.name))
                if given is not None:
                    values[setting.name] = _read(setting, *given)
                elif setting.metadata["required"] or setting.name in cls.REQUIRED:
                    faults.append(f"{variables_of(setting)[0]} is not set: {setting.metadata['meaning']}")
            except ValueError as error:
                faults.append(str(error))
        unknown = overrides.keys() - {setting.name for setting in dataclasses.fields(cls)}
        faults += [f"{name} is not a setting of this program" for name in sorted(unknown)]
        if faults:
            raise ConfigError(faults)
        settings = cls(**values)
        if faults := settings.conflicts():
            raise ConfigError(faults)
        return settings

    def conflicts(self) -> list[str]:
        """Faults that lie between settings that are good by themselves."""
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonSettings(DatabaseSettings):
    """What every program that keeps running is told."""

    zookeeper: str | None = _setting(
        readers.optional(readers.zookeeper),
        "ZooKeeper, as h1:2181,h2:2181,h3:2181/ringcron; none: do without, every worker claims from the whole ring",
        default=None,
    )
    session_seconds: float = _setting(
        readers.seconds(1, 60), "ZooKeeper session: how long until a silent member is dropped", default=10.0
    )
    log_format: Literal["json", "console"] = _setting(
        readers.choice("json", "console"), "Form of the log; console on a terminal, else json", factory=_log_format
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        readers.choice("debug", "info", "warning", "error"), "Least level that is logged", default="info"
    )


def _given(
    setting: dataclasses.Field[Any], environment: Mapping[str, str], override: object
) -> tuple[str, object] | None:
    """Where a value of the setting was given, for messages, and the value; None where it was not."""
    if override is not None:
        return flag_of(setting), override
    for variable in variables_of(setting):
        if environment.get(variable):
            return variable, environment[variable]
        if path := environment.get(f"{variable}_FILE"):
            try:
                return f"{variable}_FILE ({path})", Path(path).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
                raise ValueError(f"{variable}_FILE: {path} cannot be read: {reason}") from None
    return None


def _read(setting: dataclasses.Field[Any], source: str, value: object) -> Any:
    text = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value).strip()
    try:
        return setting.metadata["reader"](text)
    except ValueError as error:
        shown = redact(text) if not setting.metadata["secret"] else "its value"
        raise ValueError(f"{source}: {shown if setting.metadata['secret'] else repr(shown)} {error}") from None


def _bell() -> Any:
    return _setting(
        readers.choice("listen", "poll"),
        "How jobs created at the last moment are heard of; poll behind a pooler that cannot LISTEN",
        default="listen",
    )


def _overdue() -> Any:
    return _setting(
        readers.seconds(1, 7 * DAY),
        "An enabled job that has been due for so long and that nobody holds is an alarm; the same for coordinators "
        "and the API",
        default=OVERDUE_SECONDS,
    )


def _metrics_port() -> Any:
    return _setting(
        readers.optional(readers.integer(0, 65535)),
        "Port for Prometheus; 0: any free one; none: no metrics are served",
        default=None,
    )


def _metrics_host() -> Any:
    return _setting(readers.host, "Address that the metrics are served on", default="127.0.0.1")


_host_name: Final[Callable[[], str]] = socket.gethostname


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerSettings(CommonSettings):
    """What a worker is told."""

    name: str = _setting(
        readers.name,
        "Stable name of this worker, unlike every other's; decides which slots it claims",
        factory=_host_name,
        variables=("RINGCRON_WORKER_NAME",),
    )
    concurrency: int = _setting(readers.integer(1, 10_000), "How many jobs it runs at once", default=10)
    handlers: tuple[str, ...] = _setting(
        readers.several(readers.module), "Modules (my.jobs) or files (my/jobs.py) with handlers", default=()
    )
    default_handler: str = _setting(readers.handler, "What runs jobs that name no handler", default="log")
    allow_commands: bool = _setting(
        readers.flag, "Run jobs of the handler `command`: programs and shells", default=False
    )
    http_allow: tuple[str, ...] = _setting(
        readers.several(readers.network),
        "Networks that the handler `http` may reach although they are closed",
        default=(),
    )
    http_deny: tuple[str, ...] = _setting(
        readers.several(readers.network), "Networks that the handler `http` may not reach", default=()
    )
    bell: Literal["listen", "poll"] = _bell()
    lease_seconds: float = _setting(
        readers.seconds(1, 3600),
        "How long a claim lasts unless it is renewed. Ten or more: a step of the database's clock that is too small to "
        "be noticed (up to a second) then fits into the margin by which a worker ends early",
        default=15.0,
    )
    poll_seconds: float = _setting(
        readers.seconds(0.05, 60), "About how often it looks at the schedule when nothing is due", default=1.0
    )
    help_after_seconds: float = _setting(
        readers.seconds(0.05, 3600),
        "How long a job of another worker's slice must be overdue before this one helps with it",
        default=0.25,
    )
    drain_seconds: float = _setting(
        readers.seconds(0, DAY), "How long runs may go on once the worker was told to stop", default=30.0
    )
    batch_size: int = _setting(readers.integer(1, 500), "Most jobs that one claim takes", default=500)
    traces: bool = _setting(
        readers.flag, "Make a trace of each run; needs ringcron[otel], and OTEL_* says where they go", default=False
    )
    metrics_port: int | None = _metrics_port()
    metrics_host: str = _metrics_host()

    REQUIRED: ClassVar[frozenset[str]] = frozenset({"zookeeper"})

    def conflicts(self) -> list[str]:
        if self.behind_pooler and self.bell == "listen":
            return [
                "RINGCRON_BELL is 'listen': must be 'poll' with RINGCRON_DATABASE_POOLER=transaction, "
                "for nobody can LISTEN behind such a pooler; or connect this worker to PostgreSQL itself"
            ]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class CoordinatorSettings(CommonSettings):
    """What a coordinator is told."""

    name: str = _setting(
        readers.name, "Name of this coordinator", factory=_host_name, variables=("RINGCRON_COORDINATOR_NAME",)
    )
    quiet_seconds: float = _setting(
        readers.seconds(0, 600), "Members must have been the same for so long before slices move", default=2.0
    )
    quiet_cap_seconds: float = _setting(
        readers.seconds(0, 600), "Slices move after so long although members still change", default=10.0
    )
    ack_seconds: float = _setting(
        readers.seconds(0.1, 600), "How long the owner of a moving arc may take to let go of it", default=5.0
    )
    relist_seconds: float = _setting(
        readers.seconds(0.1, 600), "Members are listed so often although nothing seemed to change", default=10.0
    )
    days_ahead: int = _setting(readers.integer(1, 50), "How many days ahead have a partition of their own", default=14)
    keep_runs_seconds: float = _setting(
        readers.seconds(DAY, 36500 * DAY),
        "How long the history of runs is kept",
        default=30 * DAY,
        variables=("RINGCRON_KEEP_RUNS", "RINGCRON_KEEP_RUNS_SECONDS"),
    )
    keep_jobs_seconds: float = _setting(
        readers.seconds(DAY, 36500 * DAY),
        "How long jobs that have ended are kept",
        default=7 * DAY,
        variables=("RINGCRON_KEEP_JOBS", "RINGCRON_KEEP_JOBS_SECONDS"),
    )
    keep_runs_bytes: int | None = _setting(
        readers.optional(readers.size), "Drop the oldest days of history beyond this size, such as 20GiB", default=None
    )
    upkeep_seconds: float = _setting(readers.seconds(0.1, 3600), "How often partitions are looked after", default=60.0)
    alert_url: str | None = _setting(
        readers.optional(readers.http_url),
        "Called (POST) when a job breaches its alert, and when that is over",
        default=None,
    )
    overdue_seconds: float = _overdue()
    http_allow: tuple[str, ...] = _setting(
        readers.several(readers.network), "Networks that alerts may reach although they are closed", default=()
    )
    http_deny: tuple[str, ...] = _setting(
        readers.several(readers.network), "Networks that alerts may not reach", default=()
    )
    metrics_port: int | None = _metrics_port()
    metrics_host: str = _metrics_host()

    REQUIRED: ClassVar[frozenset[str]] = frozenset({"zookeeper"})

    def conflicts(self) -> list[str]:
        if self.quiet_seconds > self.quiet_cap_seconds:
            return [
                f"RINGCRON_QUIET_SECONDS is {self.quiet_seconds:g}: "
                f"must not be more than RINGCRON_QUIET_CAP_SECONDS, which is {self.quiet_cap_seconds:g}"
            ]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiSettings(CommonSettings):
    """What the API is told."""

    host: str = _setting(readers.host, "Address to listen on", default="127.0.0.1", variables=("RINGCRON_API_HOST",))
    port: int = _setting(
        readers.integer(0, 65535), "Port to listen on; 0: any free one", default=8080, variables=("RINGCRON_API_PORT",)
    )
    insecure: bool = _setting(
        readers.flag,
        "Listen on any address although there is no API key: whoever reaches it may schedule anything",
        default=False,
    )
    require_keys: Literal["auto", "always"] = _setting(
        readers.choice("auto", "always"),
        "Whether calls need an API key; auto: not on loopback (or with --insecure) as long as no key exists",
        default="auto",
    )
    allowed_hosts: tuple[str, ...] = _setting(
        readers.several(readers.host),
        "Names that it is called by without a key, besides those of this machine, as behind a proxy",
        default=(),
    )
    pool_size: int = _setting(
        readers.integer(1, 500),
        "Most connections to PostgreSQL for calls; the API keys and the bell have one each besides",
        default=8,
    )
    overdue_seconds: float = _overdue()
    bell: Literal["listen", "poll"] = _bell()

    @property
    def may_be_open(self) -> bool:
        """Whether calls without a key are let in as long as no key exists."""
        return self.require_keys == "auto" and (self.insecure or readers.is_loopback(self.host))
