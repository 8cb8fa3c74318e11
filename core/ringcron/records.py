"""Dataclasses that many are made of: frozen to mypy, ordinary at run time.

Invariant: none of them is written to after it was made; mypy, which checks every line of ours, sees to it. A class that
is frozen at run time, too, is made three times as slowly. A run is made of nine of them, so that was a quarter of what
a worker spends on a short run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen, eq=True, **options):
        """As `dataclasses.dataclass`, but that `frozen` gives only the hash."""
        return dataclass(eq=eq, unsafe_hash=frozen and eq, **options)


__all__ = ["record"]
