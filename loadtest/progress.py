"""Live progress: one changing line on a terminal, one line every few seconds elsewhere.

Nothing decides by it. It goes to standard error, so that the summary on standard output can be kept.
"""

from __future__ import annotations

from typing import Final

from rich.console import Console

from ringcron.clock import SystemClock

SECONDS_BETWEEN_LINES: Final = 5.0


class Progress:
    """`silent`: say nothing (tests)."""

    def __init__(self, *, silent: bool = False) -> None:
        self._console = Console(stderr=True, quiet=silent, highlight=False, markup=False)
        self._clock = SystemClock()
        self._began = self._clock.elapsed()
        self._said = float("-inf")
        self._open = False
        self._ended: str | None = None

    def say(self, sentence: str) -> None:
        """A step has begun."""
        self._end_line()
        self._console.print(f"{self._elapsed()}  {sentence}")
        self._said = float("-inf")

    def count(self, what: str, done: int, total: int, more: str = "") -> None:
        """So many of so many; shown at once on a terminal, now and then elsewhere."""
        text = f"{self._elapsed()}  {what}: {done:,} of {total:,}{'  ' + more if more else ''}"
        if self._console.is_terminal:
            self._console.print(f"\r\x1b[2K{text}", end="", soft_wrap=True)
            self._open = True
            if done >= total:
                self._end_line()
            return
        ended = done >= total and self._ended != what
        if ended or (done < total and self._clock.elapsed() - self._said > SECONDS_BETWEEN_LINES):
            self._console.print(text)
            self._said = self._clock.elapsed()
        self._ended = what if done >= total else None

    def _elapsed(self) -> str:
        seconds = self._clock.elapsed() - self._began
        return f"{int(seconds // 60):3d}:{seconds % 60:04.1f}"

    def _end_line(self) -> None:
        if self._open:
            self._console.print()
            self._open = False
