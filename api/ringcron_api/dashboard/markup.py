"""HTML from Python values: tag("a", "5 dead", href="/dashboard/dead").

Invariant: a text becomes HTML here, escaped, and nowhere else. Only what `tag`, `join` or `asset` made is `Markup`; a
payload, a name or an error that reaches a page as anything else is shown as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

_VOID: Final = frozenset({"br", "circle", "hr", "img", "input", "line", "link", "meta", "path", "rect"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]
Attribute = str | int | float | bool | None


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """An element. `class_` is class, `data_view` is data-view; True is an attribute without a value, None and False
    leave it out."""
    told = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if name in _VOID and not children:
        return Markup(f"<{name}{told}>" if name not in ("circle", "line", "path", "rect") else f"<{name}{told}/>")
    return Markup(f"<{name}{told}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """The children one after the other."""
    return Markup("".join(_html(child) for child in children))


def _html(child: Child) -> str:
    match child:
        case None:
            return ""
        case Markup():
            return child
        case str():
            return escape(child)
        case int() | float():
            return str(child)
    return join(*child)


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
