"""What the files of deploy/ tell our programs to do: containers of manifests and services of compose.yaml, alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ringcron.settings import (
    ApiSettings,
    CoordinatorSettings,
    DatabaseSettings,
    WorkerSettings,
    variables_of,
)

DEPLOY = Path(__file__).parents[2] / "deploy"
SETTINGS: Mapping[str, type[DatabaseSettings]] = {
    "api": ApiSettings,
    "coordinator": CoordinatorSettings,
    "worker": WorkerSettings,
    "migrate": DatabaseSettings,
    "key": DatabaseSettings,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Told:
    """One program as a file starts it. `environment` has values for what the cluster would fill in."""

    where: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    grace_seconds: float
    image: str

    @property
    def program(self) -> str:
        return self.arguments[0]

    def settings(self) -> Any:
        """What the program reads. Raises ConfigError with every fault."""
        return SETTINGS[self.program].load(self.environment)

    def unknown(self) -> set[str]:
        """Variables of ours that the program does not have, nor any other that shares the ConfigMap."""
        known = {
            name for kind in SETTINGS.values() for field in dataclasses.fields(kind) for name in variables_of(field)
        }
        return {name for name in self.environment if name.removesuffix("_FILE") not in known}


def documents(*folders: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file name, document) of every manifest in these folders of deploy/."""
    for folder in folders:
        for file in sorted((DEPLOY / folder).glob("*.yaml")):
            for document in yaml.safe_load_all(file.read_text()):
                yield file.name, document


def pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(kind/name, the workload, its pod's template) of every workload."""
    for _, document in documents("kubernetes"):
        if "template" in document.get("spec", {}):
            yield f"{document['kind']}/{document['metadata']['name']}", document, document["spec"]["template"]


def told_by_kubernetes(secret: Path) -> Iterator[Told]:
    """`secret`: a file that holds what the Secret would."""
    maps = {d["metadata"]["name"]: d["data"] for _, d in documents("kubernetes") if d["kind"] == "ConfigMap"}
    for where, _, template in pods():
        (container,) = template["spec"]["containers"]
        environment: dict[str, str] = {}
        for source in container["envFrom"]:
            environment |= maps[source["configMapRef"]["name"]]
        for variable in container.get("env", ()):
            environment[variable["name"]] = variable.get("value", "pod-0")
        for name in environment:
            if name.endswith("_FILE"):
                environment[name] = str(secret)
        yield Told(
            where=where,
            arguments=tuple(container["args"]),
            environment=environment,
            grace_seconds=template["spec"].get("terminationGracePeriodSeconds", 30),
            image=container["image"],
        )


def compose() -> dict[str, Any]:
    """compose.yaml with its variables filled in."""
    text = (DEPLOY / "compose.yaml").read_text().replace("${POSTGRES_PASSWORD:?choose a password}", "secret")
    assert "${" not in text.replace("$(", "")
    return yaml.safe_load(text)  # type: ignore[no-any-return]


def told_by_compose() -> Iterator[Told]:
    for name, service in compose()["services"].items():
        if service["image"].startswith("ringcron:"):
            yield Told(
                where=f"service {name}",
                arguments=tuple(service["command"]),
                environment=service["environment"],
                grace_seconds=float(service.get("stop_grace_period", "10s").removesuffix("s")),
                image=service["image"],
            )
