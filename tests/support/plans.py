"""What PostgreSQL means to do with a statement: a small reader of EXPLAIN (FORMAT JSON).

    plan = await explain(connection, query("claim"), parameters)
    assert plan.partitions == {"jobs_d20260101", "jobs_d20260102"}
    assert plan.indexes == {"jobs_due"}
    assert not plan.sequential

Parameters are bound as psycopg binds them, so the plan is the custom plan that a worker gets. Index names are those
of the partitioned parent (`jobs_due`), whatever PostgreSQL called the index of the partition.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

_PARENTS = """
select c.relname, p.relname
from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One plan, as sets and numbers that a test can assert on."""

    document: Mapping[str, Any]
    """The first element of what EXPLAIN printed: {"Plan": …}."""
    parents: Mapping[str, str]
    """Partition or partition's index -> its parent."""

    def nodes(self) -> Iterator[Mapping[str, Any]]:
        """Every node, the root first."""
        waiting: list[Mapping[str, Any]] = [self.document["Plan"]]
        while waiting:
            node = waiting.pop(0)
            yield node
            waiting.extend(node.get("Plans", ()))

    @property
    def node_types(self) -> list[str]:
        """ "Limit", "LockRows", "Index Scan", …, the root first."""
        return [node["Node Type"] for node in self.nodes()]

    @property
    def tables(self) -> set[str]:
        """Every table that the plan reads or writes; an INSERT names the partitioned parent."""
        names = {node["Relation Name"] for node in self.nodes() if "Relation Name" in node}
        return names | {target["Relation Name"] for node in self.nodes() for target in node.get("Target Tables", ())}

    @property
    def partitions(self) -> set[str]:
        """Those of `tables` that are partitions: what planning did not prune."""
        return {name for name in self.tables if name in self.parents}

    def partitions_of(self, parent: str) -> set[str]:
        """Those of `partitions` that belong to `parent`."""
        return {name for name in self.tables if self.parents.get(name) == parent}

    @property
    def indexes(self) -> set[str]:
        """Every index used, by its parent's name where it has one."""
        names = {node["Index Name"] for node in self.nodes() if "Index Name" in node}
        return {self.parents.get(name, name) for name in names}

    @property
    def sequential(self) -> set[str]:
        """Tables read from end to end."""
        return {node["Relation Name"] for node in self.nodes() if node["Node Type"] == "Seq Scan"}

    @property
    def subplans_removed(self) -> int:
        """Partitions that only execution pruned: opened, locked and planned for nothing. 0 where planning pruned."""
        return sum(node.get("Subplans Removed", 0) for node in self.nodes())

    @property
    def executed(self) -> set[str]:
        """With `analyze`: tables whose scan was begun at least once."""
        return {node["Relation Name"] for node in self.nodes() if "Relation Name" in node and node["Actual Loops"] > 0}

    @property
    def buffers(self) -> int:
        """With `analyze`: 8 KiB blocks visited, planning not included."""
        root = self.document["Plan"]
        return int(root["Shared Hit Blocks"] + root["Shared Read Blocks"])

    @property
    def milliseconds(self) -> float:
        """With `analyze`: time of execution; for reports, never for assertions."""
        return float(self.document["Execution Time"])


async def explain(
    connection: psycopg.AsyncConnection[Any],
    statement: str,
    parameters: Mapping[str, Any] | Sequence[Any] | None = None,
    *,
    analyze: bool = False,
) -> Plan:
    """The plan of `statement`. `analyze` runs it, and takes back what it wrote."""
    options = "analyze, buffers, format json" if analyze else "format json"
    async with connection.transaction(force_rollback=True):
        cursor = await connection.execute(f"explain ({options}) {statement}".encode(), parameters, prepare=False)
        row = await cursor.fetchone()
        assert row is not None
        cursor = await connection.execute(_PARENTS)
        parents = dict(await cursor.fetchall())
    return Plan(document=row[0][0], parents=parents)


async def explain_prepared(
    connection: psycopg.AsyncConnection[Any],
    statement: str,
    parameters: Mapping[str, Any],
    *,
    analyze: bool = False,
    planned_before: Callable[[], Awaitable[Mapping[str, Any]]] | None = None,
) -> Plan:
    """The plan that the statement gets once it is prepared on this connection, whose plan_cache_mode counts.

    `planned_before`: called when the plan has been made, and before it is explained; answers with the later parameters.
    """
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", statement)
    await connection.execute(f"prepare explained as {text}".encode())

    async def explained(parameters: Mapping[str, Any], *, analyze: bool) -> Plan:
        arguments = sql.SQL(", ").join(sql.Literal(parameters[name]) for name in names).as_string(connection)
        return await explain(connection, f"execute explained ({arguments})".replace("%", "%%"), analyze=analyze)

    try:
        if planned_before is not None:
            await explained(parameters, analyze=False)
            parameters = await planned_before()
        return await explained(parameters, analyze=analyze)
    finally:
        await connection.execute("deallocate explained")
