"""The guard: a small process beside each worker that ends what must not go on, whatever state the worker is in.

Run as `python -I -S guard.py WORKER_PID MARK` with a pipe as standard input. Standard library only, a small part of it;
nothing here may block.

Invariants:
- The worker names every handler process's group to the guard before that process runs anything.
- At a group's deadline the guard kills the group and what else is left of its session (`timeout` makes groups of its
  own). The worker ends groups through the guard as well, so there is one authority that kills.
- When the worker is gone, however it went, every group is killed at once and the guard ends. It learns of that by the
  end of the pipe and by a pidfd of the worker: the pipe alone could be held open by a forked copy of the worker.
  Killed as well is what handlers in the worker's event loop had started themselves: programs that have MARK in their
  environment, and forked copies of the worker (they hold the pipe), in the worker's session.
- The worker itself is killed at its own deadline: SIGABRT (faulthandler writes all stacks), then SIGKILL. It has a
  deadline only while its event loop runs a handler, and moves it at each renewal; so it dies here only when the loop
  does not turn or a handler does not let go.

Why not faulthandler.dump_traceback_later in the worker: its thread needs the worker to run, so it does nothing while
the worker is stopped, and on SIGCONT kills it at once. A paused worker that wakes must get the chance to find its
lease lost, log the refused write and stop its handlers itself. So a worker that was seen stopped (state T) within the
last WAKE_SECONDS is left alone until it has been running for WAKE_SECONDS; the deadlines of its handler processes hold
meanwhile. The same is given when the guard finds that it was itself suspended.

The clock is CLOCK_BOOTTIME (CLOCK_MONOTONIC where there is none), the one of ringcron.clock.
Messages, one a line: `watch GROUP DEADLINE`, `forget GROUP` (its leader has ended: kill what it left behind and watch
it no more), `worker DEADLINE`, `part` (the worker ends as it should). The deadline `inf` is none, `0` is now.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from math import inf

WAKE_SECONDS = 1.0
"""Running time that a worker gets after it was stopped before its own deadline counts."""
ABORT_SECONDS = 0.2
"""Between SIGABRT and SIGKILL: time to write the stacks."""
TICK_SECONDS = 1.0
"""The longest sleep while there is a deadline: select does not count the time that the machine was suspended."""
CLOSE_TICK_SECONDS = 0.05
"""The same while the worker is near or past its deadline."""
SUSPENDED_SECONDS = 0.5
"""Waking this much too late means that the guard did not run either."""
SWEEPS = 20
SWEEP_SECONDS = 0.002
"""A process that forks while it is being killed may be missed once, not for ever."""

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    return time.clock_gettime(_CLOCK)


class ProcessState:
    """What /proc/PID/stat says: state letter, session, start time in ticks since boot."""

    __slots__ = ("born", "letter", "session")

    def __init__(self, letter: str, session: int, born: int) -> None:
        self.letter = letter
        self.session = session
        self.born = born


def process_state(pid: int) -> ProcessState | None:
    """None when there is no such process, or no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return ProcessState(fields[0].decode(), int(fields[3]), int(fields[19]))
    except (OSError, IndexError, ValueError):
        return None


class Group:
    """A watched group. `born` is its leader's start time: it tells a reused number from the group that was meant."""

    __slots__ = ("born", "deadline")

    def __init__(self, deadline: float, born: int | None) -> None:
        self.deadline = deadline
        self.born = born


class Ledger:
    """Every deadline, and the decision what is due. It reads no clock and sends no signal."""

    def __init__(self) -> None:
        self.groups: dict[int, Group] = {}
        self.leaderless: dict[int, Group] = {}  # the leader has ended: what it left behind is due
        self.worker_deadline = inf
        self.parted = False
        self.worker_stopped_at = -inf  # when it was last seen stopped
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take in messages; an incomplete line waits for its rest."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, *arguments = line.decode().split()
            if word == "worker":
                self.worker_deadline = float(arguments[0])
            elif word == "part":
                self.parted = True
            elif word == "forget":
                number = int(arguments[0])
                if number in self.groups:
                    self.leaderless[number] = self.groups.pop(number)
            else:
                self._watch(int(arguments[0]), float(arguments[1]))

    def _watch(self, number: int, deadline: float) -> None:
        known = self.groups.get(number)
        if known is not None:
            known.deadline = deadline
            return
        leader = process_state(number)
        self.groups[number] = Group(deadline, leader.born if leader else None)

    def due_groups(self, at: float) -> dict[int, Group]:
        """What is to be killed now; each is named once."""
        due = self.leaderless | {number: group for number, group in self.groups.items() if group.deadline <= at}
        for group in due.values():
            group.deadline = inf
        self.leaderless = {}
        return due

    def worker_due_at(self) -> float:
        """The worker's deadline, or WAKE_SECONDS after it was last seen stopped, whichever is later."""
        return max(self.worker_deadline, self.worker_stopped_at + WAKE_SECONDS)

    def sleep_seconds(self, at: float) -> float | None:
        """How long to wait for messages at most; None: for ever."""
        earliest = min((group.deadline for group in self.groups.values()), default=inf)
        if self.worker_deadline < inf:
            earliest = min(earliest, self.worker_due_at())
            if at > self.worker_deadline - 1.5 * WAKE_SECONDS:
                earliest = min(earliest, at + CLOSE_TICK_SECONDS)
        if earliest == inf:
            return None
        return min(max(earliest - at, 0.0), TICK_SECONDS)


