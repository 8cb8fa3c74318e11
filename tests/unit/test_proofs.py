"""`tests/PROOFS.md` and the README name tests, nemeses, invariants, models and mutants that exist, for every fault."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from loadtest.chaos.invariants import INVARIANTS
from loadtest.chaos.nemeses import NEMESES
from tests.simulation.mutants import MUTANTS

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ("README.md", "tests/PROOFS.md")
FAULTS: Final = {"K": 20, "R": 14, "P": 22, "L": 18, "C": 19, "H": 13}
CASES: Final = 62
IDS: Final = [f"{kind}{number}" for kind, count in FAULTS.items() for number in range(1, count + 1)] + [
    f"A{number:02}" for number in range(1, CASES + 1)
]
CHECKS_OF_THE_END: Final = 6  # V1 to V6

TEST: Final = re.compile(r"tests/[\w/]+\.py::[\w:]+")
FILE: Final = re.compile(r"tests/[\w/-]+\.(?:patch|pml)")
NEMESIS: Final = re.compile(r"\bN\d+(?:[A-Z]+|-[a-z]+)?\b")
INVARIANT: Final = re.compile(r"\bI\d+\b")
OF_THE_END: Final = re.compile(r"\bV(\d+)\b")
MEASURED: Final = re.compile(r"loadtest ([a-z]+)")
SIMULATED: Final = re.compile(r'Simulation: "([^"]+)"')
WITHOUT: Final = re.compile(r"\.pml` with `(\w+)`")
PROOFS: Final = (TEST, FILE, NEMESIS, INVARIANT, OF_THE_END, MEASURED, SIMULATED)
ROW: Final = re.compile(r"^\| ([KRPLCHA])(\d+)(?: to A(\d+))? \|(.*)\|$", re.MULTILINE)


@cache
def named_in(path: str) -> frozenset[str]:
    """The tests of a file as pytest names them behind the first `::`; none where there is no such file."""

    def found(body: list[ast.stmt], within: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from found(node.body, f"{within}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                yield within + node.name

    file = ROOT / path
    return frozenset(found(ast.parse(file.read_text(encoding="utf-8")).body, "")) if file.is_file() else frozenset()


def wrong_names(text: str) -> list[str]:
    """What is named in a page and does not exist."""
    models = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/formal").glob("*.pml"))
    return [
        *(name for name in TEST.findall(text) if name.partition("::")[2] not in named_in(name.partition("::")[0])),
        *(name for name in FILE.findall(text) if not (ROOT / name).is_file()),
        *(name for name in NEMESIS.findall(text) if name not in NEMESES),
        *(name for name in INVARIANT.findall(text) if name not in INVARIANTS),
        *(f"V{number}" for number in OF_THE_END.findall(text) if not 1 <= int(number) <= CHECKS_OF_THE_END),
        *(name for name in MEASURED.findall(text) if not any((ROOT / "loadtest").glob(f"{name}*"))),
        *(name for name in SIMULATED.findall(text) if name not in MUTANTS),
        *(name for name in WITHOUT.findall(text) if not re.search(rf"\b{name}\b", models)),
    ]


def lines_of(text: str) -> dict[str, list[str]]:
    """Each fault and case with the lines of the tables that are about it; a line may be about several cases."""
    lines: dict[str, list[str]] = {}
    for kind, first, last, rest in ROW.findall(text):
        for number in range(int(first), int(last or first) + 1):
            lines.setdefault(f"{kind}{number:02}" if kind == "A" else f"{kind}{number}", []).append(rest)
    return lines


def without_proof(text: str) -> list[str]:
    """Faults and cases whose line names nothing that could be looked up, points at no other line, gives no reason."""
    return [
        name
        for name, lines in lines_of(text).items()
        for line in lines
        if not any(proof.search(line) for proof in PROOFS) and "Otherwise: " not in line and " below " not in line
    ]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_names_exists(name: str) -> None:
    assert TEST.search(page(name))
    assert wrong_names(page(name)) == []


def test_every_fault_and_every_case_has_one_line_and_a_proof_or_a_reason() -> None:
    lines = lines_of(page("tests/PROOFS.md"))
    assert {name: len(lines.get(name, [])) for name in IDS} == dict.fromkeys(IDS, 1)
    assert set(lines) == set(IDS)
    assert without_proof(page("tests/PROOFS.md")) == []


@pytest.mark.parametrize(
    ("true", "false"),
    [
        ("tests/unit/test_proofs.py::test_what_a_page_names_exists", "tests/unit/test_proofs.py::test_what_it_names"),
        ("tests/integration/test_election.py::TestTerms::", "tests/integration/test_election.py::TestTerm::"),
        ("tests/formal/lease.pml", "tests/formal/leases.pml"),
        ("tests/chaos/mutants/no-generation.patch", "tests/chaos/mutants/no-generations.patch"),
        ("; N24;", "; N99;"),
        ("; N10Q", "; N10X"),
        ("I13", "I99"),
        ("; V4 |", "; V7 |"),
        ("loadtest idle", "loadtest lazy"),
        ("`NO_FENCE`", "`NO_HEDGE`"),
        ('"the fence without the generation"', '"the fence without the number"'),
    ],
)
def test_a_wrong_name_is_found(true: str, false: str) -> None:
    text = page("tests/PROOFS.md") + "`tests/unit/test_proofs.py::test_what_a_page_names_exists`"
    assert true in text
    assert wrong_names(text.replace(true, false))


def test_a_line_that_is_gone_or_says_nothing_is_found() -> None:
    text = page("tests/PROOFS.md")
    (row,) = [line for line in text.splitlines() if line.startswith("| K15 ")]
    assert "K15" not in lines_of(text.replace(row, ""))
    assert without_proof(text.replace(row, "| K15 | all watch all | surely not |")) == ["K15"]
