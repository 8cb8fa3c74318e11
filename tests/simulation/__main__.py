"""python -m tests.simulation: play many seeds, and say which one breaks a promise.

--seeds N        how many (default 10,000)
--first S        the first of them (default 0)
--mode MODE      safety or liveness; both, two thirds of the seeds in safety mode, where none is given
--within S       stop after so many seconds, and say how many seeds that were; no seed at all is a failure
--processes P    how many to play at a time (default: one for each core)
--show           print the whole trace of each seed
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence

from tests.simulation.campaign import mode_of, play_portion, portions, report
from tests.simulation.history import play
from tests.simulation.plan import make_plan
from tests.simulation.seams import installed

HASH_SEED = "0"


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 when no promise was broken."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:  # the order of a set must not differ from run to run
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *arguments],
            {**os.environ, "PYTHONHASHSEED": HASH_SEED},
        )
    options = _parser().parse_args(arguments)
    if options.show:
        return _show(options)
    began = time.monotonic()
    counts: collections.Counter[str] = collections.Counter()
    slowest, played = 0.0, 0
    asked = portions(options.first, options.seeds, options.mode)
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        answers = pool.imap(play_portion, asked)
        while True:
            try:
                left = None if options.within is None else max(0.0, began + options.within - time.monotonic())
                failed, found, settled, number = answers.next(timeout=left)
            except StopIteration:
                break
            except multiprocessing.TimeoutError:
                pool.terminate()
                break
            counts.update(found)
            slowest, played = max(slowest, settled), played + number
            if played % 1000 < number:
                print(f"{played} seeds, {time.monotonic() - began:.0f} s", flush=True)
            if failed is not None:
                pool.terminate()
                print(failed, flush=True)
                return 1
    print(
        f"{played} seeds from {options.first} on, no promise broken: {counts['claim']} claims, {counts['begin']} runs, "
        f"{counts['reap']} leases reaped, {counts['release']} claims handed back, {counts['publish']} assignments; "
        f"all well {slowest:.0f} s after the last fault at the latest; {time.monotonic() - began:.0f} s"
    )
    return 0 if played else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__, add_help=True)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--mode", choices=("safety", "liveness"))
    parser.add_argument("--within", type=float)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--show", action="store_true")
    return parser


def _show(options: argparse.Namespace) -> int:
    broken = 0
    with installed():
        for seed in range(options.first, options.first + options.seeds):
            verdict = play(make_plan(seed, mode_of(seed, options.mode)))
            print(*verdict.entries, sep="\n")
            if verdict.violation is not None:
                broken = 1
                print(report(verdict))
    return broken


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
