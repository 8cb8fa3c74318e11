"""One call of a handler in a handler process, in the main thread."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from ringcron_shard_worker.handler_process.context import Context
from ringcron_shard_worker.handler_process.outcome import Ended, raised, returned


class Call:
    """The call that is going on; `ask_to_stop` may be called from another thread."""

    def __init__(self, function: Callable[..., Any], context: Context, payload: Any) -> None:
        self._function = function
        self._context = context
        self._payload = payload
        self._cancel: Callable[[], object] | None = None

    def ask_to_stop(self) -> None:
        """Plain functions see `ctx.cancelled`; async ones are cancelled as well."""
        self._context.ask_to_stop()
        cancel = self._cancel
        if cancel is not None:
            cancel()

    def run(self) -> Ended:
        """Whatever the handler raises, SystemExit and KeyboardInterrupt too, becomes the end of this run only."""
        try:
            value = self._function(self._context, self._payload)
            if inspect.isawaitable(value):
                value = asyncio.run(self._await(value))
        except asyncio.CancelledError as error:
            return raised(error, stopped=self._context.saw_stop)
        except BaseException as error:
            return raised(error, stopped=self._context.saw_stop)
        finally:
            _flush()
        return returned(value, stopped=self._context.saw_stop)

    async def _await(self, value: Awaitable[Any]) -> Any:
        task = asyncio.ensure_future(value)
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            try:
                loop.call_soon_threadsafe(self._cancel_task, task)
            except RuntimeError:
                pass  # the loop has closed: the handler has ended

        self._cancel = cancel
        if self._context.cancelled:  # asked between the call and here
            task.cancel()
        return await task

    def _cancel_task(self, task: asyncio.Future[Any]) -> None:
        if task.cancel():  # not once it has ended
            self._context.saw_stop = True


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads it any more, or the handler closed it
