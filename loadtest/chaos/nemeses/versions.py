"""Two versions side by side, as in an upgrade: an older build takes the place of some programs, and gives it back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loadtest.chaos.builds import Build, older_build
from loadtest.chaos.history import History
from loadtest.chaos.nemeses.base import Bite, Stage
from loadtest.chaos.nemeses.workers import Rolling
from ringcron.local.errors import NotAvailable

OLDER: Final = "older build of "
"""What a fault of that name is done to: it excuses nothing, and tells when the older build ran."""


class TwoVersions(Rolling):
    """N18V: rolling restarts, each of which leaves an older build in half of the workers and in one coordinator, by
    turns. The database is migrated by ours before."""

    number = "N18V"
    title = "rolling restarts with an older build beside ours"
    pause = 1.0

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._build: Build | None = None
        self._since: dict[str, float] = {}
        self._turns = 0

    def unavailable(self) -> str | None:
        try:
            self._build = older_build(self.arena.plan.older, self.arena.folder / "older")
        except NotAvailable as error:
            return str(error)
        return None

    def round(self) -> Iterator[float]:
        workers, coordinators = sorted(self.arena.workers), sorted(self.arena.coordinators)
        older = {*workers[self._turns % 2 :: 2], coordinators[self._turns % len(coordinators)]}
        self._turns += 1
        # The older coordinator first, so that it leads when the other has gone.
        for group in (coordinators, workers):
            for name in sorted(group, key=lambda name: name not in older):
                yield from self.restart(name, older=name in older)

    def heal(self) -> None:
        """Ours everywhere: those of the older build drain, too."""
        super().heal()
        for name in list(self._since):
            with self.faults.during(self.number, f"{name}.", after=self.arena.plan.lease):
                self.program(name).end()
                self._change(name, older=False)
                self.arena.restart(name)

    def restart(self, name: str, *, older: bool) -> Iterator[float]:
        """One program drains and comes back as the older build, or as ours."""
        yield from self.replaced(name, lambda: self._change(name, older=older))

    def bite(self, history: History, seconds: float) -> Bite:
        assert self._build is not None
        older = [fault for fault in history.faults if fault.target.startswith(OLDER)]
        done = [run for run in history.runs if run.outcome == "succeeded"]
        by_older = sum(
            any(
                run.worker.startswith(f"{fault.target.removeprefix(OLDER)}.")
                and fault.begin < run.claimed_at < fault.end
                for fault in older
            )
            for run in done
        )
        beside = sum(any(fault.begin < run.claimed_at < fault.end for fault in older) for run in done) - by_older
        build = f"{self._build.commit} ({self._build.migrations} migrations)"
        return Bite(
            number=self.number,
            what=f"runs completed: {by_older} by {build}, {beside} by ours beside it",
            counted=min(by_older, beside),
            wanted=self.scaled(20, seconds),
        )

    def _change(self, name: str, *, older: bool) -> None:
        """Which build `name` is started as next. It does not run now."""
        assert self._build is not None
        if name in self._since:
            self.faults.add(self.number, f"{OLDER}{name}", self._since.pop(name))
            del self.arena.builds[name]
        if older:
            self._since[name] = self.faults.clock.elapsed()
            self.arena.builds[name] = self._build.path
