"""Files by which handlers in other processes tell a test how far they are, and a test tells them to go on."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.waiting import until


class Marker:
    """One file, and its siblings `<file>.<name>`."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def __str__(self) -> str:
        return str(self._path)

    def sibling(self, name: str) -> Marker:
        return Marker(f"{self._path}.{name}")

    def say(self, text: str) -> None:
        """Write the file, whole or not at all."""
        draft = self._path.with_name(self._path.name + ".draft")
        draft.write_text(text)
        draft.rename(self._path)

    def say_pid(self) -> None:
        self.say(str(os.getpid()))

    def said(self) -> str | None:
        """What was written; None while the file is not there."""
        try:
            return self._path.read_text()
        except FileNotFoundError:
            return None

    async def pid(self) -> int:
        """The process number that is written there, waiting for it."""
        return int(await until(lambda: self.said() or "", what=f"a process number in {self._path}"))
