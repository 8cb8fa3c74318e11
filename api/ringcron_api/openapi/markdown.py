"""The little CommonMark that the prose is written in → HTML: headings, paragraphs, lists, `code`, **bold**."""

from __future__ import annotations

import re
from html import escape
from typing import Final

_ITEM: Final = re.compile(r"(?:\d+\.|-) ")
_CODE: Final = re.compile(r"`([^`]+)`")
_BOLD: Final = re.compile(r"\*\*([^*]+)\*\*")


def inline(text: str) -> str:
    """One line of prose as HTML."""
    return _BOLD.sub(r"<strong>\1</strong>", _CODE.sub(r"<code>\1</code>", escape(text)))


def to_html(text: str) -> str:
    """Prose as HTML; its headings begin at h2."""
    return "\n".join(_block(block.splitlines()) for block in re.split(r"\n\s*\n", text.strip()))


def _block(lines: list[str]) -> str:
    if lines[0].startswith("#"):
        depth = len(lines[0]) - len(lines[0].lstrip("#"))
        return f"<h{depth}>{inline(lines[0].lstrip('# '))}</h{depth}>"
    if _ITEM.match(lines[0]):
        kind = "ul" if lines[0].startswith("-") else "ol"
        items = re.split(r"\n(?=(?:\d+\.|-) )", "\n".join(lines))
        texts = [inline(_ITEM.sub("", item, count=1)) for item in items]
        return f"<{kind}>{''.join(f'<li>{text}</li>' for text in texts)}</{kind}>"
    return f"<p>{inline(' '.join(lines))}</p>"