def kill_groups(groups: dict[int, Group]) -> None:
    """SIGKILL to each group, then to whatever else is left of the session that its leader began."""
    sessions = set()
    for number, group in groups.items():
        leader = process_state(number)
        if leader is not None and group.born is not None and leader.born != group.born:
            continue  # the number belongs to another process by now
        sessions.add(number)
        try:
            os.killpg(number, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # gone already, or none of it is ours to kill any more (set-user-id)
    for _ in range(SWEEPS if sessions else 0):
        left = _living_in(sessions)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # as above
        time.sleep(SWEEP_SECONDS)


def _living_in(sessions: set[int]) -> list[int]:
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []  # no /proc here: the group is all that can be found
    living = []
    for pid in pids:
        state = process_state(pid)
        if state is not None and state.session in sessions and state.letter not in "ZX":
            living.append(pid)
    return living


def kill_offspring(session: int, mark: str, pipe: str) -> None:
    """SIGKILL to what a dead worker of this session has left: programs with its mark, and forked copies of it."""
    for _ in range(SWEEPS):
        left = [pid for pid in _living_in({session}) if _has_mark(pid, mark) or _holds(pid, pipe)]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # as above
        time.sleep(SWEEP_SECONDS)  # also after a sweep that found nothing: a copy may just be starting another program


def _has_mark(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark.encode() in file.read().split(b"\0")
    except OSError:
        return False  # gone, or not ours


def _holds(pid: int, file: str) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return False  # as above
    return any(_points_at(f"{folder}/{number}", file) for number in numbers)


def _points_at(link: str, file: str) -> bool:
    try:
        return os.readlink(link) == file
    except OSError:
        return False  # closed since it was listed; the others count


def say(event: str, number: int) -> None:
    """One JSON line on standard error, unless that would block."""
    line = f'{{"event": "{event}", "level": "error", "logger": "ringcron.guard", "pid": {number}}}\n'
    try:
        if select.select([], [2], [], 0)[1]:
            os.write(2, line.encode())
    except OSError:
        pass  # nobody reads it any more


class Guard:
    """The loop around the ledger."""

    def __init__(self, worker: int, mark: str) -> None:
        self._worker = worker
        self._mark = mark
        try:
            self._session = os.getsid(worker)
        except ProcessLookupError:
            self._session = -1  # gone already: nothing has run yet
        self._ledger = Ledger()
        self._worker_gone = False
        self._pidfds = []
        try:
            self._pidfds.append(os.pidfd_open(worker))
        except (AttributeError, OSError):
            pass  # no pidfd here: the end of the pipe and the parent's number have to do

    def run(self) -> None:
        """Until the worker is gone."""
        os.set_blocking(0, False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a supervisor may send these to all; the worker decides when to end
        while not self._worker_gone:
            self._wait()
            self._end_what_is_due()
        kill_groups(self._ledger.groups | self._ledger.leaderless)
        if self._ledger.parted:
            return
        select.select(self._pidfds, [], [], WAKE_SECONDS)  # the pipe of a killed worker ends a moment before it does
        if not self._worker_lives():
            kill_offspring(self._session, self._mark, f"pipe:[{os.fstat(0).st_ino}]")

    def _worker_lives(self) -> bool:
        return os.getppid() == self._worker and not select.select(self._pidfds, [], [], 0)[0]

    def _wait(self) -> None:
        began = now()
        sleep = self._ledger.sleep_seconds(began)
        if not self._pidfds:
            sleep = TICK_SECONDS if sleep is None else min(sleep, TICK_SECONDS)
        select.select([0, *self._pidfds], [], [], sleep)
        if sleep is not None and now() > began + sleep + SUSPENDED_SECONDS:
            self._ledger.worker_stopped_at = now()
        self._worker_gone = not self._worker_lives()
        self._read()  # renewals that wait in the pipe count before any deadline does
        state = process_state(self._worker)
        if state is not None and state.letter in "Tt":
            self._ledger.worker_stopped_at = now()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(0, 65536)
            except BlockingIOError:
                return
            if not data:
                self._worker_gone = True
                return
            self._ledger.feed(data)

    def _end_what_is_due(self) -> None:
        due = self._ledger.due_groups(now())
        if due:
            kill_groups(due)
        if not self._worker_gone and now() >= self._ledger.worker_due_at():
            self._end_worker()

    def _end_worker(self) -> None:
        kill_groups(self._ledger.groups)
        say("the worker is killed: its event loop still runs a handler at the end of trust", self._worker)
        try:
            os.kill(self._worker, signal.SIGABRT)
            select.select(self._pidfds, [], [], ABORT_SECONDS)
            if os.getppid() == self._worker:
                os.kill(self._worker, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it went by itself
        self._ledger.worker_deadline = inf


if __name__ == "__main__":
    Guard(int(sys.argv[1]), sys.argv[2]).run()
