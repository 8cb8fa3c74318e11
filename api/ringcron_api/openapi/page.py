"""The document for people: one HTML page, rendered once, without scripts and without the network.

Invariant: all that the page shows comes from the OpenAPI document, escaped; the policy lets nothing load, run or be
sent. The one style sheet stands in the page and is allowed by its hash.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import Any, Final

from ringcron_api.openapi.markdown import inline, to_html

_STYLE: Final = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--accent:#2f6f4f}
body{font:16px/1.55 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1,h2,h3{line-height:1.25}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
code,pre{font:.88em/1.45 ui-monospace,monospace}code{background:var(--soft);padding:.1em .25em;border-radius:3px}
pre{background:var(--soft);padding:.75rem;overflow-x:auto;border-radius:4px}
table{border-collapse:collapse;width:100%;margin:.5rem 0 1rem}
td,th{border-bottom:1px solid var(--line);padding:.35rem .6rem .35rem 0;text-align:left;vertical-align:top}
nav{columns:2}nav ul{margin:0;padding-left:1.2rem}a{color:var(--accent)}
.call{font-size:1.1rem;margin-top:2rem}.method{display:inline-block;min-width:4.5rem;font-weight:700}
summary{cursor:pointer}
"""
_METHODS: Final = ("get", "post", "patch", "put", "delete")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page and its Content-Security-Policy."""

    html: str
    policy: str


def make_page(document: Mapping[str, Any]) -> Page:
    """The document as a page."""
    info = document["info"]
    calls = [
        (path, method, item[method])
        for path, item in document["paths"].items()
        for method in _METHODS
        if method in item
    ]
    parts = [
        f"<h1>{escape(info['title'])} <small>{escape(info['version'])}</small></h1>",
        '<p><a href="/openapi.json">openapi.json</a></p>',
        to_html(info["description"]),
        "<h2>Calls</h2>",
        _contents(document["tags"], calls),
    ]
    for tag in document["tags"]:
        parts.append(f"<h2>{escape(tag['name'])}</h2><p>{inline(tag['description'])}</p>")
        parts += [_call(path, method, call) for path, method, call in calls if tag["name"] in call["tags"]]
    schemas = document["components"]["schemas"]
    problems = {name: schema for name, schema in schemas.items() if "const" in _code_of(schema)}
    parts += ["<h2>Problems</h2>", _problems(problems.values())]
    parts += ["<h2>Schemas</h2>", *(_schema(name, schemas[name]) for name in sorted(schemas.keys() - problems.keys()))]
    body = "\n".join(parts)
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{escape(info['title'])}</title>"
    html = (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n'
    )
    digest = b64encode(sha256(_STYLE.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(html=html, policy=policy)


def _code_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    code = schema.get("properties", {}).get("code", {})
    assert isinstance(code, Mapping)
    return code


def _contents(tags: Iterable[Mapping[str, Any]], calls: Iterable[tuple[str, str, Mapping[str, Any]]]) -> str:
    calls = list(calls)
    items = [
        f'<li><a href="#{escape(call["operationId"])}"><code>{method.upper()} {escape(path)}</code></a> '
        f"{inline(call['summary'])}</li>"
        for tag in tags
        for path, method, call in calls
        if tag["name"] in call["tags"]
    ]
    return f"<nav><ul>{''.join(items)}</ul></nav>"


def _call(path: str, method: str, call: Mapping[str, Any]) -> str:
    parts = [
        f'<h3 class="call" id="{escape(call["operationId"])}"><span class="method">{method.upper()}</span> '
        f"<code>{escape(path)}</code></h3>",
        f"<p><strong>{inline(call['summary'])}.</strong> {inline(call.get('description', ''))}</p>",
    ]
    if call.get("parameters"):
        rows = [
            (
                f"<code>{escape(one['name'])}</code> in {one['in']}",
                _type(one["schema"]),
                inline(one.get("description", "")),
            )
            for one in call["parameters"]
        ]
        parts.append(_table(("Parameter", "Type", ""), rows))
    if "requestBody" in call:
        content = call["requestBody"]["content"]["application/json"]
        parts.append(f"<p>Body: {_type(content['schema'])}</p>{_examples(content)}")
    answers = []
    for status, response in call["responses"].items():
        contents = list(response.get("content", {}).values())
        shapes = " ".join(_type(content["schema"]) for content in contents)
        shown = "".join(_examples(content) for content in contents)
        answers.append((f"<code>{status}</code>", shapes, f"{inline(response['description'])}{shown}"))
    parts.append(_table(("Status", "Body", ""), answers))
    return "\n".join(parts)


def _examples(content: Mapping[str, Any]) -> str:
    return "".join(
        f"<details><summary>Example: {escape(name)}</summary>"
        f"<pre>{escape(json.dumps(example['value'], indent=2, ensure_ascii=False))}</pre></details>"
        for name, example in content.get("examples", {}).items()
    )


def _problems(schemas: Iterable[Mapping[str, Any]]) -> str:
    rows = []
    for schema in schemas:
        members = schema["properties"]
        own = ", ".join(f"<code>{escape(name)}</code>" for name in members if name not in ("code", "status", "title"))
        code = members["code"]["const"]
        rows.append(
            (
                f'<code id="problem-{escape(code)}">{escape(code)}</code>',
                str(members["status"]["const"]),
                f"{inline(members['title']['const'])}. {inline(schema['description'])}",
                own,
            )
        )
    return _table(("Code", "Status", "", "Members of its own"), rows)


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    heading = f'<h3 id="schema-{escape(name)}">{escape(name)}</h3>'
    described = to_html(schema["description"]) if "description" in schema else ""
    if "properties" not in schema:
        return f"{heading}{described}<p>{_type(schema)}</p>"
    required = schema.get("required", ())
    rows = [
        (
            f"<code>{escape(member)}</code>{' (required)' if member in required else ''}",
            _type(shape),
            inline(shape.get("description", ""))
            + (f" Default: <code>{escape(json.dumps(shape['default']))}</code>." if "default" in shape else ""),
        )
        for member, shape in schema["properties"].items()
    ]
    return heading + described + _table(("Field", "Type", ""), rows)


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words; what has a name is a link."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name.endswith("Problem") and name != "Problem":
            return ""
        return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema and "properties" not in schema:
            return " or ".join(filter(None, (_type(one) for one in schema[keyword])))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " | ".join(f"<code>{escape(json.dumps(value))}</code>" for value in values)
    kind = schema.get("type", "any")
    words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    if words == "array" and "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "title" in schema:
        words = str(schema["title"])
    if "properties" in schema:
        members = ", ".join(
            f"<code>{escape(name)}</code>: {_type(member)}" for name, member in schema["properties"].items()
        )
        return f"{escape(words)} {{{members}}}"
    notes = [schema["format"]] if "format" in schema else []
    bounds = (("minimum", "≥"), ("maximum", "≤"), ("minLength", "length ≥"), ("maxLength", "length ≤"))
    notes += [f"{sign} {schema[name]}" for name, sign in bounds if name in schema]
    return escape(words + (f" ({', '.join(notes)})" if notes else ""))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """`rows` are HTML, `head` is text."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
