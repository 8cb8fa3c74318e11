"""How long runs last, by handler: what a worker has seen lately, for the forecast.

An exponentially weighted mean (weight 1/32: about the last hundred runs), plain while there are fewer. For people and
for scaling; nothing decides by it.
"""

from __future__ import annotations

from typing import Final

MEMORY: Final = 32


class Durations:
    """The means of one worker."""

    def __init__(self) -> None:
        self._means: dict[str, tuple[int, float]] = {}

    def observe(self, handler: str, seconds: float) -> None:
        """A run has ended after `seconds`."""
        seen, mean = self._means.get(handler, (0, 0.0))
        seen = min(seen + 1, MEMORY)
        self._means[handler] = (seen, mean + (seconds - mean) / seen)

    def means(self) -> dict[str, float]:
        """Seconds by handler; none where nothing has ended yet."""
        return {handler: round(mean, 6) for handler, (_, mean) in self._means.items()}
