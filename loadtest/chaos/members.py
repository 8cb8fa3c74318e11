"""Members that hold slots and never claim: fifty sessions in one process, to join and vanish in a mass.

They say that they have the chaos jobs' handlers and acknowledge nothing, so their slots are helped by others and passed
over by the leader. Run as `python -m loadtest.chaos.members HOSTS PREFIX COUNT`; killed, their sessions time out.
"""

from __future__ import annotations

import sys
import threading
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from loadtest.chaos.handlers import ASYNC, PLAIN
from loadtest.chaos.watcher import silent
from ringcron.members import Ack, encode_member

SESSION_SECONDS: Final = 4.0
CONNECT_SECONDS: Final = 30.0


def main() -> None:
    hosts, prefix, count = sys.argv[1:]
    clients = []
    for _ in range(int(count)):
        client = KazooClient(hosts, timeout=SESSION_SECONDS, logger=silent())
        client.start_async()
        clients.append(client)
    for number, client in enumerate(clients):
        name = f"{prefix}-{number}"
        data = encode_member(name=name, capacity=1, handlers=[ASYNC, PLAIN], version="none", acked=Ack())
        try:
            client.start_async().wait(CONNECT_SECONDS)
            client.create(f"/workers/{name}.00000000", data, ephemeral=True)
        except KazooException:
            continue  # ZooKeeper is away: then it does not join
    threading.Event().wait()


if __name__ == "__main__":
    main()
