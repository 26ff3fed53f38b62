"""pawl_client - a client of pawl, a worker for the tools of its flows, and durable code (durable.py). Nothing but Python 3.11.

    from pawl_client import Pawl, Worker

    pawl = Pawl("http://127.0.0.1:7295")
    order = pawl.instance_create(definition="order", subject_ref="A-17")
    pawl.instance_fire(order["instance_id"], "pay", actor_ref="ann")
    for event in pawl.events(from_start=True):
        print(event["instance_id"], event["action"])

    worker = Worker(pawl)

    @worker.tool("knowledge_search")
    def search(args, step):
        return {"hits": len(args["query"])}

    worker.run()                      # until SIGTERM; what was begun is finished

A call that may have been lost is repeated, with the same Idempotency-Key: it is done once. A rejection is raised as
the class of its reason (Terminal, NotKnown, ...), all of them PawlError.

A worker logs to the logger "pawl_client": one line at start, one when the server stops answering, one when it answers
again, and each failure with its traceback. Without a configuration of `logging` these lines go to stderr.
"""
from __future__ import annotations

import http.client
import json
import logging
import os
import random as _random
import signal as _signal
import socket
import threading
import time
import traceback
import urllib.parse
import uuid
from typing import Any, Callable, Iterable, Iterator, Literal, NotRequired, TypedDict

from .durable import (ChildError as ChildError, Fail as Fail, Future as Future, NondeterminismError as NondeterminismError, Signal as Signal,
                      StepError as StepError, Workflow as Workflow, continue_as as continue_as, external as external, gather as gather,
                      instance_id as instance_id, now as now, patched as patched, random as random, reduce as reduce, retries as retries, select as select,
                      send as send, signal as signal, sleep as sleep, spawn as spawn, start as start, step as step, subscribe as subscribe,
                      uuid4 as uuid4, workflow as workflow)
from .elsewhere import CodeWorker as CodeWorker, work as work
from .turns import StepInfo as StepInfo, log as log, run as run, step_info as step_info

__version__ = "0.1.0"

# ---- What can go wrong ----


class PawlError(Exception):
    """A rejection. `reason` is the token, `detail` says what was expected and found."""
    reason = "unknown"

    def __init__(self, detail: str, status: int = 0, problem: dict[str, Any] | None = None):
        super().__init__("%s: %s" % (self.reason, detail))
        self.detail, self.status, self.problem = detail, status, problem or {}


class Unreachable(PawlError):
    """There was no answer, after all repetitions."""
    reason = "unreachable"


def _error_of(status: int, body: bytes) -> PawlError:
    try:
        problem = json.loads(body)
        kind = REASONS.get(problem.get("reason"), PawlError)
        return kind(problem.get("detail", ""), status, problem)
    except (ValueError, AttributeError):
        return PawlError("HTTP %d: %s" % (status, body[:200].decode("utf-8", "replace")), status)


# ---- Calling ----

AGAIN = {"overloaded", "storage-failure", "outcome-unknown", "in-use"}  # reasons that may be gone in a moment
LOST = (OSError, http.client.HTTPException)


def _parts_of(url: str) -> urllib.parse.SplitResult:
    """A server's URL. Another text is refused here: a server would never answer at it."""
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and (parts.port or True):  # .port raises
            return parts
    except ValueError:
        pass
    raise ValueError("expected the URL of a server that begins with http:// or https://, like http://127.0.0.1:7295, found %r" % url)


def _store_of(parts: urllib.parse.SplitResult, url: str, given: str | None) -> str | None:
    """The store that the path of a URL names, as on the command line. Anything else behind the port is refused: it would be ignored."""
    path = parts.path.rstrip("/")
    prefix, _, store = path.rpartition("/")
    if path == "" and not (parts.query or parts.fragment):
        return given
    if prefix != "/v1/stores" or parts.query or parts.fragment:
        raise ValueError("expected http://host:port or http://host:port/v1/stores/NAME, found %r" % url)
    store = urllib.parse.unquote(store)
    if given not in (None, store):
        raise ValueError("the URL names the store %r, and store is %r: give one of them" % (store, given))
    return store


def _is_passing(status: int) -> bool:
    """The server, or a proxy before it, cannot answer now."""
    return status >= 500 or status in (408, 425, 429)


def _is_busy(status: int, body: bytes) -> bool:
    """The same request may be answered in a moment."""
    return status in (502, 503, 504) and _error_of(status, body).reason in AGAIN | {"unknown"}


class _Whole:
    """A connection that sends head and body with one call: the server need not wait for the second part."""
    _parts: list[bytes] | None = None

    def request(self, *words: Any) -> None:
        self._parts = []
        super().request(*words)  # type: ignore[misc]
        parts, self._parts = self._parts, None
        super().send(b"".join(parts))  # type: ignore[misc]

    def send(self, data: bytes) -> None:
        if self._parts is None:
            super().send(data)  # type: ignore[misc]
        else:
            self._parts.append(data)


class _Plain(_Whole, http.client.HTTPConnection):  # type: ignore[misc]
    pass


class _Secure(_Whole, http.client.HTTPSConnection):  # type: ignore[misc]
    pass


