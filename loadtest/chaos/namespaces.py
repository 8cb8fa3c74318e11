"""Network namespaces: each worker in one of its own, joined to its servers by a bridge, and cut off by rules of nft.

    worker-1 ─ eth0 ─╮            the servers listen at the bridge's address
    worker-2 ─ eth0 ─┼─ bridge
    worker-3 ─ eth0 ─╯            DROP within a worker's namespace: `output` is what it says, `input` what it hears

Invariants: a packet that is dropped is answered by nothing, as by a dead cable. All names hold the pid of this process:
what a killed run has left behind is known by its pid and swept away at the next start. The machine's own rules, routes
and addresses are left alone.

Needs root, `ip` and `nft`; either is fetched as a package into our cache where the machine has none.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ringcron.local.cache import cache_folder, filled, missing_packages, unpack_debs
from ringcron.local.errors import NotAvailable

PREFIX: Final = "ringcron-chaos-"
TABLE: Final = "ringcron"
PROBE_SECONDS: Final = 5
_NETWORKS: Final = 512
"""Networks of 254 addresses within 198.18.0.0/15, which is for tests of networks and is routed nowhere."""
_RULES: Final = """\
table ip {table} {{
  chain says {{
    type filter hook output priority 0; policy accept;
    {says}
  }}
  chain hears {{
    type filter hook input priority 0; policy accept;
    {hears}
  }}
}}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A program and where its libraries are, if they are not the machine's."""

    path: str
    libraries: str = ""

    def run(self, *arguments: str, within: Sequence[str] = (), text: str = "") -> str:
        """What it prints. Raises NotAvailable with what it complains of."""
        given = ["env", f"LD_LIBRARY_PATH={self.libraries}"] if self.libraries else []
        try:
            done = subprocess.run(
                [*within, *given, self.path, *arguments], input=text, capture_output=True, encoding="utf-8", check=False
            )
        except OSError as error:
            raise NotAvailable(f"{self.path} cannot be run: {error.strerror}") from error
        if done.returncode:
            raise NotAvailable(f"{Path(self.path).name} {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


class Namespaces:
    """One namespace for each of `names`. A context: they are gone when it ends. Entering raises NotAvailable."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._cut: set[str] = set()
        self._dropped = 0
        self._address = ""
        self._ip = Tool(path="ip")
        self._nft = Tool(path="nft")

    @property
    def address(self) -> str:
        """Of this machine, as the namespaces see it."""
        return self._address

    @property
    def network(self) -> str:
        """Theirs: an address and how many of its bits count."""
        return f"{self._address}/24"

    def __enter__(self) -> Namespaces:
        if os.geteuid() != 0:
            raise NotAvailable("it needs root")
        self._ip, self._nft = tool("ip", "iproute2"), tool("nft", "nftables")
        sweep(self._ip)
        try:
            self._make()
            self._probe()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number, name in enumerate(self._names, 1):
            with contextlib.suppress(NotAvailable):  # it was not made
                self._ip.run("link", "delete", _link(number))
            with contextlib.suppress(NotAvailable):
                self._ip.run("netns", "delete", _namespace(name))
        with contextlib.suppress(NotAvailable):
            self._ip.run("link", "delete", _bridge())

    def within(self, name: str) -> list[str]:
        """The words that put a program into that namespace."""
        return ["nsenter", f"--net=/run/netns/{_namespace(name)}", "--"]

    def cut(self, name: str, ports: Sequence[int], *, up: bool, down: bool) -> None:
        """Drop what it says to those ports of this machine (`up` False), and what it hears from them (`down` False)."""
        self.heal(name)
        many = ", ".join(map(str, ports))
        rules = _RULES.format(
            table=TABLE,
            says="" if up else f"ip daddr {self._address} tcp dport {{ {many} }} counter drop",
            hears="" if down else f"ip saddr {self._address} tcp sport {{ {many} }} counter drop",
        )
        self._nft.run("-f", "-", within=self.within(name), text=rules)
        self._cut.add(name)

    def heal(self, name: str | None = None) -> None:
        """Drop nothing any more of that one, or of all."""
        for one in sorted(self._cut if name is None else self._cut & {name}):
            said = self._nft.run("-j", "list", "table", "ip", TABLE, within=self.within(one))
            self._dropped += sum(_dropped(said))
            self._nft.run("delete", "table", "ip", TABLE, within=self.within(one))
            self._cut.remove(one)

    @property
    def dropped(self) -> int:
        """How many packets the rules that were taken away have dropped."""
        return self._dropped

    def _make(self) -> None:
        run = self._ip.run
        network = _free_network(run("-4", "-oneline", "address"))
        self._address = f"{network}.1"
        run("link", "add", _bridge(), "type", "bridge")
        run("address", "add", self.network, "dev", _bridge())
        run("link", "set", _bridge(), "up")
        for number, name in enumerate(self._names, 1):
            run("netns", "add", _namespace(name))
            run("link", "add", _link(number), "type", "veth", "peer", "name", "eth0", "netns", _namespace(name))
            run("link", "set", _link(number), "master", _bridge(), "up")
            inside = "-netns", _namespace(name)
            run(*inside, "address", "add", f"{network}.{number + 1}/24", "dev", "eth0")
            run(*inside, "link", "set", "eth0", "up")
            run(*inside, "link", "set", "lo", "up")

    def _probe(self) -> None:
        """A connection is made where nothing is cut, and is not made where it is."""
        with socket.create_server((self._address, 0)) as server:
            port: int = server.getsockname()[1]
            for name in self._names:
                if not self._connects(name, port, PROBE_SECONDS):
                    raise NotAvailable("this machine lets nothing through from a namespace")
            self.cut(self._names[0], [port], up=False, down=True)
            reached = self._connects(self._names[0], port, 0.2)
            self.heal()
            self._dropped = 0
        if reached:
            raise NotAvailable("what the rules of nft are to drop comes through")

    def _connects(self, name: str, port: int, seconds: float) -> bool:
        program = f"import socket; socket.create_connection(('{self._address}', {port}), {seconds})"
        done = subprocess.run([*self.within(name), sys.executable, "-c", program], check=False, capture_output=True)
        return done.returncode == 0


def sweep(ip: Tool) -> None:
    """Take away what runs have left behind whose process is gone."""
    for line in ip.run("netns", "list").splitlines():
        name = line.partition(" ")[0]
        pid = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and pid.isdigit() and not _lives(int(pid)):
            ip.run("netns", "delete", name)
    for found in re.finditer(r"^\d+: (rc(\d+)b):", ip.run("-oneline", "link", "show", "type", "bridge"), re.MULTILINE):
        if not _lives(int(found[2])):
            ip.run("link", "delete", found[1])


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _namespace(name: str) -> str:
    return f"{PREFIX}{os.getpid()}-{name}"


def _bridge() -> str:
    return f"rc{os.getpid()}b"  # an interface's name has at most 15 characters


def _link(number: int) -> str:
    return f"rc{os.getpid()}v{number}"


def _free_network(addresses: str) -> str:
    """The first three bytes of one that no address of this machine lies in."""
    for offset in range(_NETWORKS):
        number = (os.getpid() + offset) % _NETWORKS
        network = f"198.{18 + number // 256}.{number % 256}"
        if f" {network}." not in addresses:
            return network
    raise NotAvailable("no network of 198.18.0.0/15 is free")


def _dropped(ruleset: str) -> Iterator[int]:
    for item in json.loads(ruleset)["nftables"]:
        for part in item.get("rule", {}).get("expr", ()):
            if "counter" in part:
                yield part["counter"]["packets"]


def tool(name: str, package: str) -> Tool:
    """The machine's program, or one unpacked into our cache. Raises NotAvailable."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is not None:
        return Tool(path=found)
    folder = filled(cache_folder() / package, lambda into: unpack_debs(missing_packages(package), into))
    program = next((one for one in sorted(folder.glob(f"**/*bin/{name}")) if one.is_file()), None)
    if program is None:
        raise NotAvailable(f"the package {package} holds no {name}")
    libraries = sorted({str(one.parent) for one in folder.rglob("*.so*")})
    return Tool(path=str(program), libraries=":".join(libraries))
