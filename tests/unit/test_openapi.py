"""The OpenAPI document and the page made from it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from jsonschema import ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator

from ringcron_api.openapi import make_page
from ringcron_api.openapi.markdown import to_html
from ringcron_api.openapi.texts import GUARANTEES
from ringcron_api.problems import PROBLEMS
from tests.support.api import DOCUMENT, validate

PAGE = make_page(DOCUMENT)


def test_the_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_the_guarantees_stand_in_it() -> None:
    text = " ".join(DOCUMENT["info"]["description"].split())
    assert len(GUARANTEES) == 7
    for sentence in (
        "At least once. A job whose worker dies mid-run runs again. **Jobs must be idempotent**",
        "Never two live leases on one job.",
        "Late, never lost. With the database down nothing runs and nothing is lost.",
        "Claims are oldest first within a slice, but jobs are not executed strictly by due time.",
        "Cancel is decided by one atomic statement: 204 means that nothing will start any more; 409 means",
        "Time is the database's.",
        "correctness never needs it, and losing it never stops due jobs from running.",
    ):
        assert sentence in text


def test_every_problem_is_described_and_can_happen() -> None:
    written = json.dumps(DOCUMENT["paths"])
    schemas = DOCUMENT["components"]["schemas"]
    described = {schema["properties"]["code"]["const"]: name for name, schema in schemas.items() if _is_problem(schema)}
    assert described.keys() == PROBLEMS.keys()
    unused = {code for code, name in described.items() if f"#/components/schemas/{name}" not in written}
    assert unused == {"method-not-allowed"}  # of a path, not of a call


def _is_problem(schema: dict[str, Any]) -> bool:
    return "const" in schema.get("properties", {}).get("code", {})


def _examples() -> list[Any]:
    found = []
    for path, item in DOCUMENT["paths"].items():
        for method, call in item.items():
            contents = [call.get("requestBody", {}), *call["responses"].values()]
            for content in [one for part in contents for one in part.get("content", {}).values()]:
                for name, example in content.get("examples", {}).items():
                    found.append(pytest.param(content["schema"], example["value"], id=f"{method} {path} {name}"))
    return found


@pytest.mark.parametrize(("schema", "value"), _examples())
def test_every_example_is_what_its_schema_allows(schema: dict[str, Any], value: Any) -> None:
    validate(schema, value)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"runAt": "2027-01-01T00:00:00Z", "schedule": "* * * * *"},
        {"runAt": None},
        {"runAt": "2027-01-01T00:00:00Z", "onConflict": "keep"},
        {"runAt": "2027-01-01T00:00:00Z", "nonsense": 1},
        {"schedule": {"cron": "* * * * *", "every": "PT1H"}},
        {"runAt": "2027-01-01T00:00:00Z", "overlap": "queue"},
    ],
)
def test_the_schema_of_a_body_refuses_what_the_api_refuses(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validate({"$ref": "#/components/schemas/CreateJob"}, body)


class _Reader(HTMLParser):
    """Collects what a page would load or run, its anchors, and the links into itself."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id" and value:
                assert value not in self.anchors
                self.anchors.add(value)
            if name == "href" and value:
                self.links.append(value)


@pytest.fixture(scope="module")
def reader() -> _Reader:
    reader = _Reader()
    reader.feed(PAGE.html)
    return reader


def test_the_page_needs_no_network_and_runs_nothing(reader: _Reader) -> None:
    assert not {"script", "img", "link", "iframe", "form", "object"} & set(reader.tags)
    assert not {name for name in reader.attributes if name.startswith("on") or name in ("src", "style")}
    assert all(link.startswith("#") or link == "/openapi.json" for link in reader.links)
    assert PAGE.policy.startswith("default-src 'none'")


def test_the_one_style_sheet_is_allowed_by_its_hash() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", PAGE.html, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in PAGE.policy


def test_every_link_of_the_page_leads_somewhere(reader: _Reader) -> None:
    assert {link[1:] for link in reader.links if link.startswith("#")} <= reader.anchors
    assert {f"problem-{code}" for code in PROBLEMS} <= reader.anchors


def test_every_call_and_schema_is_on_the_page(reader: _Reader) -> None:
    for item in DOCUMENT["paths"].values():
        assert all(call["operationId"] in reader.anchors for call in item.values())
    schemas = DOCUMENT["components"]["schemas"]
    assert {f"schema-{name}" for name in schemas if not _is_problem(schemas[name])} <= reader.anchors


def test_prose_is_escaped() -> None:
    assert to_html("a <b> & `c<d>` **e**") == "<p>a &lt;b&gt; &amp; <code>c&lt;d&gt;</code> <strong>e</strong></p>"
    assert to_html("## H\n\n1. one\n   more\n2. two") == "<h2>H</h2>\n<ol><li>one\n   more</li><li>two</li></ol>"