class _Calls:
    """Connections, one a thread, and repetition."""

    def __init__(self, url: str = "http://127.0.0.1:7295", *, token: str | None = None, store: str | None = None,
                 timeout: float = 30.0, patience: float = 30.0):
        """`url`: http://host:port, or http://host:port/v1/stores/NAME, which is the same as `store`=NAME. `patience`: for how many seconds
        a call that was lost is repeated."""
        parts = _parts_of(url)
        self._secure, self._host = parts.scheme == "https", parts.netloc
        store = _store_of(parts, url, store)
        self._token, self._timeout, self._patience = token, timeout, patience
        self._prefix = "/v1/stores/" + urllib.parse.quote(store, safe="") if store else "/v1"
        self._url = "%s://%s%s" % (parts.scheme, parts.netloc.rpartition("@")[2], self._prefix if store else "")  # for messages
        self._local = threading.local()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        connection = (_Secure if self._secure else _Plain)(self._host, timeout=timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return {**({"Authorization": "Bearer " + self._token} if self._token else {}), **more}

    def _target(self, path: str, values: dict[str, Any], query: dict[str, Any]) -> str:
        if path.startswith("/v1/"):
            path = self._prefix + path[len("/v1"):]
        for name, value in values.items():
            path = path.replace("{%s}" % name, urllib.parse.quote(str(value), safe=""))
        asked = {name: value for name, value in query.items() if value is not None}
        return path + ("?" + urllib.parse.urlencode(asked) if asked else "")

    def _once(self, method: str, target: str, body: bytes | None, headers: dict[str, str], timeout: float) -> tuple[int, str, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect(timeout)
        connection.sock.settimeout(timeout)
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        answer = response.status, response.headers.get_content_type(), response.read()
        if connection.sock is None:  # the server closed it behind its answer
            self._drop()
        return answer

    def _drop(self) -> None:
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def _call(self, method: str, path: str, values: dict[str, Any], query: dict[str, Any], body: Any, *, media: str = "application/json",
              key: str | None = None, keyed: bool = False, again: bool = True, wait: float = 0.0,
              noticed: Callable[[str | None, bool], bool] = lambda why, fresh: True) -> Any:
        """One operation. `keyed`: it takes an Idempotency-Key, and gets one; `again`: it may be repeated; `noticed` is called after each
        try with None or why there was no answer, and whether its connection was a new one; False ends the repetition."""
        headers = self._headers({"Content-Type": media} if body is not None else {})
        if keyed:
            headers["Idempotency-Key"] = key or uuid.uuid4().hex
        data = json.dumps({k: v for k, v in body.items() if v is not None}).encode() if isinstance(body, dict) and media == "application/json" \
            else body.encode() if isinstance(body, str) else body
        status, kind, answer = self._patiently(method, self._target(path, values, query), data, headers, again, wait, noticed)
        if status >= 400:
            raise _error_of(status, answer)
        return json.loads(answer) if kind == "application/json" else answer

    def _patiently(self, method: str, target: str, data: bytes | None, headers: dict[str, str], again: bool,
                   wait: float, noticed: Callable[[str | None, bool], bool]) -> tuple[int, str, bytes]:
        until, pause = time.monotonic() + self._patience, 0.02
        while True:
            fresh = getattr(self._local, "connection", None) is None
            try:
                answer = self._once(method, target, data, headers, self._timeout + wait)
                status, _, body = answer
                wanted = noticed(str(_error_of(status, body)) if _is_passing(status) else None, True)
                if not again or not wanted or not _is_busy(status, body) or time.monotonic() > until:
                    return answer
            except LOST as lost:
                self._drop()  # half a request or half an answer: never used again
                wanted = noticed(str(lost) or type(lost).__name__, fresh)
                if not again or not wanted or time.monotonic() > until:
                    raise Unreachable("%s %s at %s: %s" % (method, target, self._host, lost)) from lost
            time.sleep(pause * _random.uniform(0.5, 1.5))
            pause = min(pause * 2, 2.0)

    def close(self) -> None:
        """The connection of this thread; others close when their thread ends."""
        self._drop()

    # ---- What is not one question and one answer ----

    def batch(self, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[BatchAnswer]:
        """Many operations in one request: (name, input) each; `input` has the path's parameters too. Lines that write are given keys
        and so the whole may be repeated."""
        lines = [json.dumps({"operation": name, "input": {**given} if name in UNKEYED or "idempotency_key" in given
                             else {**given, "idempotency_key": uuid.uuid4().hex}}) for name, given in calls]
        text = self._call("POST", "/v1/batch", {}, {}, "\n".join(lines), media="application/x-ndjson")
        return [json.loads(line) for line in text.splitlines()]

    def events(self, *, after: str | None = None, from_start: bool = False) -> Iterator[Event]:
        """Every entry of the store as it is recorded, for ever, without gap or repeat, also across restarts of the server."""
        return self._events("/v1/events", {}, after, from_start, ("entry",))

    def all_events(self, *, after: str | None = None, from_start: bool = False) -> Iterator[dict[str, Any]]:
        """The same with the creation of each instance: `event` is "entry" or "created"."""
        return self._events("/v1/events", {}, after, from_start, ("entry", "created"))

    def instance_events(self, instance_id: str, *, after: str | None = None, from_start: bool = False) -> Iterator[Event]:
        """The entries of one instance."""
        return self._events("/v1/instances/{instance_id}/events", {"instance_id": instance_id}, after, from_start, ("entry",))

    def _events(self, path: str, values: dict[str, Any], after: str | None, from_start: bool, kinds: tuple[str, ...]) -> Iterator[Any]:
        cursor, lost_at, pause = after, None, 0.02
        while True:
            try:
                for identity, kind, data in self._stream(path, values, cursor, from_start and cursor is None):
                    cursor, lost_at, pause = identity or cursor, None, 0.02
                    if data and kind in kinds:
                        yield {**json.loads(data), "event": kind, "cursor": cursor or ""}
                raise ConnectionError("the stream has ended")
            except LOST as lost:
                lost_at = lost_at or time.monotonic()
                if time.monotonic() - lost_at > self._patience:
                    raise Unreachable("%s: %s" % (path, lost)) from lost
                time.sleep(pause)
                pause = min(pause * 2, 2.0)

    def _stream(self, path: str, values: dict[str, Any], cursor: str | None, from_start: bool) -> Iterator[tuple[str | None, str, str]]:
        """(id, event, data) of each block until the connection ends; a comment has no data."""
        connection = self._connect(60.0)  # the server breaks a silence every 15 s
        try:
            connection.request("GET", self._target(path, values, {"from": "start" if from_start else None}), None,
                               self._headers({"Last-Event-ID": cursor} if cursor else {}))
            response = connection.getresponse()
            if response.status == 503:
                raise ConnectionError("the server is busy")
            if response.status != 200:
                raise _error_of(response.status, response.read())
            block: dict[str, str] = {}
            while line := response.readline():
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if not name:
                    yield block.get("id"), block.get("event", ""), block.get("data", "")
                    block = {}
                else:
                    block[name] = value
        finally:
            connection.close()


# ---- Working ----


class Rejected(SystemExit):
    """Raised by Worker.run(): the server has rejected the worker, and the worker has logged why. A program that does not catch it ends
    with status 1. `error` is the rejection."""

    def __init__(self, error: PawlError):
        super().__init__(1)
        self.error = error


LOG = logging.getLogger("pawl_client")
FRESH = 0.001          # seconds for which a claim of its own is held back behind steps that were just begun
TRACEBACK_MAX = 16000  # characters of a traceback that are recorded
MESSAGE_MAX = 64000    # characters of an exception's text that are recorded: with escapes they fit the 1 MiB of an error


def _show_log() -> None:
    """To stderr, unless the program has configured `logging`."""
    if LOG.hasHandlers():
        return
    handler, shape = logging.StreamHandler(), logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    shape.converter = time.gmtime
    handler.setFormatter(shape)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)


def _is_final(error: PawlError) -> bool:
    """The request itself is refused: repeating it changes nothing."""
    return error.status >= 400 and not _is_passing(error.status)


def _trace(error: BaseException) -> str:
    """The traceback as a text, from the tool's own frame on."""
    frames = error.__traceback__
    while frames and frames.tb_next and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def _failure(error: BaseException) -> dict[str, Any]:
    """What a tool raised, as its step's error. Characters that UTF-8 does not have are written as escapes, and of a
    long text the end is recorded."""
    try:
        message = str(error)
    except Exception:
        message = "(its text cannot be read)"
    trace = _trace(error)
    if len(message) > TRACEBACK_MAX // 2:  # the calls are needed, too
        trace = trace.replace(message, "..." + message[-TRACEBACK_MAX // 2 + 3:])
    if len(message) > MESSAGE_MAX:
        message = "..." + message[-MESSAGE_MAX + 3:]
    texts = {"type": type(error).__name__, "message": message, "traceback": trace[-TRACEBACK_MAX:]}
    return {name: text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0") for name, text in texts.items()}


class Worker:
    """Serves tools: claims their steps, keeps their leases, answers in batches.

    Tools run on `threads` threads and are called with (args, step); what they return is the step's result (any JSON). What they raise is
    the step's error: {"type", "message", "traceback"}, or the error of a Fail as it is. A step may be given twice, after a crash or a lost
    lease: step["idempotency_key"] is the same then. step["lost"]() tells a long tool that its lease is gone;
    step["progress"](VALUE), any small JSON, shows how far it is. `answered` is called with the step and what came of its answer: {"status"} if it was recorded, {"reason", "detail"} if it was refused. `log` is a logger with info,
    warning and error; the logger "pawl_client" if it is not given."""

    def __init__(self, pawl: Pawl, *, name: str | None = None, threads: int = 8, lease: str = "60s", wait: float = 5.0,
                 answered: Callable[[Any, Any], None] = lambda step, outcome: None, log: Any = LOG):
        self.pawl, self.name, self.lease, self.wait = pawl, name or "%s-%d" % (socket.gethostname(), os.getpid()), lease, wait
        self.threads, self.answered, self.log = threads, answered, log
        self._tools: dict[str, Callable[[Any, Any], Any]] = {}
        self._change = threading.Condition()
        self._free = threads                                           # places
        self._answers: list[Any] = []                                  # (step, answer) to be sent
        self._todo: list[Any] = []                                     # steps to begin
        self._held: dict[str, dict[str, Any]] = {}                     # step_id -> the claimed step
        self._untold: dict[str, Any] = {}                              # step_id -> progress that was not sent yet
        self._told_at: dict[str, float] = {}                           # step_id -> when progress was sent last
        self._sending = False                                          # answers are on their way, with a claim for all that is free
        self._fresh_until = 0.0                                        # steps were just begun: their answers may be there in a moment
        self._stopping = self._done = False
        self.rejection: PawlError | None = None                        # what ended the claiming
        self._lost_at: float | None = None                             # since when the server does not answer

    def tool(self, name: str) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
        def register(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
            self._tools[name] = function
            return function
        return register

    def run(self) -> None:
        """Work until stop() or, in the main thread, SIGTERM or SIGINT. What was claimed is finished and answered first. Raises Rejected if
        the server rejects the worker: its token, its name, its store, its tools."""
        if threading.current_thread() is threading.main_thread():
            for number in (_signal.SIGTERM, _signal.SIGINT):
                _signal.signal(number, lambda *_: self.stop())
        if self.log is LOG:
            _show_log()
        self._say("info", "worker %s serves %s at %s, %d at a time" % (self.name, ", ".join(self._tools) or "no tool", self.pawl._url, self.threads))
        others = [threading.Thread(target=target, daemon=True) for target in
                  [self._claiming, self._beating] + [self._working] * self.threads]
        for thread in others:
            thread.start()
        self._answering()
        with self._change:
            self._done = True
            self._change.notify_all()
        if self.rejection:
            raise Rejected(self.rejection)

    def stop(self) -> None:
        self._stopping = True  # no lock: a signal may come while it is held

    # What is logged, and who is asked.

    def _say(self, level: str, text: str) -> None:
        try:
            getattr(self.log, level)("%s", text)
        except Exception:  # a logger that fails must not end the work
            pass

    def _noticed(self, why: str | None, is_news: bool) -> None:
        """One line when the server stops answering, one when it answers again."""
        with self._change:
            before, now = self._lost_at, time.monotonic()
            if why is None:
                self._lost_at = None
            elif is_news and before is None:
                self._lost_at = now
            after = self._lost_at
        if before is None and after is not None:
            self._say("warning", "worker %s gets no answer from %s: %s; it keeps trying" % (self.name, self.pawl._url, why))
        elif before is not None and after is None:
            self._say("info", "worker %s is connected to %s again, after %.1f s" % (self.name, self.pawl._url, now - before))

    def _ask(self, path: str, values: dict[str, Any], body: dict[str, Any], wait: float = 0.0, is_claim: bool = False) -> Any:
        """A kept connection that was closed while it was idle is no news, but for a claim, which waits at the server. A claim is not
        repeated here: the next one does not wait (_claiming)."""
        def noticed(why: str | None, fresh: bool) -> bool:
            self._noticed(why, fresh or is_claim)
            return not (is_claim and (self._stopping or why is not None))

        try:
            answer = self.pawl._call("POST", path, values, {}, body, wait=wait, noticed=noticed)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise PawlError("expected an answer of pawl, found another text: is this the URL of a pawl server?", 404)
        return answer

    def _reject(self, error: PawlError) -> None:
        with self._change:
            before, self.rejection, self._stopping = self.rejection, self.rejection or error, True
        if before is None:
            is_token = self.pawl._token is not None and error.reason in ("unauthenticated", "forbidden")
            what = ("the token of worker %s" if is_token else "worker %s") % self.name
            hint = "; 'pawl token create --scope work' makes a token for workers" if is_token or error.reason == "unauthenticated" else ""
            self._say("error", "%s rejects %s: %s: %s%s" % (self.pawl._url, what, error.reason, error.detail, hint))

    # Places are reserved before they are asked for, so that no more is claimed than can be begun. A claim rides with the answers, if there
    # are any. Only when there are none a claim of its own is sent, and waits at the server.

    def _claim(self, places: int, wait: float) -> dict[str, Any]:
        return {"tools": list(self._tools), "worker": self.name, "max": places, "lease": self.lease, "wait": "%dms" % (wait * 1000)}

    def _take(self, steps: list[Any], reserved: int) -> None:
        with self._change:
            self._free += reserved - len(steps)
            for step in steps:
                self._held[step["step_id"]] = step
                step["lost"] = lambda step_id=step["step_id"]: step_id not in self._held
                step["progress"] = lambda value, step=step: self._progress(step, value)
            self._todo += steps
            self._fresh_until = time.monotonic() + FRESH if steps else 0.0
            self._change.notify_all()

    def _reserve(self) -> int:
        """All free places; the lock is held."""
        places, self._free = (0, self._free) if self._stopping else (self._free, 0)
        return places

    def _wait_for_places(self) -> int:
        with self._change:
            while not self._stopping:
                fresh = self._fresh_until - time.monotonic()
                if self._free and not self._sending and not self._answers and fresh <= 0:
                    break
                self._change.wait(fresh if 0 < fresh and self._free else 0.2)
            return self._reserve()

    def _claiming(self) -> None:
        """Parked at the server while there is nothing to do."""
        pause = 0.02
        while places := self._wait_for_places():
            steps: list[Any] = []
            wait = self.wait if self._lost_at is None else 0.0  # so that it is known at once when the server is back
            try:
                steps = self._ask("/v1/steps/claim", {}, self._claim(places, wait), wait, True)["steps"]
                pause = 0.02
            except PawlError as error:
                if _is_final(error):
                    self._reject(error)
                else:
                    time.sleep(pause * (0.5 + _random.random()))
                pause = min(pause * 2, 2.0)
            finally:
                self._take(steps, places)

    def _working(self) -> None:
        while True:
            with self._change:
                while not self._todo and not self._done:
                    self._change.wait(0.2)
                if not self._todo:
                    return
                step = self._todo.pop(0)
            answer = self._answer(step)
            with self._change:
                self._answers.append((step, {"step_id": step["step_id"], "lease": step["lease"], **answer}))
                self._change.notify_all()

    def _answer(self, step: Any) -> dict[str, Any]:
        answer: dict[str, Any]
        try:
            answer = {"result": self._call_tool(step)}
        except Fail as failed:
            self._log_failure(step, failed)
            answer = {"error": failed.error, "retry": failed.retry}
        except BaseException as error:  # whatever a tool raises is its step's failure, sys.exit() as well
            self._log_failure(step, error)
            answer = {"error": _failure(error)}
        try:
            json.dumps(answer, allow_nan=False)
        except Exception as error:  # no JSON: it could not be sent
            self._log_failure(step, error)
            answer = {"error": _failure(error)}
        return answer

    def _call_tool(self, step: Any) -> Any:
        tool = self._tools.get(step["tool"])
        if tool is None:
            raise LookupError("the worker %s does not serve the tool '%s'" % (self.name, step["tool"]))
        return tool(step["args"], step)

    def _log_failure(self, step: Any, error: BaseException) -> None:
        self._say("error", "step %s (tool %s, attempt %d) failed\n%s" % (step["step_id"], step["tool"], step["attempt"], _trace(error).rstrip("\n")))

    def _is_over(self) -> bool:
        return self._stopping and not self._held and not self._answers and self._free == self.threads

    def _answering(self) -> None:
        """All answers that are there go in one request, which brings steps back for their places and for all others that are free."""
        while True:
            with self._change:
                while not self._answers and not self._is_over():
                    self._change.wait(0.2)
                if self._is_over():
                    return
                done, self._answers = self._answers[:1000], self._answers[1000:]
                self._free += len(done)
                reserved, self._sending = self._reserve(), True
            self._send(done, reserved)

    def _send(self, done: list[Any], reserved: int) -> None:
        steps, results = self._deliver(done, reserved)
        with self._change:
            for step, _ in done:
                for kept in (self._held, self._untold, self._told_at):
                    kept.pop(step["step_id"], None)
            self._sending = False
        self._take(steps, reserved)
        for (step, _), outcome in zip(done, results):
            self._report(step, outcome)

    def _deliver(self, done: list[Any], reserved: int, replace: bool = True) -> tuple[list[Any], list[Any]]:
        """New steps, and what came of each answer. A request that is refused because of one answer is sent again, an answer at a time."""
        body = {"steps": [answer for _, answer in done], "claim": self._claim(reserved, 0) if reserved else None}
        try:
            turn = self._ask("/v1/steps/complete", {}, body)
            return turn["steps"], turn["results"]
        except PawlError as error:
            if error.reason in ("unauthenticated", "forbidden"):
                self._reject(error)
            elif _is_final(error) and len(done) > 1:
                return [], [self._deliver([one], 0)[1][0] for one in done]
            elif _is_final(error) and replace:
                return self._deliver([self._refused(done[0][0], error)], 0, False)
            # Otherwise no server took them: their leases run out, and they are begun again.
            return [], [{"step_id": step["step_id"], "reason": error.reason, "detail": error.detail} for step, _ in done]

    def _refused(self, step: Any, error: PawlError) -> Any:
        """Instead of an answer that the server does not take: its step has failed."""
        self._say("error", "step %s (tool %s, attempt %d) failed: the server refuses its answer: %s" % (
            step["step_id"], step["tool"], step["attempt"], error))
        return step, {"step_id": step["step_id"], "lease": step["lease"], "error": {"type": error.reason, "message": "refused answer: " + error.detail}}

    def _report(self, step: Any, outcome: Any) -> None:
        if "reason" in outcome:
            self._say("warning", "the answer of step %s (tool %s) was not recorded: %s: %s" % (
                step["step_id"], step["tool"], outcome["reason"], outcome.get("detail", "")))
        try:
            self.answered(step, outcome)
        except Exception as error:  # a callback that fails ends nothing
            self._say("error", "the callback 'answered' failed for step %s\n%s" % (step["step_id"], _trace(error).rstrip("\n")))

    def _beating(self) -> None:
        pause = _seconds(self.lease) / 3
        due = time.monotonic() + pause
        while not self._done:
            with self._change:
                self._change.wait(min(1.0, pause))
                held = list(self._held.values()) if time.monotonic() >= due else []
            due = time.monotonic() + pause if time.monotonic() >= due else due
            for step in held:
                self._beat(step)

    def _progress(self, step: Any, value: Any) -> None:
        """The newest value is sent at once, or, if one was sent less than a second ago, with the next call or heartbeat."""
        step_id = step["step_id"]
        self._untold[step_id] = value
        if time.monotonic() - self._told_at.get(step_id, -1.0) >= 1.0:
            self._beat(step)

    def _beat(self, step: Any) -> None:
        body, step_id = {"lease": step["lease"]}, step["step_id"]
        if step_id in self._untold:
            body["progress"], self._told_at[step_id] = self._untold.pop(step_id, None), time.monotonic()
        try:
            self._ask("/v1/steps/{step_id}/heartbeat", {"step_id": step_id}, body)
        except PawlError as error:
            if "progress" in body and error.reason in ("too-large", "invalid-request"):
                self._say("warning", "the progress of step %s was refused: %s" % (step_id, error))
            elif _is_final(error):  # another worker has it now, or its instance has ended
                self._held.pop(step_id, None)


def _seconds(duration: str) -> float:
    for unit, factor in (("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400)):
        if duration.endswith(unit) and duration[:-len(unit)].isdigit():
            return int(duration[:-len(unit)]) * factor
    raise ValueError("expected a duration like 30s, found %r" % duration)


# ---- Made from /openapi.json by tools/gen-reference; not to be edited below this line ----


class InvalidRequest(PawlError):
    reason = "invalid-request"


class InvalidQuery(PawlError):
    reason = "invalid-query"


class Unauthenticated(PawlError):
    reason = "unauthenticated"


class Forbidden(PawlError):
    reason = "forbidden"


class NotKnown(PawlError):
    reason = "not-known"


class NotAllowed(PawlError):
    reason = "not-allowed"


class Terminal(PawlError):
    reason = "terminal"


class InvalidTransition(PawlError):
    reason = "invalid-transition"


class ReasonRequired(PawlError):
    reason = "reason-required"


class GuardNotSatisfied(PawlError):
    reason = "guard-not-satisfied"


class NoCancelTransition(PawlError):
    reason = "no-cancel-transition"


class NotAwaiting(PawlError):
    reason = "not-awaiting"


class LeaseLost(PawlError):
    reason = "lease-lost"


class Conflict(PawlError):
    reason = "conflict"


class Paused(PawlError):
    reason = "paused"


class TooLarge(PawlError):
    reason = "too-large"


class InvalidDeclaration(PawlError):
    reason = "invalid-declaration"


class InvalidDefinition(PawlError):
    reason = "invalid-definition"


class StorageFailure(PawlError):
    reason = "storage-failure"


class OutcomeUnknown(PawlError):
    reason = "outcome-unknown"


class Overloaded(PawlError):
    reason = "overloaded"


class InUse(PawlError):
    reason = "in-use"


class NoMemory(PawlError):
    reason = "no-memory"


REASONS = {kind.reason: kind for kind in PawlError.__subclasses__()}
UNKEYED = {"definition.get", "definition.graph", "definition.export", "definition.list", "definition.check", "instance.list", "instance.find", "instance.counts", "instance.get", "instance.view", "instance.current", "instance.history", "instance.declaration", "instance.why", "instance.variables", "instance.query", "instance.steps", "instance.graph", "instance.export", "instance.records", "hold.list", "retention.list", "instance.verify", "instance.events", "step.list", "gate.list", "worker.list", "tool.list", "step.claim", "step.complete_many", "step.heartbeat", "turn.offer", "turn.claim", "turn.complete", "alarm.list", "timer.list", "schedule.preview", "token.create", "token.list", "batch", "events", "store.list", "store.info", "store.verify", "metrics.get", "openapi.get", "health.get", "node.list"}

Time = str
Duration = str
Id = str
StepId = str
TransitionId = str
KeptId = str
Hash = str
Name = str
Reference = str
StoreName = str
Cursor = str
IdPrefix = str
Kind = Literal["machine", "flow", "code"]
Status = Literal["running", "suspended", "paused", "completed", "failed", "cancelled"]
StepStatus = Literal["pending", "ready", "running", "done", "failed", "cancelled"]
TerminalKind = Literal["success", "failure", "cancel"]
Labels = dict[str, str]

class Finding(TypedDict):
    message: str
    line: int
    column: int


class Definition(TypedDict):
    name: Name
    version: int
    kind: Kind
    sha256: Hash


class Transition(TypedDict):
    from_state: str
    action: str
    to_state: str
    guard: NotRequired[str]
    requires_reason: NotRequired[bool]
    by: Literal["caller", "engine"]


class Action(TypedDict):
    action: str
    to_state: str
    guard: NotRequired[str]
    requires_reason: NotRequired[bool]


class Pause(TypedDict):
    paused_at: Time
    actor_ref: str | None
    reason: str | None


class Instance(TypedDict):
    instance_id: Id
    definition: Name | None
    version: int | None
    kind: Kind
    current_state: str
    status: Status
    terminal_kind: TerminalKind | None
    actions: list[Action]
    can_cancel: bool
    next_sequence_number: int
    subject_ref: str | None
    correlation_id: str | None
    labels: Labels | None
    parent_id: Id | None
    retry_of: NotRequired[Id]
    retried_as: NotRequired[Id]
    pause: NotRequired[Pause]
    created_by: str | None
    instantiated_at: Time
    updated_at: Time
    input: Any
    instance_metadata: Any
    result: Any
    error: Any
    transitions: NotRequired[list[Transition]]
    erased: NotRequired[Erased]


class Hold(TypedDict):
    instance_id: Id
    held_at: Time
    actor_ref: str | None
    reason: str | None


class Retained(TypedDict):
    definition: Name
    after_end: Duration
    then: str
    due: int
    held: int
    erased: int
    oldest_due_at: Time | None
    more: bool


class Erased(TypedDict):
    erased_at: Time
    actor_ref: str | None
    reason: str | None


class Entry(TypedDict):
    transition_id: TransitionId
    sequence_number: int
    from_state: str
    to_state: str
    action: str
    actor_ref: NotRequired[str]
    fired_at: Time
    recorded_at: Time
    guard_satisfied: NotRequired[bool]
    reason: NotRequired[str]
    payload: NotRequired[Any]
    step: NotRequired[str]
    tool: NotRequired[str]
    kind: NotRequired[str]
    attempt: NotRequired[int]
    step_id: NotRequired[StepId]
    traceparent: NotRequired[str]
    hash: Hash
    erased: NotRequired[list[str]]


class Event(TypedDict):
    instance_id: Id
    transition_id: TransitionId
    sequence_number: int
    from_state: str
    to_state: str
    action: str
    actor_ref: NotRequired[str]
    fired_at: Time
    recorded_at: Time
    guard_satisfied: NotRequired[bool]
    reason: NotRequired[str]
    payload: NotRequired[Any]
    step: NotRequired[str]
    tool: NotRequired[str]
    attempt: NotRequired[int]
    step_id: NotRequired[StepId]
    traceparent: NotRequired[str]
    hash: Hash
    erased: NotRequired[list[str]]
    cursor: NotRequired[str]  # where to resume


class Step(TypedDict):
    step_id: StepId
    instance_id: Id
    name: str
    tool: str | None
    status: StepStatus
    attempt: int
    args: Any
    result: Any
    error: Any
    ready_at: Time | None
    started_at: Time | None
    completed_at: Time | None
    progress: NotRequired[Any]
    progress_at: NotRequired[Time]
    waiting_since: NotRequired[Time | None]
    waiting_until: NotRequired[Time | None]
    approval: NotRequired[Approval]
    ask: NotRequired[Any]
    approved_by: NotRequired[list[str]]


class ReusedStep(TypedDict):
    name: str
    instance_id: Id


class Approval(TypedDict):
    by: Any
    count: int


class ClaimedStep(TypedDict):
    step_id: StepId
    lease: str
    instance_id: Id
    name: str
    tool: str
    args: Any
    attempt: int
    idempotency_key: str
    lease_expires_at: Time
    traceparent: NotRequired[str]


class Claim(TypedDict):
    tools: list[str]
    worker: str
    max: NotRequired[int]
    wait: NotRequired[Duration]
    lease: NotRequired[Duration]


class KnownTool(TypedDict):
    tool: str
    kind: Literal["built-in", "host", "worker"]
    on: bool


class KnownServer(TypedDict):
    server: str
    transport: Literal["http", "stdio"]
    version: str | None
    tools: list[Any]
    error: str | None


class Answered(TypedDict):
    step_id: str
    status: NotRequired[StepStatus]
    reason: NotRequired[str]
    detail: NotRequired[str]


class StepAnswer(TypedDict):
    step_id: StepId
    lease: NotRequired[str]
    result: NotRequired[Any]
    error: NotRequired[Any]
    retry: NotRequired[bool]


class Validation(TypedDict):
    instance_id: Id
    definition: Reference
    state: Literal["pending", "in-progress", "passed", "failed", "cancelled"]
    terminal_kind: TerminalKind | None
    total: int
    valid: int
    invalid: int
    requested_by: str | None
    started_at: Time
    completed_at: Time | None


class Alarm(TypedDict):
    alarm_id: KeptId
    at: Time
    operation: str
    input: dict[str, Any]
    firing: NotRequired[bool]


class Token(TypedDict):
    token_id: KeptId
    scopes: str
    name: str | None
    actor: NotRequired[str]
    created_at: Time
    expires_at: Time


class Compared(TypedDict):
    state: NotRequired[str]
    step: NotRequired[str]
    instances: int
    verdict: str
    missing: list[str]


class Comparison(TypedDict):
    name: Name
    versions: list[int]
    states: list[Compared]
    steps: list[Compared]
    safe: bool


class Ending(TypedDict):
    status: Literal["completed", "failed", "cancelled"]
    at: Time
    error: Any
    can_redrive: bool


class FailedAttempt(TypedDict):
    attempt: int
    of: int | None
    at: Time
    error: Any


class HeldStep(TypedDict):
    worker: str | None
    since: Time
    lease_until: Time | None
    progress: NotRequired[Any]
    progress_at: NotRequired[Time]


class HeldLimit(TypedDict):
    limit: Literal["concurrency", "rate"]
    definition: NotRequired[str]
    step: NotRequired[str]
    tool: NotRequired[str]
    key: NotRequired[Any]
    max: int
    per_ms: NotRequired[int]


class AskedTool(TypedDict):
    since: Time
    asked_at: Time | None
    asked_by: NotRequired[str | None]
    tools: NotRequired[list[str]]


class View(TypedDict):
    instance: Instance
    waiting_for: list[Waiting]
    waiting_more: int
    entries: list[Entry]
    entries_before: int
    steps: NotRequired[list[Step]]
    steps_before: NotRequired[int]
    reused: NotRequired[list[ReusedStep]]
    children: NotRequired[list[ChildView]]
    children_more: NotRequired[int]
    children_awaited: NotRequired[int]
    variables: NotRequired[Any]
    graph: NotRequired[Any]


class WindingUp(TypedDict):
    since: Time
    actor_ref: str | None
    reason: str | None


class ChildView(TypedDict):
    instance_id: Id
    step_id: StepId
    step: NotRequired[str]
    awaited: bool
    outlives: NotRequired[bool]


class Waiting(TypedDict):
    kind: Literal["action", "timer", "signal", "child", "step", "approval", "pause"]
    name: str | None
    until: NotRequired[Time]
    refused: NotRequired[str]
    refused_at: NotRequired[Time]
    tool: NotRequired[str]
    status: NotRequired[Literal["ready", "running"]]
    here: NotRequired[bool]
    step_id: NotRequired[StepId]
    since: NotRequired[Time]
    approval: NotRequired[Approval]
    ask: NotRequired[Any]
    approved_by: NotRequired[list[str]]
    failed: NotRequired[FailedAttempt]
    held: NotRequired[HeldStep]
    limit: NotRequired[HeldLimit]
    workers: NotRequired[AskedTool]
    paused_at: NotRequired[Time]
    actor_ref: NotRequired[str | None]
    reason: NotRequired[str | None]
    instance_id: NotRequired[Id]


class TurnAnswer(TypedDict):
    turn_id: str
    lease: str
    answer: dict[str, Any]


class TurnResult(TypedDict):
    turn_id: str
    reason: NotRequired[str]
    detail: NotRequired[str]


class ClaimedTurn(TypedDict):
    turn_id: str
    lease: str
    lease_ms: int
    request: dict[str, Any]


class Gate(TypedDict):
    step_id: StepId
    instance_id: Id
    definition: Name | None
    version: int | None
    step: str
    subject_ref: str | None
    approval: Approval
    ask: NotRequired[Any]
    approved_by: list[str]
    since: Time | None
    until: Time | None


class KnownWorker(TypedDict):
    worker: str
    tools: list[WorkerTool]
    waiting: bool
    steps_held: int
    first_seen_at: Time
    last_seen_at: Time


class WorkerTool(TypedDict):
    tool: str
    asked_at: Time


class StoreNode(TypedDict):
    node: str
    address: str | None
    version: str | None
    state: Literal["up", "leaving", "silent", "dead"]
    this: bool
    beat_age_ms: int
    lease_ms: int
    shards: int


class ShardOwner(TypedDict):
    shard: int
    node: str | None
    epoch: int
    position: int


class ArmedTimer(TypedDict):
    instance_id: Id
    definition: Name | None
    version: int | None
    subject_ref: str | None
    name: str
    step_id: StepId | None
    due_at: Time


class ShardRoot(TypedDict):
    shard: int
    records: int
    root: Hash


class HealthCondition(TypedDict):
    condition: Literal["commit-failed", "disk-full", "storage-gone", "second-name", "went-back", "clock-jumped"]
    what: str
    since: Time


class CodeModule(TypedDict):
    file: str
    sha256: str
    types: list[str]


class DefinitionPutAnswer(TypedDict):
    name: Name
    version: int
    kind: Kind
    sha256: Hash
    warnings: list[Finding]


class DefinitionGetAnswer(TypedDict):
    name: Name
    version: int
    kind: Kind
    sha256: Hash
    text: str
    transitions: NotRequired[list[Transition]]
    input: NotRequired[dict[str, Any]]
    queries: NotRequired[list[str]]


class DefinitionListAnswer(TypedDict):
    definitions: list[Definition]
    next: Cursor | None


class DefinitionCheckAnswer(TypedDict):
    errors: list[Finding]
    warnings: list[Finding]
    against: NotRequired[Comparison | None]


class InstanceCreateAnswer(TypedDict):
    instance_id: Id
    current_state: str
    existing: NotRequired[bool]
    warnings: NotRequired[list[Finding]]


class InstanceListAnswer(TypedDict):
    instances: list[Instance]
    next: Cursor | None


class InstanceFindAnswer(TypedDict):
    instance_id: Id
    store_id: str


class InstanceCountsAnswer(TypedDict):
    by_state: dict[str, int]
    by_status: dict[str, int]
    total: int
    without_kind: NotRequired[int]


class InstanceCurrentAnswer(TypedDict):
    current_state: str


class InstanceFireAnswer(TypedDict):
    new_state: str
    sequence_number: int
    transition_id: TransitionId


class InstanceHistoryAnswer(TypedDict):
    entries: list[Entry]
    next: NotRequired[Cursor | None]


class InstanceWhyAnswer(TypedDict):
    waiting_for: list[Waiting]
    retried_as: NotRequired[Id]
    ended: NotRequired[Ending]
    cancelling: NotRequired[WindingUp]
    undoing: NotRequired[WindingUp]


class InstanceVariablesAnswer(TypedDict):
    variables: Any


class InstanceQueryAnswer(TypedDict):
    value: Any


class InstanceStepsAnswer(TypedDict):
    steps: list[Step]
    next: NotRequired[Cursor | None]
    reused: NotRequired[list[ReusedStep]]


class InstanceCancelAnswer(TypedDict):
    new_state: str
    terminal_kind: TerminalKind | None


class InstancePauseAnswer(TypedDict):
    status: Status


class InstanceResumeAnswer(TypedDict):
    status: Status


class InstanceAmendAnswer(TypedDict):
    definition: Name
    version: int
    sequence_number: int


class InstanceRedriveAnswer(TypedDict):
    instance_id: Id
    current_state: str


class InstanceCancelManyAnswer(TypedDict):
    cancelled: int
    refused: int


class InstanceEraseAnswer(TypedDict):
    erased: int
    erased_before: int
    values: int
    left: int
    left_in_log: bool


class InstanceArchiveAnswer(TypedDict):
    archived: int
    records: int
    left: int


class StoreArchiveAnswer(TypedDict):
    archived: int
    records: int
    left: int
    more: bool


class InstanceHoldAnswer(TypedDict):
    held: bool
    changed: bool


class InstanceLiftAnswer(TypedDict):
    held: bool
    changed: bool


class HoldListAnswer(TypedDict):
    holds: list[Hold]
    more: bool


class RetentionListAnswer(TypedDict):
    retention: list[Retained]


class SubjectEraseAnswer(TypedDict):
    erased: int
    erased_before: int
    values: int
    left: int
    name_erased: bool
    left_in_log: bool


class InstanceVerifyAnswer(TypedDict):
    valid: bool
    entries: int
    first_bad: NotRequired[int]
    what: NotRequired[str]


class StepListAnswer(TypedDict):
    steps: list[Step]
    next: Cursor | None


class GateListAnswer(TypedDict):
    gates: list[Gate]
    next: Cursor | None


class WorkerListAnswer(TypedDict):
    workers: list[KnownWorker]
    since: Time
    owner: bool
    steps_held_by_unknown: int


class ToolListAnswer(TypedDict):
    tools: list[KnownTool]
    servers: list[KnownServer]


class StepClaimAnswer(TypedDict):
    steps: list[ClaimedStep]


class StepCompleteManyAnswer(TypedDict):
    results: list[Answered]
    steps: list[ClaimedStep]


class StepCompleteAnswer(TypedDict):
    status: StepStatus


class StepFailAnswer(TypedDict):
    status: StepStatus


class StepHeartbeatAnswer(TypedDict):
    status: StepStatus
    lease_expires_at: Time


class StepApproveAnswer(TypedDict):
    status: StepStatus


class StepRejectAnswer(TypedDict):
    status: StepStatus


class TurnOfferAnswer(TypedDict):
    session: str


class TurnClaimAnswer(TypedDict):
    results: list[TurnResult]
    turns: list[ClaimedTurn]


class TurnCompleteAnswer(TypedDict):
    turn_id: str


class SignalSendAnswer(TypedDict):
    delivered: int
    kept: NotRequired[int]


class SignalStartAnswer(TypedDict):
    instance_id: Id
    existing: bool
    delivered: int
    kept: NotRequired[int]


class SignalBroadcastAnswer(TypedDict):
    delivered: int
    kept: NotRequired[int]
    full: NotRequired[int]
    refused: NotRequired[int]


class TestAdvanceAnswer(TypedDict):
    now: Time


class TestFireTimerAnswer(TypedDict):
    fired: int


class TestSignalAnswer(TypedDict):
    delivered: int
    kept: NotRequired[int]


class AlarmSetAnswer(TypedDict):
    alarm_id: KeptId


class AlarmListAnswer(TypedDict):
    alarms: list[Alarm]


class AlarmCancelAnswer(TypedDict):
    cancelled: bool


class TimerListAnswer(TypedDict):
    timers: list[ArmedTimer]
    more: bool


class SchedulePreviewAnswer(TypedDict):
    slots: list[dict[str, Any]]


class TokenCreateAnswer(TypedDict):
    token_id: KeptId
    token: str
    expires_at: Time


class TokenListAnswer(TypedDict):
    tokens: list[Token]


class TokenRevokeAnswer(TypedDict):
    revoked: bool


class StoreListAnswer(TypedDict):
    stores: list[StoreName]


class StorePutAnswer(TypedDict):
    store: StoreName


class StoreInfoAnswer(TypedDict):
    version: str
    sqlite: str | None
    format: str | None
    migrations: str | None
    store_id: str
    records: int
    root: Hash
    shards: NotRequired[int]
    rows_behind: int
    instances: int
    definitions: int
    wal_bytes: int
    now: Time
    last_record_at: Time | None
    clock_ahead_ms: int
    test_clock: bool
    timers_overdue: int
    oldest_overdue: Time | None
    schema_fault: str | None
    host_objects: int
    modules: list[CodeModule]


class StoreVerifyAnswer(TypedDict):
    valid: NotRequired[bool]
    records: int
    entries: int
    instances: int
    root: NotRequired[Hash]
    shards: NotRequired[list[ShardRoot]]
    first_bad: NotRequired[int]
    what: NotRequired[str]
    instance_id: NotRequired[Id]
    position: NotRequired[int]
    stopped_at: NotRequired[int]
    last: NotRequired[int]
    resumed_at: NotRequired[int]
    not_resumed: NotRequired[str]
    foreign: NotRequired[Any]


class HealthGetAnswer(TypedDict):
    status: Literal["ok", "degraded"]
    conditions: NotRequired[list[HealthCondition]]


class NodeListAnswer(TypedDict):
    nodes: list[StoreNode]
    shards: list[ShardOwner]
    clock_difference_ms: int


class BatchAnswer(TypedDict):
    status: int
    body: Any


class Pawl(_Calls):
    """Every operation, by its name with an underscore for the dot."""

    def definition_put(self, name: str, text: str, *, media: str = "application/yaml", idempotency_key: str | None = None) -> DefinitionPutAnswer:
        """Put a definition: creates a new version unless the newest one has the same text."""
        answer: DefinitionPutAnswer = self._call("PUT", "/v1/definitions/{name}", {"name": name}, {}, text, media=media, key=idempotency_key, keyed=True)
        return answer

    def definition_get(self, name: str, *, version: int | None = None, expanded: bool | None = None) -> DefinitionGetAnswer:
        """A definition with its text as supplied."""
        answer: DefinitionGetAnswer = self._call("GET", "/v1/definitions/{name}", {"name": name}, {"version": version, "expanded": expanded}, None)
        return answer

    def definition_graph(self, name: str, *, version: int | None = None, format: Literal["text", "mermaid", "dot", "svg", "json", "layout"] | None = None) -> Any:
        """A picture of a definition: text, Mermaid, Graphviz, SVG or JSON."""
        answer: Any = self._call("GET", "/v1/graphs/{name}", {"name": name}, {"version": version, "format": format}, None)
        return answer

    def definition_export(self, name: str, *, version: int | None = None) -> bytes:
        """A definition as a line of an export file."""
        answer: bytes = self._call("GET", "/v1/export/{name}", {"name": name}, {"version": version}, None)
        return answer

    def definition_list(self, *, limit: int | None = None, after: Cursor | None = None) -> DefinitionListAnswer:
        """The newest version of every definition."""
        answer: DefinitionListAnswer = self._call("GET", "/v1/definitions", {}, {"limit": limit, "after": after}, None)
        return answer

    def definition_check(self, text: str, *, against: Reference | None = None, media: str = "application/yaml") -> DefinitionCheckAnswer:
        """Check a definition; returns errors and warnings with line and column, stores nothing."""
        answer: DefinitionCheckAnswer = self._call("POST", "/v1/definitions/check", {}, {"against": against}, text, media=media)
        return answer

    def instance_create(self, *, definition: Reference | None = None, declaration: dict[str, Any] | None = None, input: Any | None = None, actor_ref: str | None = None, subject_ref: str | None = None, correlation_id: str | None = None, labels: Labels | None = None, instance_metadata: Any | None = None, instantiated_at: Time | None = None, test: bool | None = None, singleton: bool | None = None, idempotency_key: str | None = None) -> InstanceCreateAnswer:
        """Create an instance of a definition or of an inline machine."""
        answer: InstanceCreateAnswer = self._call("POST", "/v1/instances", {}, {}, {"definition": definition, "declaration": declaration, "input": input, "actor_ref": actor_ref, "subject_ref": subject_ref, "correlation_id": correlation_id, "labels": labels, "instance_metadata": instance_metadata, "instantiated_at": instantiated_at, "test": test, "singleton": singleton}, key=idempotency_key, keyed=True)
        return answer

    def instance_list(self, *, definition: Reference | None = None, kind: Kind | None = None, state: str | None = None, status: Status | None = None, subject_ref: str | None = None, correlation_id: str | None = None, created_after: Time | None = None, created_before: Time | None = None, active: Literal["true", "false"] | None = None, ended_after: Time | None = None, ended_before: Time | None = None, order: Literal["newest", "oldest"] | None = None, limit: int | None = None, after: Cursor | None = None, labels: dict[str, str] | None = None) -> InstanceListAnswer:
        """Instances, filtered; label.K=V filters by a label."""
        answer: InstanceListAnswer = self._call("GET", "/v1/instances", {}, {"definition": definition, "kind": kind, "state": state, "status": status, "subject_ref": subject_ref, "correlation_id": correlation_id, "created_after": created_after, "created_before": created_before, "active": active, "ended_after": ended_after, "ended_before": ended_before, "order": order, "limit": limit, "after": after, **{"label." + name: value for name, value in (labels or {}).items()}}, None)
        return answer

    def instance_find(self, *, prefix: IdPrefix | None = None) -> InstanceFindAnswer:
        """Find the instance whose id begins with a unique prefix, or the newest instance."""
        answer: InstanceFindAnswer = self._call("GET", "/v1/instances/find", {}, {"prefix": prefix}, None)
        return answer

    def instance_counts(self, *, definition: Reference | None = None) -> InstanceCountsAnswer:
        """Count instances by state and by status."""
        answer: InstanceCountsAnswer = self._call("GET", "/v1/instances/counts", {}, {"definition": definition}, None)
        return answer

    def instance_get(self, instance_id: str, *, expanded: bool | None = None) -> Instance:
        """Get an instance, with the actions that are legal now."""
        answer: Instance = self._call("GET", "/v1/instances/{instance_id}", {"instance_id": instance_id}, {"expanded": expanded}, None)
        return answer

    def instance_view(self, instance_id: str, *, entries: int | None = None, steps: int | None = None, children: int | None = None) -> View:
        """Get all that is shown of an instance, with its steps, waits and last entries."""
        answer: View = self._call("GET", "/v1/instances/{instance_id}/view", {"instance_id": instance_id}, {"entries": entries, "steps": steps, "children": children}, None)
        return answer

    def instance_current(self, instance_id: str) -> InstanceCurrentAnswer:
        """Get the current state."""
        answer: InstanceCurrentAnswer = self._call("GET", "/v1/instances/{instance_id}/current", {"instance_id": instance_id}, {}, None)
        return answer

    def instance_fire(self, instance_id: str, action: str, *, actor_ref: str | None = None, guard_satisfied: Any | None = None, fired_at: Time | None = None, reason: str | None = None, payload: Any | None = None, expected_sequence: int | None = None, idempotency_key: str | None = None) -> InstanceFireAnswer:
        """Fire an action of a machine."""
        answer: InstanceFireAnswer = self._call("POST", "/v1/instances/{instance_id}/fire", {"instance_id": instance_id}, {}, {"action": action, "actor_ref": actor_ref, "guard_satisfied": guard_satisfied, "fired_at": fired_at, "reason": reason, "payload": payload, "expected_sequence": expected_sequence}, key=idempotency_key, keyed=True)
        return answer

    def instance_history(self, instance_id: str, *, transition_id: TransitionId | None = None, from_state: str | None = None, to_state: str | None = None, action: str | None = None, actor_ref: str | None = None, sequence_from: int | None = None, sequence_to: int | None = None, fired_after: Time | None = None, fired_before: Time | None = None, sequence_number: str | None = None, fired_at: str | None = None, limit: int | None = None, after: Cursor | None = None) -> InstanceHistoryAnswer:
        """List the entries, oldest first."""
        answer: InstanceHistoryAnswer = self._call("GET", "/v1/instances/{instance_id}/history", {"instance_id": instance_id}, {"transition_id": transition_id, "from_state": from_state, "to_state": to_state, "action": action, "actor_ref": actor_ref, "sequence_from": sequence_from, "sequence_to": sequence_to, "fired_after": fired_after, "fired_before": fired_before, "sequence_number": sequence_number, "fired_at": fired_at, "limit": limit, "after": after}, None)
        return answer

    def instance_declaration(self, instance_id: str) -> bytes:
        """Get the declaration, byte for byte as supplied."""
        answer: bytes = self._call("GET", "/v1/instances/{instance_id}/declaration", {"instance_id": instance_id}, {}, None)
        return answer

    def instance_why(self, instance_id: str) -> InstanceWhyAnswer:
        """List what the instance waits for."""
        answer: InstanceWhyAnswer = self._call("GET", "/v1/instances/{instance_id}/why", {"instance_id": instance_id}, {}, None)
        return answer

    def instance_variables(self, instance_id: str, *, sequence_to: int | None = None) -> InstanceVariablesAnswer:
        """Get the variables of a code instance, or the context of a flow."""
        answer: InstanceVariablesAnswer = self._call("GET", "/v1/instances/{instance_id}/variables", {"instance_id": instance_id}, {"sequence_to": sequence_to}, None)
        return answer

    def instance_query(self, instance_id: str, name: str) -> InstanceQueryAnswer:
        """Ask an instance one of the queries of its definition."""
        answer: InstanceQueryAnswer = self._call("GET", "/v1/instances/{instance_id}/queries/{name}", {"instance_id": instance_id, "name": name}, {}, None)
        return answer

    def instance_steps(self, instance_id: str, *, limit: int | None = None, after: Cursor | None = None, without_args: Literal["true", "false"] | None = None) -> InstanceStepsAnswer:
        """List every attempt of every step, in the order of creation."""
        answer: InstanceStepsAnswer = self._call("GET", "/v1/instances/{instance_id}/steps", {"instance_id": instance_id}, {"limit": limit, "after": after, "without_args": without_args}, None)
        return answer

    def instance_graph(self, instance_id: str, *, format: Literal["text", "mermaid", "dot", "svg", "json", "layout"] | None = None, sequence_from: int | None = None, sequence_to: int | None = None) -> Any:
        """A picture of its definition, with the path that the instance took and its current state."""
        answer: Any = self._call("GET", "/v1/instances/{instance_id}/graph", {"instance_id": instance_id}, {"format": format, "sequence_from": sequence_from, "sequence_to": sequence_to}, None)
        return answer

    def instance_export(self, instance_id: str) -> bytes:
        """Export its definition, its row and every record with values and hash, one line each."""
        answer: bytes = self._call("GET", "/v1/instances/{instance_id}/export", {"instance_id": instance_id}, {}, None)
        return answer

    def instance_records(self, instance_id: str) -> bytes:
        """Get its row and every record with values and hash, so that a caller can verify them."""
        answer: bytes = self._call("GET", "/v1/instances/{instance_id}/records", {"instance_id": instance_id}, {}, None)
        return answer

    def instance_cancel(self, instance_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> InstanceCancelAnswer:
        """Cancel an instance."""
        answer: InstanceCancelAnswer = self._call("POST", "/v1/instances/{instance_id}/cancel", {"instance_id": instance_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def instance_pause(self, instance_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> InstancePauseAnswer:
        """Pause an instance: until it is resumed it accepts only a cancel."""
        answer: InstancePauseAnswer = self._call("POST", "/v1/instances/{instance_id}/pause", {"instance_id": instance_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def instance_resume(self, instance_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> InstanceResumeAnswer:
        """Resume a paused instance; timers that fell due in the meantime fire now."""
        answer: InstanceResumeAnswer = self._call("POST", "/v1/instances/{instance_id}/resume", {"instance_id": instance_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def instance_amend(self, instance_id: str, definition: Reference, *, actor_ref: str | None = None, idempotency_key: str | None = None) -> InstanceAmendAnswer:
        """Move a running flow to another definition, from its next step on."""
        answer: InstanceAmendAnswer = self._call("POST", "/v1/instances/{instance_id}/amend", {"instance_id": instance_id}, {}, {"definition": definition, "actor_ref": actor_ref}, key=idempotency_key, keyed=True)
        return answer

    def instance_redrive(self, instance_id: str, *, definition: Reference | None = None, from_: str | None = None, actor_ref: str | None = None, idempotency_key: str | None = None) -> InstanceRedriveAnswer:
        """Run a failed or cancelled flow again from where it failed (code: from its beginning), as a new instance."""
        answer: InstanceRedriveAnswer = self._call("POST", "/v1/instances/{instance_id}/redrive", {"instance_id": instance_id}, {}, {"definition": definition, "from": from_, "actor_ref": actor_ref}, key=idempotency_key, keyed=True)
        return answer

    def instance_cancel_many(self, correlation_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> InstanceCancelManyAnswer:
        """Cancel every instance with a correlation id; instances that cannot be cancelled count as refused."""
        answer: InstanceCancelManyAnswer = self._call("POST", "/v1/cancel", {}, {}, {"correlation_id": correlation_id, "actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def instance_erase(self, instance_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> InstanceEraseAnswer:
        """Erase what an instance that has ended holds, and what its children hold."""
        answer: InstanceEraseAnswer = self._call("POST", "/v1/instances/{instance_id}/erase", {"instance_id": instance_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def instance_archive(self, instance_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> InstanceArchiveAnswer:
        """Move an instance that has ended into the archive file, with all that it began."""
        answer: InstanceArchiveAnswer = self._call("POST", "/v1/instances/{instance_id}/archive", {"instance_id": instance_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def store_archive(self, *, definition: Reference | None = None, ended_before: Time | None = None, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> StoreArchiveAnswer:
        """Move instances that have ended into the archive file, the oldest first."""
        answer: StoreArchiveAnswer = self._call("POST", "/v1/archive", {}, {}, {"definition": definition, "ended_before": ended_before, "actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def instance_hold(self, instance_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> InstanceHoldAnswer:
        """Put an instance on hold, so that nothing of it is erased."""
        answer: InstanceHoldAnswer = self._call("POST", "/v1/instances/{instance_id}/hold", {"instance_id": instance_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def instance_lift(self, instance_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> InstanceLiftAnswer:
        """Lift the hold on an instance."""
        answer: InstanceLiftAnswer = self._call("POST", "/v1/instances/{instance_id}/lift", {"instance_id": instance_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def hold_list(self, *, limit: int | None = None) -> HoldListAnswer:
        """List the instances on hold."""
        answer: HoldListAnswer = self._call("GET", "/v1/holds", {}, {"limit": limit}, None)
        return answer

    def retention_list(self) -> RetentionListAnswer:
        """List the definitions with a retention, and what is due by it."""
        answer: RetentionListAnswer = self._call("GET", "/v1/retention", {}, {}, None)
        return answer

    def subject_erase(self, subject_ref: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> SubjectEraseAnswer:
        """Erase all instances of a subject that have ended, and the subject's name."""
        answer: SubjectEraseAnswer = self._call("POST", "/v1/erase", {}, {}, {"subject_ref": subject_ref, "actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def instance_verify(self, instance_id: str) -> InstanceVerifyAnswer:
        """Verify its records, its rows and, for a flow, its decisions."""
        answer: InstanceVerifyAnswer = self._call("POST", "/v1/instances/{instance_id}/verify", {"instance_id": instance_id}, {}, None)
        return answer

    def step_list(self, *, status: StepStatus | None = None, tool: str | None = None, instance_id: Id | None = None, limit: int | None = None, after: Cursor | None = None) -> StepListAnswer:
        """List live steps of all instances, or every step of one instance."""
        answer: StepListAnswer = self._call("GET", "/v1/steps", {}, {"status": status, "tool": tool, "instance_id": instance_id, "limit": limit, "after": after}, None)
        return answer

    def gate_list(self, *, approver: str | None = None, definition: Reference | None = None, limit: int | None = None, after: Cursor | None = None) -> GateListAnswer:
        """List the gates that wait for an approval: for whom, since when and until when."""
        answer: GateListAnswer = self._call("GET", "/v1/gates", {}, {"approver": approver, "definition": definition, "limit": limit, "after": after}, None)
        return answer

    def worker_list(self) -> WorkerListAnswer:
        """List the workers that have asked for steps, with their tools and load."""
        answer: WorkerListAnswer = self._call("GET", "/v1/workers", {}, {}, None)
        return answer

    def tool_list(self) -> ToolListAnswer:
        """List the tools that steps can call here, and what MCP servers offer now."""
        answer: ToolListAnswer = self._call("GET", "/v1/tools", {}, {}, None)
        return answer

    def step_claim(self, tools: list[str], worker: str, *, max: int | None = None, wait: Duration | None = None, lease: Duration | None = None) -> StepClaimAnswer:
        """Claim ready steps of some tools, with a lease for each."""
        answer: StepClaimAnswer = self._call("POST", "/v1/steps/claim", {}, {}, {"tools": tools, "worker": worker, "max": max, "wait": wait, "lease": lease}, wait=_seconds(wait or "0s"))
        return answer

    def step_complete_many(self, steps: list[StepAnswer], *, claim: Claim | None = None) -> StepCompleteManyAnswer:
        """A worker's whole turn: answer steps and claim the next ones."""
        answer: StepCompleteManyAnswer = self._call("POST", "/v1/steps/complete", {}, {}, {"steps": steps, "claim": claim})
        return answer

    def step_complete(self, step_id: str, *, lease: str | None = None, result: Any | None = None, idempotency_key: str | None = None) -> StepCompleteAnswer:
        """Complete a claimed or external step with a result."""
        answer: StepCompleteAnswer = self._call("POST", "/v1/steps/{step_id}/complete", {"step_id": step_id}, {}, {"lease": lease, "result": result}, key=idempotency_key, keyed=True)
        return answer

    def step_fail(self, step_id: str, *, lease: str | None = None, error: Any | None = None, retry: bool | None = None, idempotency_key: str | None = None) -> StepFailAnswer:
        """Fail a claimed or external step; its retry policy applies."""
        answer: StepFailAnswer = self._call("POST", "/v1/steps/{step_id}/fail", {"step_id": step_id}, {}, {"lease": lease, "error": error, "retry": retry}, key=idempotency_key, keyed=True)
        return answer

    def step_heartbeat(self, step_id: str, *, lease: str | None = None, extend: Duration | None = None, progress: Any | None = None) -> StepHeartbeatAnswer:
        """Extend the lease of a step."""
        answer: StepHeartbeatAnswer = self._call("POST", "/v1/steps/{step_id}/heartbeat", {"step_id": step_id}, {}, {"lease": lease, "extend": extend, "progress": progress})
        return answer

    def step_approve(self, step_id: str, *, actor_ref: str | None = None, reason: str | None = None, payload: Any | None = None, idempotency_key: str | None = None) -> StepApproveAnswer:
        """Approve a gate."""
        answer: StepApproveAnswer = self._call("POST", "/v1/steps/{step_id}/approve", {"step_id": step_id}, {}, {"actor_ref": actor_ref, "reason": reason, "payload": payload}, key=idempotency_key, keyed=True)
        return answer

    def step_reject(self, step_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> StepRejectAnswer:
        """Reject a gate: the step fails with the reason."""
        answer: StepRejectAnswer = self._call("POST", "/v1/steps/{step_id}/reject", {"step_id": step_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def turn_offer(self, worker: str, hello: dict[str, Any]) -> TurnOfferAnswer:
        """Offer code: a worker elsewhere will take the turns of these types."""
        answer: TurnOfferAnswer = self._call("POST", "/v1/turns/offer", {}, {}, {"worker": worker, "hello": hello}, again=False)
        return answer

    def turn_claim(self, session: str, *, answers: list[TurnAnswer] | None = None, max: int | None = None, wait: Duration | None = None, lease: Duration | None = None) -> TurnClaimAnswer:
        """Claim turns of code, with a lease for each; and answer those before."""
        answer: TurnClaimAnswer = self._call("POST", "/v1/turns/claim", {}, {}, {"session": session, "answers": answers, "max": max, "wait": wait, "lease": lease}, again=False, wait=_seconds(wait or "0s"))
        return answer

    def turn_complete(self, turn_id: str, lease: str, answer: dict[str, Any]) -> TurnCompleteAnswer:
        """Answer a turn that was claimed."""
        found: TurnCompleteAnswer = self._call("POST", "/v1/turns/{turn_id}/complete", {"turn_id": turn_id}, {}, {"lease": lease, "answer": answer})
        return found

    def signal_send(self, instance_id: str, name: str, *, payload: Any | None = None, actor_ref: str | None = None, idempotency_key: str | None = None) -> SignalSendAnswer:
        """Send a signal to an instance that awaits it."""
        answer: SignalSendAnswer = self._call("POST", "/v1/instances/{instance_id}/signals", {"instance_id": instance_id}, {}, {"name": name, "payload": payload, "actor_ref": actor_ref}, key=idempotency_key, keyed=True)
        return answer

    def signal_start(self, name: str, definition: Reference, subject_ref: str, *, payload: Any | None = None, input: Any | None = None, correlation_id: str | None = None, labels: Labels | None = None, actor_ref: str | None = None, idempotency_key: str | None = None) -> SignalStartAnswer:
        """Send a signal to the one instance about a subject, and create it first if there is none."""
        answer: SignalStartAnswer = self._call("POST", "/v1/signals/start", {}, {}, {"name": name, "payload": payload, "definition": definition, "subject_ref": subject_ref, "input": input, "correlation_id": correlation_id, "labels": labels, "actor_ref": actor_ref}, key=idempotency_key, keyed=True)
        return answer

    def signal_broadcast(self, name: str, *, filter: Any | None = None, payload: Any | None = None, actor_ref: str | None = None, idempotency_key: str | None = None) -> SignalBroadcastAnswer:
        """Send a signal to every instance that awaits or keeps it."""
        answer: SignalBroadcastAnswer = self._call("POST", "/v1/signals", {}, {}, {"name": name, "filter": filter, "payload": payload, "actor_ref": actor_ref}, key=idempotency_key, keyed=True)
        return answer

    def test_advance(self, by: Duration, *, idempotency_key: str | None = None) -> TestAdvanceAnswer:
        """Advance the test clock; returns when nothing more is due."""
        answer: TestAdvanceAnswer = self._call("POST", "/v1/test/advance", {}, {}, {"by": by}, key=idempotency_key, keyed=True)
        return answer

    def test_fire_timer(self, instance_id: str, name: str, *, idempotency_key: str | None = None) -> TestFireTimerAnswer:
        """Fire a timer of a test instance."""
        answer: TestFireTimerAnswer = self._call("POST", "/v1/test/instances/{instance_id}/timers/{name}/fire", {"instance_id": instance_id, "name": name}, {}, None, key=idempotency_key, keyed=True)
        return answer

    def test_signal(self, instance_id: str, name: str, *, payload: Any | None = None, actor_ref: str | None = None, idempotency_key: str | None = None) -> TestSignalAnswer:
        """Send a signal to a test instance."""
        answer: TestSignalAnswer = self._call("POST", "/v1/test/instances/{instance_id}/signals", {"instance_id": instance_id}, {}, {"name": name, "payload": payload, "actor_ref": actor_ref}, key=idempotency_key, keyed=True)
        return answer

    def alarm_set(self, operation: str, input: dict[str, Any], *, at: Time | None = None, after: Duration | None = None, idempotency_key: str | None = None) -> AlarmSetAnswer:
        """Run an operation later, once."""
        answer: AlarmSetAnswer = self._call("POST", "/v1/alarms", {}, {}, {"at": at, "after": after, "operation": operation, "input": input}, key=idempotency_key, keyed=True)
        return answer

    def alarm_list(self) -> AlarmListAnswer:
        """Alarms that have not fired, next first."""
        answer: AlarmListAnswer = self._call("GET", "/v1/alarms", {}, {}, None)
        return answer

    def alarm_cancel(self, alarm_id: str, *, idempotency_key: str | None = None) -> AlarmCancelAnswer:
        """Cancel an alarm that has not fired."""
        answer: AlarmCancelAnswer = self._call("DELETE", "/v1/alarms/{alarm_id}", {"alarm_id": alarm_id}, {}, None, key=idempotency_key, keyed=True)
        return answer

    def timer_list(self, *, definition: Reference | None = None, limit: int | None = None) -> TimerListAnswer:
        """List the timers of instances that fall due next, the next one first."""
        answer: TimerListAnswer = self._call("GET", "/v1/timers", {}, {"definition": definition, "limit": limit}, None)
        return answer

    def schedule_preview(self, *, cron: str | None = None, every: Duration | None = None, zone: str | None = None, after: Time | None = None, limit: int | None = None) -> SchedulePreviewAnswer:
        """Preview a schedule, the times at which it is due next."""
        answer: SchedulePreviewAnswer = self._call("GET", "/v1/schedule", {}, {"cron": cron, "every": every, "zone": zone, "after": after, "limit": limit}, None)
        return answer

    def token_create(self, scopes: str, *, actor: str | None = None, expires: Duration | None = None, name: str | None = None) -> TokenCreateAnswer:
        """Create a token; its secret is returned only once."""
        answer: TokenCreateAnswer = self._call("POST", "/v1/tokens", {}, {}, {"scopes": scopes, "actor": actor, "expires": expires, "name": name}, again=False)
        return answer

    def token_list(self) -> TokenListAnswer:
        """List valid tokens, without their secrets."""
        answer: TokenListAnswer = self._call("GET", "/v1/tokens", {}, {}, None)
        return answer

    def token_revoke(self, token_id: str, *, idempotency_key: str | None = None) -> TokenRevokeAnswer:
        """Revoke a token, at once."""
        answer: TokenRevokeAnswer = self._call("DELETE", "/v1/tokens/{token_id}", {"token_id": token_id}, {}, None, key=idempotency_key, keyed=True)
        return answer

    def store_list(self) -> StoreListAnswer:
        """List the stores: default, and those that were created."""
        answer: StoreListAnswer = self._call("GET", "/v1/stores", {}, {}, None)
        return answer

    def store_put(self, store: str, *, idempotency_key: str | None = None) -> StorePutAnswer:
        """Create a store, unless it exists; every route is also under /v1/stores/NAME."""
        answer: StorePutAnswer = self._call("PUT", "/v1/stores/{store}", {"store": store}, {}, None, key=idempotency_key, keyed=True)
        return answer

    def store_info(self) -> StoreInfoAnswer:
        """Describe the store: versions, records, clock, overdue timers."""
        answer: StoreInfoAnswer = self._call("GET", "/v1/info", {}, {}, None)
        return answer

    def store_verify(self, *, definition: Reference | None = None) -> StoreVerifyAnswer:
        """Verify every record of the store, or every instance of a definition."""
        answer: StoreVerifyAnswer = self._call("POST", "/v1/verify", {}, {}, {"definition": definition})
        return answer

    def validation_start(self, definition: Reference, *, actor_ref: str | None = None, idempotency_key: str | None = None) -> Validation:
        """Begin to check every instance of a definition; the check is an instance itself."""
        answer: Validation = self._call("POST", "/v1/validations", {}, {}, {"definition": definition, "actor_ref": actor_ref}, key=idempotency_key, keyed=True)
        return answer

    def validation_run(self, instance_id: str, *, max: int | None = None, idempotency_key: str | None = None) -> Validation:
        """Check the next instances of a validation, and tell how far it is."""
        answer: Validation = self._call("POST", "/v1/validations/{instance_id}/run", {"instance_id": instance_id}, {}, {"max": max}, key=idempotency_key, keyed=True)
        return answer

    def validation_cancel(self, instance_id: str, *, actor_ref: str | None = None, reason: str | None = None, idempotency_key: str | None = None) -> Validation:
        """Cancel a validation."""
        answer: Validation = self._call("POST", "/v1/validations/{instance_id}/cancel", {"instance_id": instance_id}, {}, {"actor_ref": actor_ref, "reason": reason}, key=idempotency_key, keyed=True)
        return answer

    def metrics_get(self) -> bytes:
        """Metrics in the format of Prometheus."""
        answer: bytes = self._call("GET", "/metrics", {}, {}, None)
        return answer

    def openapi_get(self) -> dict[str, Any]:
        """Describe all operations as an OpenAPI document."""
        answer: dict[str, Any] = self._call("GET", "/openapi.json", {}, {}, None)
        return answer

    def health_get(self) -> HealthGetAnswer:
        """Report whether the store works, and what is wrong."""
        answer: HealthGetAnswer = self._call("GET", "/healthz", {}, {}, None)
        return answer

    def node_list(self) -> NodeListAnswer:
        """List the nodes that serve the store, and who owns which shard."""
        answer: NodeListAnswer = self._call("GET", "/v1/nodes", {}, {}, None)
        return answer
