"""The loop of a handler process: told what to import, then one run after the other."""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import threading
from dataclasses import replace
from datetime import datetime
from typing import BinaryIO
from uuid import UUID

from ringcron.errors import RingcronError
from ringcron.handlers import Handler
from ringcron_shard_worker.builtin import BUILTINS, BuiltinSettings, add_builtin, user_registry
from ringcron_shard_worker.handler_process import prctl
from ringcron_shard_worker.handler_process.calling import Call
from ringcron_shard_worker.handler_process.context import Context
from ringcron_shard_worker.handler_process.frames import Message, pack, read_message
from ringcron_shard_worker.handler_process.leftovers import left_behind
from ringcron_shard_worker.handler_process.logs import Log
from ringcron_shard_worker.handler_process.outcome import Ended, raised


class HandlerProcess:
    """The main thread runs handlers; a second one listens to the worker."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._stream: BinaryIO = channel.makefile("rb")
        self._runs: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._call: Call | None = None
        self._stopped: str | None = None  # the run that was asked to stop last: it may not have begun
        self._handing_over = threading.Lock()

    def serve(self) -> None:
        """Until the worker closes the socket."""
        hello = read_message(self._stream)
        if hello is None:
            return
        sys.path[:] = hello["path"]
        self._log = Log(hello["log_format"], hello["log_level"])
        try:
            self._builtin = BuiltinSettings.from_message(hello["builtin"])
            self._registry = user_registry(hello["modules"])
        except RingcronError as error:
            self._channel.sendall(pack({"type": "unready", "error": str(error)}))
            return
        threading.Thread(target=self._listen, name="ringcron-listener", daemon=True).start()
        self._channel.sendall(pack({"type": "ready"}))
        while True:
            message = self._runs.get()
            self._channel.sendall(pack({"type": "begun"}))
            ended = self._run(message)
            self._channel.sendall(pack({"type": "ended"} | ended.message()))

    def _listen(self) -> None:
        while (message := read_message(self._stream)) is not None:
            if message["type"] == "run":
                self._runs.put(message)
                continue
            with self._handing_over:
                self._stopped = message["run_id"]
                if self._call is not None:
                    self._call.ask_to_stop()
        os._exit(0)  # the worker is gone or has no more use for this process, whatever the main thread is doing

    def _run(self, message: Message) -> Ended:
        context = Context(
            job_id=UUID(message["job_id"]),
            run_id=message["run_id"],
            scheduled_for=datetime.fromisoformat(message["scheduled_for"]),
            attempt=message["attempt"],
            lease_generation=message["lease_generation"],
            traceparent=message["traceparent"],
            tracestate=message["tracestate"],
        )
        threads_before = set(threading.enumerate())
        try:
            function = self._find(message["handler"]).function
        except RingcronError as error:
            return raised(error)
        call = Call(function, context, message["payload"])
        with self._handing_over:
            self._call = call
            if self._stopped == context.run_id:
                call.ask_to_stop()
        self._log.begin(context)
        try:
            ended = call.run()
        finally:
            self._log.end()
            with self._handing_over:
                self._call = None
        return replace(ended, left_behind=left_behind(threads_before))

    def _find(self, name: str) -> Handler:
        """A user's handler, or a built-in one, which is imported only when it is needed."""
        if name in BUILTINS and name not in self._registry:
            add_builtin(self._registry, name, self._builtin)
        return self._registry.get(name)


def _ignore(*_: object) -> None:
    """A handler of signals, not SIG_IGN: programs that a run starts must not inherit that."""


def main() -> None:
    worker, channel = int(sys.argv[1]), int(sys.argv[2])
    prctl.die_with(worker)
    prctl.adopt_orphans()
    os.set_inheritable(channel, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _ignore)  # a supervisor may send these to all; the worker decides when a run ends
    HandlerProcess(socket.socket(fileno=channel)).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
