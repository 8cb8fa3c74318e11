"""What metrics are made of, and the list of those that were made.

Invariants: whatever is made here is in `DECLARED`, with its meaning, where its labels' values come from, and the
programs that export it. What has not been counted has no sample (`Shown`). Children of closed lists exist from the
start, so that the first event is an increase.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

OTHERS: Final = "(others)"
"""The label under which `Shown` adds up what is more than it may show; no handler can have this name."""

Labelled = TypeVar("Labelled", bound=MetricWrapperBase)


class Children(dict[str, Labelled], Generic[Labelled]):
    """The children of a metric with one label, by the label's value; each is looked up in the client library once."""

    def __init__(self, metric: Labelled, values: Iterable[str]) -> None:
        self._metric = metric
        super().__init__((str(value), metric.labels(str(value))) for value in values)

    def __missing__(self, value: str) -> Labelled:
        child = self[str(value)] = self._metric.labels(str(value))
        return child


class Shown(Collector):
    """A gauge of which only the values last shown exist: none before the first, none after `clear`.

    `at_most`: how many values of the label are shown, the largest; the rest is added up under OTHERS.
    """

    def __init__(self, name: str, meaning: str, label: str | None = None, *, at_most: int | None = None) -> None:
        self._name = name
        self._meaning = meaning
        self._labels = () if label is None else (label,)
        self._at_most = at_most
        self._values: Mapping[str, float] = {}
        REGISTRY.register(self)

    def set(self, value: float) -> None:
        """Of a gauge without a label."""
        self._values = {"": value}

    def show(self, values: Mapping[str, float]) -> None:
        """By the label's value; what is not in `values` is no longer shown."""
        if self._at_most is None or len(values) <= self._at_most:
            self._values = dict(values)
            return
        largest = heapq.nlargest(self._at_most, values, key=lambda label: values[label])
        kept = {label: values[label] for label in largest}
        self._values = {**kept, OTHERS: sum(values.values()) - sum(kept.values())}

    def clear(self) -> None:
        self._values = {}

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily(self._name, self._meaning, labels=self._labels)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._meaning, labels=self._labels)
        for label, value in self._values.items():
            family.add_metric([label] if self._labels else [], value)
        yield family


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """One metric, as people are told of it. `labels`: each with where its values come from."""

    name: str
    kind: str
    labels: Mapping[str, str]
    programs: tuple[str, ...]
    meaning: str
    collector: Collector


DECLARED: Final[list[Declared]] = []


def counter(name: str, meaning: str, programs: tuple[str, ...]) -> Counter:
    return declared("counter", name, meaning, programs, {}, Counter(name, meaning))


def counters(
    name: str, meaning: str, programs: tuple[str, ...], label: str, values: Iterable[str] = (), *, of: str = ""
) -> Children[Counter]:
    closed = list(values)
    says = {label: of or ", ".join(closed)}
    return Children(declared("counter", name, meaning, programs, says, Counter(name, meaning, [label])), closed)


def histograms(
    name: str,
    meaning: str,
    programs: tuple[str, ...],
    label: str,
    values: Iterable[str] = (),
    *,
    buckets: tuple[float, ...],
    of: str = "",
) -> Children[Histogram]:
    closed = list(values)
    metric = Histogram(name, meaning, [label], buckets=buckets)
    return Children(declared("histogram", name, meaning, programs, {label: of or ", ".join(closed)}, metric), closed)


def gauge(name: str, meaning: str, programs: tuple[str, ...]) -> Gauge:
    return declared("gauge", name, meaning, programs, {}, Gauge(name, meaning))


def shown(
    name: str,
    meaning: str,
    programs: tuple[str, ...],
    label: str | None = None,
    *,
    of: str = "",
    at_most: int | None = None,
) -> Shown:
    says = {} if label is None else {label: of}
    return declared("gauge", name, meaning, programs, says, Shown(name, meaning, label, at_most=at_most))


M = TypeVar("M", bound=Collector)


def declared(
    kind: str, name: str, meaning: str, programs: tuple[str, ...], labels: Mapping[str, str], collector: M
) -> M:
    DECLARED.append(
        Declared(name=name, kind=kind, labels=labels, programs=programs, meaning=meaning, collector=collector)
    )
    return collector
