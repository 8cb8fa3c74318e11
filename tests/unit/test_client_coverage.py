"""The client and the API do not drift apart: every call has a method, every member of an answer and a body a field."""

from __future__ import annotations

import dataclasses
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from ringcron import client
from ringcron.client import Client, JobChanges, NewJob
from ringcron_api import creation_shapes, forecast_schemas, shapes
from ringcron_api.routes import OPERATIONS
from ringcron_api.schemas import CreateJob, PatchJob, names_of

METHODS = {
    "createJob": "create_job",
    "createJobs": "create_jobs",
    "listJobs": "list_jobs",
    "getJob": "get_job",
    "patchJob": "patch_job",
    "cancelJob": "cancel_job",
    "triggerJob": "trigger",
    "redriveJob": "redrive",
    "redriveJobs": "redrive_all",
    "explainJob": "explain",
    "cancelRun": "cancel_run",
    "listRuns": "runs",
    "listSkips": "skips",
    "listAudit": "audit",
    "previewSchedule": "preview",
    "listShards": "shards",
    "listWorkers": "workers",
    "showForecast": "forecast",
    "showAutoscale": "autoscale",
}
FOR_MACHINES = {"healthz", "readyz", "metrics", "openapi", "docs"}
"""Calls that no program makes by the client."""


def test_every_call_of_the_api_has_a_method() -> None:
    assert {operation.name for operation in OPERATIONS} == METHODS.keys() | FOR_MACHINES
    assert all(callable(getattr(Client, method)) for method in METHODS.values())


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (client.Job, shapes.WholeJobShape),
        (client.CreatedJob, shapes.CreatedJobShape),
        (client.Retry, shapes.StoredRetryShape),
        (client.Run, shapes.RunShape),
        (client.Skip, shapes.SkipShape),
        (client.AuditEntry, shapes.AuditShape),
        (client.Explanation, shapes.ExplanationShape),
        (client.Redriven, shapes.RedrivenShape),
        (client.Worker, shapes.WorkerShape),
        (client.Shards, shapes.Shards),
        (client.Shard, shapes.ShardShape),
        (client.Forecast, forecast_schemas.ForecastShape),
        (client.Peak, forecast_schemas.PeakShape),
        (client.Autoscale, forecast_schemas.AutoscaleShape),
        (client.SlotLag, shapes.SlotShape),
        (client.BatchResult, creation_shapes.BatchStoredShape),
        (client.BatchResult, creation_shapes.BatchErrorShape),
        (client.Preview, creation_shapes.PreviewShape),
        (client.Mark, creation_shapes.MarkShape),
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_member_of_an_answer_is_read(kind: type[Any], shape: type[BaseModel]) -> None:
    shown = {field.alias or name for name, field in shape.model_fields.items()}
    assert shown <= _wire_names(kind)


def test_every_field_of_a_body_can_be_given() -> None:
    assert _wire_names(NewJob) == set(names_of(CreateJob))
    given = {to_camel(name) for name in JobChanges.__annotations__}
    assert given | {"paused", "pauseReason"} == set(names_of(PatchJob)) - {"key", "onConflict"}


def _wire_names(kind: type[Any]) -> set[str]:
    hints = get_type_hints(kind, include_extras=True)
    names = {field.name: to_camel(field.name) for field in dataclasses.fields(kind)}
    for name in names:
        for note in getattr(hints[name], "__metadata__", ()):
            if isinstance(note, FieldInfo) and note.alias:
                names[name] = note.alias
    return set(names.values())
