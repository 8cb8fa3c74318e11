"""The shipped Dockerfile, manifests, ScaledObjects and compose.yaml: valid, and about what exists."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

import ringcron
from ringcron.cli import app
from ringcron.metrics import DECLARED
from ringcron_api.routes import OPERATIONS
from tests.support.deployed import (
    DEPLOY,
    Told,
    compose,
    documents,
    pods,
    told_by_compose,
    told_by_kubernetes,
)
from tests.support.prometheus import metrics_in

ROOT = DEPLOY.parent
PATHS = {operation.path for operation in OPERATIONS}
MANIFESTS = list(documents("kubernetes"))
PODS = list(pods())
METRICS_PORT = 9464


@pytest.fixture(params=["kubernetes", "compose"])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> list[Told]:
    secret = tmp_path / "database-url"
    secret.write_text("postgresql://ringcron:secret@postgres:5432/ringcron")
    return list(told_by_kubernetes(secret) if request.param == "kubernetes" else told_by_compose())


def test_each_program_is_started_with_settings_that_it_has_and_accepts(told: list[Told]) -> None:
    assert {one.program for one in told} >= {"api", "coordinator", "worker", "migrate"}
    for one in told:
        assert one.unknown() == set(), one.where
        settings = one.settings()
        assert settings.database_url.startswith("postgresql://ringcron:secret@"), one.where
        if one.program in ("coordinator", "worker"):
            assert settings.metrics_port == METRICS_PORT
            assert settings.metrics_host == "0.0.0.0"
            assert settings.zookeeper.endswith("/ringcron")


def test_workers_get_more_time_to_stop_than_a_drain_takes(told: list[Told]) -> None:
    (worker,) = [one for one in told if one.program == "worker"]
    settings = worker.settings()
    assert worker.grace_seconds >= settings.drain_seconds + 2 * settings.lease_seconds + 10


def test_the_commands_exist(told: list[Told]) -> None:
    for one in told:
        command: Any = typer.main.get_command(app)
        flags = [word for word in one.arguments if word.startswith("--")]
        for word in one.arguments:
            if not hasattr(command, "commands"):
                break
            command = command.commands[word]
        assert not hasattr(command, "commands"), one.where
        assert {*flags} <= {option for parameter in command.params for option in parameter.opts}


OBJECTS = [(file, document) for file, document in MANIFESTS if document["kind"] != "Kustomization"]


@pytest.mark.parametrize(("file", "document"), OBJECTS, ids=[f"{f}-{d['kind']}" for f, d in OBJECTS])
def test_manifests_are_what_kubernetes_takes(file: str, document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.37", strict=True)


def test_the_kustomization_takes_every_manifest_but_what_is_done_by_hand() -> None:
    (kustomization,) = [d for f, d in MANIFESTS if f == "kustomization.yaml"]
    assert {*kustomization["resources"], "kustomization.yaml", "first-key.yaml", "secret.example.yaml"} == {
        file for file, _ in MANIFESTS
    }
    assert kustomization["images"] == [{"name": "ringcron", "newName": "ringcron", "newTag": ringcron.__version__}]


@pytest.mark.parametrize(("where", "workload", "template"), PODS, ids=[where for where, _, _ in PODS])
def test_pods_have_no_rights_and_are_found_by_what_selects_them(
    where: str, workload: dict[str, Any], template: dict[str, Any]
) -> None:
    spec = template["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == spec["securityContext"]["fsGroup"] == 10001
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container["resources"]) == {"requests", "limits"}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in spec["volumes"]}
    (told_secret,) = [d["data"]["RINGCRON_DATABASE_URL_FILE"] for _, d in MANIFESTS if d["kind"] == "ConfigMap"]
    (example,) = [d for f, d in MANIFESTS if f == "secret.example.yaml"]
    assert told_secret in {f"{mounts['secret']}/{key}" for key in example["stringData"]}
    if selector := workload["spec"].get("selector"):
        assert selector["matchLabels"].items() <= template["metadata"]["labels"].items()
    for constraint in spec.get("topologySpreadConstraints", ()):
        assert constraint["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_what_selects_pods_selects_some() -> None:
    labels = [template["metadata"]["labels"] for _, _, template in PODS]
    for _, document in MANIFESTS:
        selector = document.get("spec", {}).get("selector" if document["kind"] != "NetworkPolicy" else "podSelector")
        if document["kind"] not in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
            continue
        wanted = selector if document["kind"] == "Service" else selector.get("matchLabels", {})
        assert any(wanted.items() <= has.items() for has in labels), document["metadata"]["name"]
        for expression in selector.get("matchExpressions", ()) if document["kind"] != "Service" else ():
            assert {*expression["values"]} <= {has.get(expression["key"]) for has in labels}


def test_probes_ask_paths_and_ports_that_are_served() -> None:
    probed = set()
    for where, _, template in PODS:
        (container,) = template["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            if kind not in container:
                continue
            asked = container[kind]["httpGet"]
            probed.add((where, kind))
            if asked["port"] == "metrics":
                assert (asked["path"], ports["metrics"]) == ("/metrics", METRICS_PORT)
            else:
                assert asked["path"] in PATHS
                assert {"name": "RINGCRON_API_PORT", "value": str(ports["http"])} in container["env"]
    assert len(probed) == 9
    (liveness,) = [t["spec"]["containers"][0]["livenessProbe"] for w, _, t in PODS if w == "Deployment/ringcron-api"]
    assert liveness["httpGet"]["path"] == "/healthz"  # a database that is down must not restart the API


def test_services_lead_to_ports_that_containers_open() -> None:
    opened = {
        template["metadata"]["labels"]["app.kubernetes.io/component"]: {
            port["name"] for port in template["spec"]["containers"][0].get("ports", ())
        }
        for _, _, template in PODS
    }
    for _, document in MANIFESTS:
        if document["kind"] == "Service":
            component = document["spec"]["selector"]["app.kubernetes.io/component"]
            assert {port["targetPort"] for port in document["spec"]["ports"]} <= opened[component]


# --- KEDA ---


def scaled() -> Iterator[tuple[str, dict[str, Any]]]:
    for file, document in documents("keda"):
        if document["kind"] == "ScaledObject":
            yield file, document


def test_scaled_objects_scale_the_workers_by_the_places_that_one_has() -> None:
    (worker,) = [workload for _, workload, _ in PODS if workload["kind"] == "StatefulSet"]
    assert "replicas" not in worker["spec"]  # else every apply undoes what KEDA did
    environment = {e["name"]: e.get("value") for e in worker["spec"]["template"]["spec"]["containers"][0]["env"]}
    objects = dict(scaled())
    assert objects.keys() == {"worker-by-autoscale.yaml", "worker-by-prometheus.yaml"}
    for document in objects.values():
        spec = document["spec"]
        assert spec["scaleTargetRef"] == {"kind": "StatefulSet", "name": worker["metadata"]["name"]}
        assert 0 < spec["minReplicaCount"] <= spec["fallback"]["replicas"] <= spec["maxReplicaCount"]
        (trigger,) = spec["triggers"]
        assert trigger["metricType"] == "AverageValue"  # a fallback needs it, and it divides by the places
        told = trigger["metadata"].get("targetValue") or trigger["metadata"]["threshold"]
        assert told == environment["RINGCRON_CONCURRENCY"]


def test_keda_asks_the_api_with_a_key() -> None:
    (document,) = [document for file, document in scaled() if "autoscale" in file]
    (trigger,) = document["spec"]["triggers"]
    (service,) = [d for _, d in MANIFESTS if d["kind"] == "Service" and d["metadata"]["name"] == "ringcron-api"]
    (port,) = service["spec"]["ports"]
    assert trigger["type"] == "metrics-api"
    assert trigger["metadata"]["url"] == f"http://ringcron-api.ringcron:{port['port']}/autoscale"
    (autoscale,) = [operation for operation in OPERATIONS if operation.path == "/autoscale"]
    shape = autoscale.answers[200].shape
    assert shape is not None
    assert trigger["metadata"]["valueLocation"] in {field.alias for field in shape.model_fields.values()}
    assert trigger["metadata"]["authMode"] == "bearer"
    (given,) = [d for _, d in documents("keda") if d["kind"] == "TriggerAuthentication"]
    assert given["metadata"]["name"] == trigger["authenticationRef"]["name"]
    assert [reference["parameter"] for reference in given["spec"]["secretTargetRef"]] == ["token"]


def test_the_query_of_keda_reads_metrics_that_exist() -> None:
    (document,) = [document for file, document in scaled() if "prometheus" in file]
    read = metrics_in(document["spec"]["triggers"][0]["metadata"]["query"])
    assert read
    assert read <= {metric.name for metric in DECLARED}


# --- the image ---


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    return [(word.upper(), rest) for word, rest in lines]


def test_the_image_is_made_of_what_is_here_and_runs_as_nobody_under_an_init() -> None:
    steps = instructions()
    stages = [rest for word, rest in steps if word == "FROM"]
    assert len(stages) == 2
    for word, rest in steps:
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    last = dict(steps[max(i for i, step in enumerate(steps) if step[0] == "FROM") :])
    assert last["USER"] == "10001:10001"
    # process 1 is an init: the kernel keeps SIGABRT and SIGKILL of the worker's guard from a worker that is process 1
    assert json.loads(last["ENTRYPOINT"]) == ["tini", "--", "ringcron"]
    assert isinstance(json.loads(last["CMD"]), list)


def test_every_package_of_ours_is_copied_into_the_image() -> None:
    import tomllib

    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {rest.split()[0] for word, rest in instructions() if word == "COPY"}
    assert {package.split("/")[0] for package in packages["packages"]} <= copied


def test_images_have_plain_names_and_versions() -> None:
    images = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    images += [service["image"] for service in compose()["services"].values()]
    for image in images:
        assert re.fullmatch(r"[a-z0-9_-]+(/[a-z0-9_-]+)?:[A-Za-z0-9._-]+", image), image
    ours = [service["image"] for service in compose()["services"].values() if service["image"].startswith("ringcron:")]
    assert {*ours} == {f"ringcron:{ringcron.__version__}"}


# --- compose.yaml ---


def test_services_wait_for_what_they_need_and_open_nothing_to_the_network() -> None:
    services = compose()["services"]
    for name, service in services.items():
        for needed in service.get("depends_on", ()):
            assert needed in services
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), name
    for name in ("api", "coordinator", "worker"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_the_scrape_jobs_find_the_services() -> None:
    services = compose()["services"]
    jobs = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"]
    found = {job["dns_sd_configs"][0]["names"][0]: job["dns_sd_configs"][0]["port"] for job in jobs}
    assert found == {
        "api": int(services["api"]["environment"]["RINGCRON_API_PORT"]),
        "coordinator": METRICS_PORT,
        "worker": METRICS_PORT,
    }


def test_compose_itself_accepts_the_file() -> None:
    command = _compose_command()
    if command is None:
        pytest.skip("no docker compose here; the structure was checked by the other tests")
    said = subprocess.run(
        [*command, "-f", DEPLOY / "compose.yaml", "--profile", "metrics", "config", "--quiet"],
        capture_output=True,
        text=True,
        env={**os.environ, "POSTGRES_PASSWORD": "secret"},
        check=False,
    )
    assert said.returncode == 0, said.stderr


def _compose_command() -> list[str] | None:
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) is None:
            continue
        if subprocess.run([*command, "version"], capture_output=True, check=False).returncode == 0:
            return command
    return None
