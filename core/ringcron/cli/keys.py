"""`ringcron key`: add, list and revoke API keys, straight in the database, so that the first key needs no other.

Invariant: the secret of a new key is written once, to standard output, with nothing beside it unless --json asks for
that: `ringcron key add ci --scope write > key` keeps it. Exit codes: 0 done; 1 refused, or the database cannot be used;
2 wrong usage.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, TypeVar

import typer

from ringcron import service
from ringcron.api_keys import ApiKey, KeyText, Scope
from ringcron.cli.database_address import database_settings
from ringcron.cli.faults import told
from ringcron.clock import SystemClock
from ringcron.errors import RingcronError
from ringcron.instants import format_instant
from ringcron.redaction import redact
from ringcron.settings import DatabaseSettings
from ringcron.store.keys import KeyStore
from ringcron.store.link import Link

T = TypeVar("T")

LONGEST_NAME: Final = 100
LEAST_RATE: Final = 0.001
MOST_RATE: Final = 1_000_000
STATEMENT_SECONDS: Final = 10.0

key = typer.Typer(no_args_is_help=True)


def _name(text: str) -> str:
    if not (1 <= len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip()):
        raise typer.BadParameter(f"must be 1 to {LONGEST_NAME} printable characters without blanks around them")
    return text


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise typer.BadParameter(f"must be a number from {LEAST_RATE:g} to {MOST_RATE:,d}, calls a second")
    return rate


AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url", metavar="URL", help="PostgreSQL; default: of the `ringcron up` here. [RINGCRON_DATABASE_URL]"
    ),
]


@key.command("add")
def add(
    name: Annotated[
        str, typer.Argument(parser=_name, metavar="NAME", help="Whose key it is; no two live ones share it.")
    ],
    scope: Annotated[Scope, typer.Option("--scope", help="What it may do; each includes the ones before it.")],
    rate: Annotated[
        float | None,
        typer.Option("--rate", parser=_rate, metavar="N", help="Most calls a second, in each API process."),
    ] = None,
    burst: Annotated[
        int | None,
        typer.Option(
            "--burst", metavar="N", min=1, max=MOST_RATE, help="Most calls at once; default: those of a second."
        ),
    ] = None,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a key and print it, this once."""
    if burst is not None and rate is None:
        raise typer.BadParameter("--burst belongs to a --rate")
    drawn = KeyText.draw()
    if rate is not None and burst is None:
        burst = math.ceil(rate)
    _ask(
        database_url,
        lambda store: store.add_key(drawn, name=name, scope=scope, rate_per_second=rate, burst=burst),
    )
    if as_json:
        about = {"id": drawn.id, "name": name, "scope": scope.value, "ratePerSecond": rate, "burst": burst}
        typer.echo(json.dumps({**about, "key": drawn.reveal()}))
        return
    typer.echo(drawn.reveal())
    typer.echo(f"This is the key {drawn.id} of {name}, scope {scope}. It is not shown again.", err=True)


@key.command("list")
def list_keys(as_json: AsJson = False, database_url: DatabaseUrl = None) -> None:
    """Show every key, the revoked ones too; never a secret."""
    found = _ask(database_url, lambda store: store.list_keys(live_only=False))
    if as_json:
        typer.echo(json.dumps([_document(one) for one in found], indent=2))
        return
    from ringcron.cli.tables import print_table  # brings a library that the programs do without

    print_table(
        ("ID", "NAME", "SCOPE", "RATE", "CREATED", "LAST USED", "REVOKED"),
        ((one.id, one.name, one.scope, _limit(one), one.created_at, one.last_used_at, one.revoked_at) for one in found),
        empty="no keys; `ringcron key add NAME --scope read|write|admin` makes one",
    )


@key.command("revoke")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the key, as `ringcron key list` shows it.")],
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
) -> None:
    """End a key for good: within 5 seconds no API lets it in any more. Revoking it again changes nothing."""
    name, revoked_at = _ask(database_url, lambda store: store.revoke_key(key_id))
    if as_json:
        typer.echo(json.dumps({"id": key_id, "name": name, "revokedAt": format_instant(revoked_at)}))
        return
    typer.echo(f"revoked the key {key_id} of {name}")


def _ask(database_url: str | None, work: Callable[[KeyStore], Awaitable[T]]) -> T:
    """What the database answers; ends the command where it does not."""

    async def asked(settings: DatabaseSettings) -> T:
        link = Link(
            settings.database_url,
            application_name="ringcron-key",
            seconds=STATEMENT_SECONDS,
            behind_pooler=settings.behind_pooler,
        )
        try:
            return await work(KeyStore(link, clock=SystemClock()))
        finally:
            await link.close()

    with told():
        settings = database_settings(os.environ, database_url)
        try:
            return asyncio.run(asked(settings))
        except RingcronError:
            raise
        except Exception as error:  # psycopg's errors, which only the store knows by name, are told like any other
            typer.echo(f"ringcron: {redact(str(error)).strip()}", err=True)
            raise typer.Exit(service.FAULT) from None


def _limit(one: ApiKey) -> str | None:
    return None if one.rate_per_second is None else f"{one.rate_per_second:g}/s, {one.burst} at once"


def _document(one: ApiKey) -> dict[str, Any]:
    instants = {"createdAt": one.created_at, "lastUsedAt": one.last_used_at, "revokedAt": one.revoked_at}
    return {
        "id": one.id,
        "name": one.name,
        "scope": one.scope.value,
        "ratePerSecond": one.rate_per_second,
        "burst": one.burst,
        **{name: None if instant is None else format_instant(instant) for name, instant in instants.items()},
    }
