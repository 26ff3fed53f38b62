"""elsewhere.py - a worker on another machine: it takes the turns of its workflows and runs their steps, over HTTP (docs/turn-protocol.md)."""
from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import signal
import socket
import threading
import time
from typing import Any, Callable

from . import durable, turns, values

log = logging.getLogger("pawl_client")


def _tool(fn: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """A step as a worker's tool: called with (args, step)."""
    def call(args: Any, step: Any) -> Any:
        turns._info.set(turns.StepInfo({"tool": step["tool"], "key": step["idempotency_key"], "instance": step["instance_id"],
                                        "step": step["name"], "attempt": step["attempt"]}))
        try:
            result = fn(**values.bind(fn, args or {}))
            return values.encode(asyncio.run(result) if inspect.iscoroutine(result) else result)
        except durable.Fail as error:
            raise durable.Fail(values.encode(error.error), retry=error.retry) from error
        except Exception as error:
            log.error("step %s (attempt %s) failed", step["tool"], step["attempt"], exc_info=error)
            raise durable.Fail({"type": type(error).__name__, "message": str(error)[:64000]}) from error
    return lambda args, step: contextvars.copy_context().run(call, args, step)


class CodeWorker:
    """Serves the workflows of this program to a server elsewhere: claims turns and answers them, and runs the steps.

    `lease`: how long a turn may take before another worker gets it. `turns`: how many are claimed at once. `threads`: steps at once; 0: other
    workers run the steps. A worker that is killed loses nothing: what it had claimed is given to another one when the lease is over."""

    def __init__(self, pawl: Any, *, name: str | None = None, lease: str = "10s", turns_at_once: int = 8, threads: int = 8, wait: float = 5.0):
        self.pawl, self.name = pawl, name or "%s-%d" % (socket.gethostname(), os.getpid())
        self.lease, self.turns_at_once, self.threads, self.wait = lease, turns_at_once, threads, wait
        self._server = turns.Server()
        self._stopping = False

    def stop(self) -> None:
        self._stopping = True

    def _offer(self, hello: dict[str, Any]) -> str:
        self._server = turns.Server()  # numbers under which instances are kept are those of a session
        session: str = self.pawl.turn_offer(self.name, hello)["session"]
        return session

    def _answer(self, claimed: dict[str, Any]) -> dict[str, Any]:
        request = claimed["request"]
        return {"turn_id": claimed["turn_id"], "lease": claimed["lease"], "answer": self._server.turn(request)}

    def _turns(self, hello: dict[str, Any]) -> None:
        from . import NotKnown, Unreachable
        answers: list[dict[str, Any]] = []
        session = self._offer(hello)
        while not self._stopping or answers:
            try:
                found = self.pawl.turn_claim(session, answers=answers, max=self.turns_at_once, lease=self.lease,
                                             wait="0s" if self._stopping else "%dms" % round(self.wait * 1000))
            except NotKnown:
                session, answers = self._offer(hello), []  # the server was started again, and what was claimed is claimed again
                continue
            except Unreachable as error:
                log.warning("worker %s: %s", self.name, error)
                time.sleep(0.5)
                continue
            for result in found["results"]:
                if "reason" in result:
                    log.warning("worker %s: an answer was refused: %s", self.name, result["detail"])
            answers = [] if self._stopping and not found["turns"] else [self._answer(one) for one in found["turns"]]

    def run(self) -> None:
        """Work until stop() or, in the main thread, SIGTERM or SIGINT. Raises what the server rejects the workflows with."""
        from . import Worker
        hello = turns.hello()
        if "error" in hello:
            raise SystemExit(hello["error"])
        steps = Worker(self.pawl, name=self.name, threads=max(1, self.threads))
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())
        for flow in durable.WORKFLOWS.values():
            for name, fn in flow.steps.items():
                steps.tool(name)(_tool(fn))
        runs = bool(self.threads and hello["tools"])
        thread = threading.Thread(target=steps.run, daemon=True)
        log.info("worker %s serves the code %s", self.name, ", ".join(durable.WORKFLOWS))
        if runs:
            thread.start()
        try:
            self._turns(hello)
        finally:
            steps.stop()
            if runs:
                thread.join(timeout=30)


def work(url: str = "http://127.0.0.1:7295", *, token: str | None = None, store: str | None = None, name: str | None = None,
         lease: str = "10s", threads: int = 8) -> None:
    """Serve the workflows of this program to the server at `url`, until SIGTERM or SIGINT."""
    from . import Pawl
    CodeWorker(Pawl(url, token=token, store=store), name=name, lease=lease, threads=threads).run()
