"""Operations and models → the OpenAPI document.

Invariant: JSON Schema 2020-12 as pydantic writes it is OpenAPI 3.1, so schemas are taken over, not translated; every
status that an operation can answer with is in the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ringcron import __version__
from ringcron_api.openapi.patch_schema import patch_schema
from ringcron_api.openapi.problem_schemas import problem_responses, problem_schemas
from ringcron_api.openapi.texts import DESCRIPTION, GROUPS
from ringcron_api.operations import NDJSON, Answer, Operation
from ringcron_api.schemas import CRON_SCHEMA, CRON_TEXT_SCHEMA, EVERY_SCHEMA
from ringcron_api.shapes import FaultShape, ProblemShape

Document = dict[str, Any]

_ANY_CALL: Final = ("bad-request", "internal-error")
_WITH_KEY: Final = ("unauthorized", "forbidden", "too-many-requests", "store-unavailable")
_FOR_OWN_NAMES: Final = ("host-not-allowed",)
_WITH_QUERY: Final = ("validation-failed",)
_IDEMPOTENT: Final = ("idempotency-in-progress", "idempotency-key-reused")
_WITH_BODY: Final = (
    "malformed-json",
    "request-timeout",
    "payload-too-large",
    "unsupported-media-type",
    "expectation-failed",
)
_JOB_ID: Final = {
    "name": "jobId",
    "in": "path",
    "required": True,
    "description": "The id of a job.",
    "schema": {"type": "string", "format": "uuid"},
}
_RUN_ID: Final = {
    "name": "runId",
    "in": "path",
    "required": True,
    "description": "The id of a run: `<jobId>.<leaseGeneration>`.",
    "schema": {"type": "string"},
}
_IDEMPOTENCY_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Makes it safe to send the request again: the same key with the same body gets the answer of the "
    "first time, with `Idempotency-Replayed: true`, for 24 h. Only successes are kept. It belongs to caller and path.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
}
_TRACEPARENT: Final = {
    "name": "traceparent",
    "in": "header",
    "required": False,
    "description": "The caller's trace (W3C Trace Context). Each run of the job is a trace of its own, linked to it, "
    "where workers make traces. One that cannot be understood is ignored.",
    "schema": {"type": "string"},
    "example": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
_TRACESTATE: Final = {
    "name": "tracestate",
    "in": "header",
    "required": False,
    "description": "What tracing systems say beside `traceparent`; kept with it, a part of the link. One without it, "
    "of more than 512 characters, or that cannot be understood is ignored.",
    "schema": {"type": "string"},
    "example": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
}
_KEY: Final = "apiKey"
_KEY_SCHEME: Final = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "rc_<id>_<secret>",
    "description": "Not needed on loopback as long as no key exists.",
}
_ONE_OF_BOTH: Final = {
    "oneOf": [
        {"required": ["runAt"], "properties": {"runAt": {"type": "string"}, "schedule": {"type": "null"}}},
        {
            "required": ["schedule"],
            "properties": {"schedule": {"type": ["string", "object"]}, "runAt": {"type": "null"}},
        },
    ],
    "dependentSchemas": {"onConflict": {"required": ["key"], "properties": {"key": {"type": "string"}}}},
}
"""What CreateJob demands between its fields."""


def make_document(operations: Sequence[Operation]) -> Document:
    """The whole document."""
    schemas = _schemas(operations)
    queries = {operation.query for operation in operations if operation.query is not None}
    parameters = {query: _parameters(schemas.pop(query.__name__)) for query in queries}
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, parameters[operation.query] if operation.query else []
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ringcron",
            "version": __version__,
            "summary": "A distributed job scheduler",
            "description": DESCRIPTION,
        },
        "tags": [{"name": name, "description": meaning} for name, meaning in GROUPS.items()],
        "paths": paths,
        "components": {"schemas": {**schemas, **problem_schemas()}, "securitySchemes": {_KEY: _KEY_SCHEME}},
    }


def _schemas(operations: Sequence[Operation]) -> dict[str, Any]:
    """Every model by its name on the wire."""
    models: set[type[BaseModel]] = {FaultShape, ProblemShape}
    for operation in operations:
        shapes = (shape for answer in operation.answers.values() for shape in (answer.shape, answer.line))
        read = (operation.query, operation.body, operation.body_line)
        models.update(model for model in (*read, *shapes) if model is not None)
    ordered = sorted(models, key=lambda model: model.__name__)
    _, definitions = models_json_schema(
        [(model, "validation") for model in ordered], ref_template="#/components/schemas/{model}"
    )
    schemas: dict[str, Any] = _tidy(definitions["$defs"])
    schemas["CreateJob"] |= _ONE_OF_BOTH
    schemas |= {"CronSchedule": CRON_SCHEMA, "IntervalSchedule": EVERY_SCHEMA, "CronText": CRON_TEXT_SCHEMA}
    named = [{"$ref": f"#/components/schemas/{name}"} for name in ("CronSchedule", "IntervalSchedule", "CronText")]
    schemas["CreateJob"]["properties"]["schedule"]["anyOf"] = [*named, {"type": "null"}]
    schemas["PreviewSchedule"]["properties"]["schedule"]["anyOf"] = named
    schemas["PatchJob"] = patch_schema(schemas["PatchJob"])
    return schemas


def _tidy(value: Any) -> Any:
    """Without the titles that pydantic makes up and without `default: null`, and with `Shape` off the names."""
    if isinstance(value, list):
        return [_tidy(element) for element in value]
    if isinstance(value, str) and value.startswith("#/components/schemas/"):
        return value.removesuffix("Shape")
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, member in value.items():
        made_up = (name == "title" and isinstance(member, str)) or (name == "default" and member is None)
        if not made_up:
            kept[name.removesuffix("Shape")] = _tidy(member)
    return kept


def _parameters(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A query model as parameters."""
    parameters = []
    for name, member in schema.get("properties", {}).items():
        shown = dict(member)
        description = shown.pop("description", None)
        alternatives = [one for one in shown.pop("anyOf", []) if one != {"type": "null"}]
        if alternatives:
            shown |= alternatives[0]
        parameter = {"name": name, "in": "query", "required": False, "schema": shown}
        parameters.append(parameter | ({"description": description} if description else {}))
    return parameters


