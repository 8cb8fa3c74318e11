"""Print what tokens and balance of the ring cost: the table of coordinator/README.md.

Each figure is the mean over fleets of random names, all of one capacity, on a ring of 4,096 slots.
"""

from __future__ import annotations

import sys
from collections import Counter
from random import Random
from statistics import mean

from ringcron import ring

SIZE = 4096
FLEETS = {4: 12, 20: 12, 200: 4}
CHOICES = [(1, 105), (1, 125), (2, 115), (2, 125), (3, 110), (3, 115), (3, 125), (4, 115), (4, 125)]


def measure(workers: int, tokens: int, balance: int) -> tuple[float, float, float]:
    """Arcs per worker, largest load in shares, and slots moved by one leave in shares."""
    arcs, largest, moved = [], [], []
    for fleet in range(FLEETS[workers]):
        random = Random(fleet)
        names = [f"worker-{random.randrange(10**6)}" for _ in range(workers)]
        owners = ring.owners(dict.fromkeys(names, 1), SIZE, tokens=tokens, balance=balance)
        arcs.append(len(ring.arcs(owners)) / workers)
        largest.append(max(Counter(owners).values()) * workers / SIZE)
        for leaver in random.sample(names, 4):
            left = dict.fromkeys((name for name in names if name != leaver), 1)
            after = ring.owners(left, SIZE, tokens=tokens, balance=balance)
            moved.append(sum(was != now for was, now in zip(owners, after, strict=True)) * workers / SIZE)
    return mean(arcs), mean(largest), mean(moved)


def main() -> None:
    sys.stdout.write("| tokens | balance |" + "".join(f" {workers} workers |" for workers in FLEETS) + "\n")
    sys.stdout.write("|" + " --- |" * (2 + len(FLEETS)) + "\n")
    for tokens, balance in CHOICES:
        cells = []
        for workers in FLEETS:
            arcs, largest, moved = measure(workers, tokens, balance)
            cells.append(f"{arcs:.1f} · {largest:.2f} · {moved:.1f}")
        sys.stdout.write(f"| {tokens} | {balance / 100} | " + " | ".join(cells) + " |\n")


if __name__ == "__main__":
    main()
