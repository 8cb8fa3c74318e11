"""The schema of a merge patch, made from that of the fields that it may change.

Invariant: whatever the API accepts is allowed here. A patch of an object may name any part of it, so nothing is
required, and null stands for the default of each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ringcron_api.schemas import CRON_SCHEMA, EVERY_SCHEMA

_NULL: Final = {"type": "null"}
_MEMBERS: Final = {**CRON_SCHEMA["properties"], **EVERY_SCHEMA["properties"]}
_SCHEDULE: Final = {
    "anyOf": [
        {
            "type": "object",
            "description": "Merged into the stored schedule. To go from `cron` to `every`, set `cron` and "
            "`timezone` to null.",
            "additionalProperties": False,
            "properties": {name: {"anyOf": [member, _NULL]} for name, member in _MEMBERS.items()},
        },
        {"$ref": "#/components/schemas/CronText"},
        _NULL,
    ]
}
_RETRY: Final = {"anyOf": [{"type": "object", "description": "Merged into the stored `retry`."}, _NULL]}


def patch_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of PatchJob, from what pydantic wrote of it."""
    properties = {name: _or_null(member) for name, member in schema["properties"].items()}
    for name, merged in (("schedule", _SCHEDULE), ("retry", _RETRY)):
        described = properties[name].get("description")
        properties[name] = {**merged, **({"description": described} if described else {})}
    return {**schema, "properties": properties}


def _or_null(member: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in member.items() if name != "default"}
    description = {"description": shown.pop("description")} if "description" in shown else {}
    if not shown:  # any JSON
        return description
    alternatives = shown["anyOf"] if set(shown) == {"anyOf"} else [shown]
    return {"anyOf": [*(one for one in alternatives if one != _NULL), _NULL], **description}