def _operation(operation: Operation, parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    in_path = [parameter for parameter in (_JOB_ID, _RUN_ID) if f"{{{parameter['name']}}}" in operation.path]
    codes = [*_ANY_CALL, *operation.problems]
    codes += () if operation.open else _WITH_KEY
    if not (operation.open or operation.any_host):
        codes += _FOR_OWN_NAMES if operation.method == "GET" else (*_FOR_OWN_NAMES, "origin-not-allowed")
    codes += _WITH_QUERY if operation.query else ()
    codes += _WITH_BODY if operation.body else ()
    codes += _IDEMPOTENT if operation.idempotent else ()
    in_header = [_IDEMPOTENCY_KEY] if operation.idempotent else []
    in_header += [_TRACEPARENT, _TRACESTATE] if operation.traced else []
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.group],
        "summary": operation.summary,
        "description": _description(operation),
        "security": [] if operation.open else [{_KEY: [operation.needed_scope.value]}],
        "parameters": [*in_path, *parameters, *in_header],
        "responses": {
            **{str(status): _answer(answer) for status, answer in operation.answers.items()},
            **problem_responses(codes),
        },
    }
    if operation.body is not None:
        described["requestBody"] = {
            "required": True,
            "content": {
                kind: {
                    "schema": _reference(operation.body),
                    "examples": _examples(operation.body_examples.items()),
                }
                for kind in operation.body_kinds
            },
        }
        if operation.body_line is not None:
            described["requestBody"]["content"][NDJSON] = {"schema": _reference(operation.body_line)}
    empty = ("description", "parameters")
    return {name: member for name, member in described.items() if member or name not in empty}


def _description(operation: Operation) -> str:
    scope = "Open: needs no key." if operation.open else f"Scope: `{operation.needed_scope}`."
    return f"{operation.description} {scope}".strip()


def _answer(answer: Answer) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.description}
    if answer.headers:
        described["headers"] = {
            name: {"description": meaning, "schema": {"type": "string"}} for name, meaning in answer.headers.items()
        }
    if answer.shape is not None:
        one = _reference(answer.shape)
        content: dict[str, Any] = {"schema": {"type": "array", "items": one} if answer.listed else one}
        if answer.examples:
            content["examples"] = _examples(answer.examples.items())
        described["content"] = {answer.media_type: content}
        if answer.line is not None:
            described["content"][NDJSON] = {"schema": _reference(answer.line)}
    elif answer.media_type != "application/json":
        described["content"] = {answer.media_type: {"schema": {"type": "string"}}}
    return described


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__.removesuffix('Shape')}"}


def _examples(examples: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: {"value": value} for name, value in examples}
