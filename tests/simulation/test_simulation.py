"""That the simulation is worth something: a seed gives one history, and every guard that is taken away is missed.

Run by `./dev simulate`, beside the seeds themselves.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest

from ringcron_coordinator import leader
from tests.simulation.campaign import mode_of
from tests.simulation.history import play
from tests.simulation.mutants import MUTANTS, applied
from tests.simulation.plan import KINDS, Fault, Plan, make_plan
from tests.simulation.seams import installed

pytestmark = pytest.mark.simulation

MOST_SEEDS = 10_000  # what CI plays


@pytest.mark.parametrize("seed", [3, 5])
def test_a_seed_gives_one_history(seed: int) -> None:
    with installed():
        plan = make_plan(seed, mode_of(seed, None))
        first, second = play(plan), play(plan)
    assert first.entries
    assert first.fingerprint == second.fingerprint


def test_every_kind_of_fault_is_drawn() -> None:
    drawn = {fault.kind for seed in range(300) for fault in make_plan(seed, "safety").faults}
    assert drawn == set(KINDS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_guard_that_is_taken_away_is_missed(name: str) -> None:
    with installed(), applied(name) as mutant:
        for seed in [*range(mutant.found_at, MOST_SEEDS), *range(mutant.found_at)]:
            violation = play(make_plan(seed, mutant.mode)).violation
            if violation is not None:
                break
    assert violation is not None
    assert violation.promise.split()[0] in mutant.promises


def test_an_owner_is_passed_over_only_when_its_proof_has_run_out() -> None:
    """Found by liveness seed 82: with less patience than a proof lasts there were two proven holders of a slot."""
    plan = Plan(
        seed=96,  # one at which the last proof is young when the owner is cut off
        mode="liveness",
        workers=(("w0", 1, ("first", "second")), ("w2", 5, ("first", "second"))),
        coordinators=("c0",),
        jobs=(),
        faults=(Fault(kind="cut from ZooKeeper", at=1.05, seconds=5.5, target="w0"),),
        quiet_at=8.4,
        end=128.0,
        database_is_fast=True,
    )
    with installed():
        assert play(plan).violation is None
        with patch.object(leader, "PROOF_SHARE", 0.0):
            violation = play(plan).violation
    assert violation is not None
    assert violation.promise.startswith("I12")
