"""I6, I7: what callers were promised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from loadtest.chaos.history import ENDED, History, Violation


def what_was_cancelled_never_starts(history: History) -> Iterator[Violation]:
    """I6: after 204 nothing is claimed any more, and nothing that had not been claimed runs; 409 means that a claim had
    come before."""
    for call in history.calls:
        if call.kind != "cancel" or call.job is None:
            continue
        versions = history.versions_of.get(call.job, [])
        if call.status == 204:
            cancelled = next((version for version in versions if version.state in ENDED), None)
            if cancelled is None or cancelled.at > call.ended + history.settings.clock_tolerance:
                yield Violation(
                    invariant="I6",
                    job=call.job,
                    message="204, and the job had not been cancelled",
                    evidence=(call, *versions[-1:]),
                )
                continue
            later = [v for v in versions if v.seq > cancelled.seq and v.state == "claimed"]
            if later:
                yield Violation(
                    invariant="I6",
                    job=call.job,
                    message="claimed after a cancel that was answered 204",
                    evidence=(call, cancelled, later[0]),
                )
        elif call.status == 409 and not any(
            version.state == "claimed" and version.at <= call.ended + history.settings.clock_tolerance
            for version in versions
        ):
            yield Violation(
                invariant="I6", job=call.job, message="409, and the job had not been claimed", evidence=(call,)
            )


def creates_are_done_as_they_were_answered(history: History) -> Iterator[Violation]:
    """I7: a create that was answered made exactly one job, one that was refused none, one without an answer at most
    one; one key holds one job."""
    made = {version.job for version in history.versions if version.change == "insert"}
    by_key: dict[str, set[str]] = defaultdict(set)
    for call in history.calls:
        if call.kind != "create":
            continue
        if call.outcome == "ok" and (call.job is None or call.job not in made):
            yield Violation(
                invariant="I7",
                job=call.job,
                message="a create was answered, and there is no such job",
                evidence=(call,),
            )
        if call.outcome == "fail" and call.job is not None and call.job in made:
            yield Violation(
                invariant="I7", job=call.job, message="a create was refused, and the job is there", evidence=(call,)
            )
        if call.outcome == "ok" and call.key is not None and call.job is not None:
            by_key[call.key].add(call.job)
    for key, jobs in by_key.items():
        if len(jobs) > 1:
            yield Violation(
                invariant="I7",
                job=min(jobs),
                message=f"the key {key} made {len(jobs)} jobs",
                evidence=tuple(call for call in history.calls if call.key == key),
            )
