"""turns.py - the turn protocol (docs/turn-protocol.md): this process takes turns and runs steps for a pawl that started it."""
from __future__ import annotations

import asyncio
import collections
import contextvars
import hashlib
import importlib.util
import inspect
import json
import logging
import os
import pathlib
import struct
import sys
import time
import traceback
from typing import Any, BinaryIO, Callable

from . import durable, values

PROTOCOL = 1
MOMENT = 0.001
KEPT = 4096  # instances that stay in memory between their turns
INVALID_REQUEST, NOT_KNOWN = 1, 5

log = logging.getLogger("pawl_client.workflow")


class _WhileReplayed(logging.Filter):
    """What a workflow logs is written once: not when it is replayed."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (durable._current and durable._current[-1].is_replaying)


log.addFilter(_WhileReplayed())


class StepInfo:
    """What a step may know of itself, step_info(): its idempotency key is the same for all attempts."""

    def __init__(self, request: dict[str, Any]):
        self.idempotency_key: str = request.get("key") or ""
        self.instance_id: str = request.get("instance") or ""
        self.name: str = request.get("step") or request["tool"]
        self.attempt: int = request.get("attempt", 1)


_info: contextvars.ContextVar[StepInfo] = contextvars.ContextVar("pawl_step")


def step_info() -> StepInfo:
    return _info.get()


# ---- Frames ----------------------------------------------------------------------------------------------------------------------------


def read_frame(stream: BinaryIO) -> bytes | None:
    head = stream.read(4)
    if len(head) < 4:
        return None
    size: int = struct.unpack("<I", head)[0]
    body = stream.read(size)
    return body if len(body) == size else None


def write_frame(stream: BinaryIO, answer: dict[str, Any]) -> None:
    body = json.dumps(answer, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    stream.write(struct.pack("<I", len(body)) + body)
    stream.flush()


# ---- Hello -----------------------------------------------------------------------------------------------------------------------------


def source_of(flow: durable.Workflow[Any, Any]) -> dict[str, Any]:
    """The registration: what a definition of code is stored as."""
    signals, calls = sorted(flow.signals), sorted(flow.steps)
    source: dict[str, Any] = {"code": flow.name, "version": flow.version, "timers": [], "signals": signals, "vars": []}
    more = {"calls": calls, "externals": sorted(flow.external), "children": sorted(flow.children), "buffered": [name for name in signals if name not in flow.passing]}
    source.update({key: found for key, found in more.items() if found})
    retries = [{"call": name, **durable.RETRIES[flow.steps[name]]} for name in calls if flow.steps[name] in durable.RETRIES]
    if retries:
        source["retries"] = retries
    return {**source, "replay": True}


def build_of(flows: dict[str, durable.Workflow[Any, Any]]) -> str:
    """Stands for the files that the workflows and their steps are in, and for what those import of their own folder: every process of
    one load has the same."""
    digest = hashlib.sha256()
    files = {inspect.getsourcefile(fn) for flow in flows.values() for fn in (flow.function, *flow.steps.values())}
    folders = tuple({os.path.dirname(os.path.abspath(inspect.getsourcefile(flow.function) or "")) + os.sep for flow in flows.values()})
    loaded = [str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())]
    files |= {name for name in loaded if name.endswith(".py") and name.startswith(folders) and "site-packages" not in name}
    files -= {name for name in files if name and name.startswith(os.path.dirname(__file__) + os.sep)}
    for name in sorted(name for name in files if name and os.path.isfile(name)):
        digest.update(os.path.basename(name).encode() + b"\0" + pathlib.Path(name).read_bytes() + b"\0")
    return digest.hexdigest()


def hello() -> dict[str, Any]:
    flows = durable.WORKFLOWS
    if not flows:
        return {"error": "the module has no workflow: expected an async def with @workflow"}
    durable.find_uses(flows.values())
    tools = sorted({name for flow in flows.values() for name in flow.steps})
    return {"pawl": PROTOCOL, "many": 1, "build": build_of(flows), "language": "python %d.%d" % sys.version_info[:2],
            "types": [source_of(flow) for flow in flows.values()], "tools": tools}


# ---- Turns -----------------------------------------------------------------------------------------------------------------------------


def _groups(events: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any] | None, list[dict[str, Any]]]]:
    """The events of each turn: (at, note, events). Owed ones wait for the turn behind them."""
    groups: list[tuple[int, dict[str, Any] | None, list[dict[str, Any]]]] = []
    owed: list[dict[str, Any]] = []
    for event in events:
        if event["kind"] == 0 or not event.get("owed"):
            groups.append((event["at"], event.get("note"), owed + ([event] if event["kind"] else [])))
            owed = []
        else:
            owed.append(event)
    return groups


def _turn(run: durable.Run, at: int, note: dict[str, Any] | None, events: list[dict[str, Any]], is_replayed: bool) -> dict[str, Any]:
    run.begin(at, note, is_replayed)
    for event in events:
        run.feed(event)
        run.go_on()
    return run.end()


def replay(flow: durable.Workflow[Any, Any], request: dict[str, Any]) -> durable.Run:
    run = durable.Run(flow)
    run.id = request.get("id", "")
    if request.get("state"):
        run.resume_from(request["state"])
    for at, note, events in _groups(request["events"]):
        _turn(run, at, note, events, True)
    run.check_open(request["open"], request["fresh"])
    return run


def _where(error: BaseException) -> str:
    """The last line of the author's own that an error went through."""
    library = (os.path.dirname(__file__), os.path.dirname(traceback.__file__), "<frozen ")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(library)]
    return " (%s:%s)" % (frames[-1].filename, frames[-1].lineno) if frames else ""


def _words(error: BaseException) -> str:
    where = "" if isinstance(error, durable.NondeterminismError) else _where(error)
    hint = "; a workflow awaits what pawl_client gives, and what needs asyncio belongs in a step" if "event loop" in str(error) else ""
    return ("%s: %s%s%s" % (type(error).__name__, error, hint, where)).encode(errors="replace").decode()[:390]


class Server:
    def __init__(self) -> None:
        self.kept: collections.OrderedDict[int, durable.Run] = collections.OrderedDict()

    def keep(self, number: int, run: durable.Run) -> None:
        self.kept[number] = run
        while len(self.kept) > KEPT:
            self.kept.popitem(last=False)

    def check(self, flow: durable.Workflow[Any, Any], request: dict[str, Any]) -> dict[str, Any]:
        hint = flow.signals.get(request.get("name", ""), Any)
        if not values.fits(request.get("payload"), hint):
            return _refuse("the payload of '%s': expected %s, found %s"
                           % (request.get("name"), getattr(hint, "__name__", hint), json.dumps(request.get("payload"))[:80]))
        return {"end": 0}

    def turn(self, request: dict[str, Any]) -> dict[str, Any]:
        flow = durable.WORKFLOWS.get(request["type"])
        if flow is None:
            return {"status": NOT_KNOWN, "message": "the module has no type '%s'" % request["type"]}
        if request.get("check"):
            return self.check(flow, request)
        run = self.kept.pop(request["have"], None) if "have" in request else None
        if run is None and "have" in request:
            return {"need": 1}
        refused = self.refuse_fresh(flow, request["fresh"])
        if refused:
            return refused
        try:
            run = run or replay(flow, request)
            run.id = request.get("id", "")
            answer = _turn(run, request["at"], None, request["fresh"], False)
        except (Exception, SystemExit) as error:  # what ends a process is a mistake as well
            if not isinstance(error, (durable.NondeterminismError, durable.Mistake)):
                log.error("the workflow %s cannot go on", flow.name, exc_info=error)
            return {"end": 3, "problem": _words(error)}
        if answer["end"] == 0:
            self.keep(request["keep"], run)
        return answer

    def refuse_fresh(self, flow: durable.Workflow[Any, Any], fresh: list[dict[str, Any]]) -> dict[str, Any] | None:
        """A sender gets what is wrong with what was sent."""
        event: dict[str, Any] = fresh[0] if len(fresh) == 1 and not fresh[0].get("owed") else {"kind": 0}
        if event["kind"] == durable.START:
            try:
                values.bind(flow.function, event.get("payload") or {})
            except ValueError as error:
                return _refuse("the input of '%s': %s" % (flow.name, error))
        if event["kind"] == durable.SIGNAL:
            answer = self.check(flow, event)
            return answer if "status" in answer else None
        return None

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        fn = next((flow.steps[request["tool"]] for flow in durable.WORKFLOWS.values() if request["tool"] in flow.steps), None)
        if fn is None:
            return {"failed": "the module has no step '%s'" % request["tool"], "final": 1}
        return contextvars.copy_context().run(_run_step, fn, request)

    def step(self, request: dict[str, Any]) -> dict[str, Any]:
        """How long it took is told if it took any time: quick ones are asked for together."""
        begun = time.monotonic()
        answer = self.call(request)
        took = int((time.monotonic() - begun) * 1000)
        return {**answer, "ms": took} if took > 1 else answer

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.step(request) if "tool" in request else self.turn(request)

    def then(self, request: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any] | None:
        """The turn that the result of a step leads to, where its instance is in memory; None: it will be asked for."""
        then = request.get("then")
        run = self.kept.pop(then["have"], None) if then and "result" in answer else None
        if then is None or run is None or run.flow.name != then["type"]:
            return None
        run.id = request["instance"]
        event = {"kind": durable.CALL, "at": then["at"], "name": request["step"], "payload": answer["result"], "call": then["call"]}
        try:
            turn = _turn(run, then["at"], None, [event], False)
        except (Exception, SystemExit):
            return None  # it is asked for, and says what is wrong then
        if turn["end"] == 0:
            self.keep(then["keep"], run)
        return {"turn": turn, "timed": 1} if run.is_timed else {"turn": turn}

    def many(self, requests: list[dict[str, Any]], write: Callable[[dict[str, Any]], None]) -> None:
        """Steps in their order, and behind them the turns that they lead to. What was answered is sent before it is a moment old."""
        all_answers: list[dict[str, Any]] = []
        sent, since = 0, time.monotonic()
        for request in requests:
            begun = time.monotonic()
            if begun - since >= MOMENT and len(all_answers) > sent:
                write({"answers": all_answers[sent:]})
                sent, since = len(all_answers), begun
            all_answers.append(self.step(request))
        write({"answers": all_answers[sent:]})
        write({"turns": [self.then(request, answer) for request, answer in zip(requests, all_answers)]})


def _refuse(words: str) -> dict[str, Any]:
    return {"status": INVALID_REQUEST, "message": words[:390]}


def _run_step(fn: Callable[..., Any], request: dict[str, Any]) -> dict[str, Any]:
    _info.set(StepInfo(request))
    try:
        result = fn(**values.bind(fn, request.get("args") or {}))
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        return {"result": values.encode(result)}
    except durable.Fail as error:
        return {"failed": values.encode(error.error), **({} if error.retry else {"final": 1})}
    except (Exception, SystemExit) as error:
        logging.getLogger("pawl_client").error("step %s (attempt %s) failed", request["tool"], request.get("attempt"), exc_info=error)
        return {"failed": {"type": type(error).__name__, "message": str(error).encode(errors="replace").decode()[:64000]}}


# ---- The process -----------------------------------------------------------------------------------------------------------------------


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """0 and 1 are the protocol's: what the code prints goes to stderr."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return os.fdopen(requests, "rb", buffering=1 << 16), os.fdopen(answers, "wb", buffering=1 << 16)


def serve(requests: BinaryIO, answers: BinaryIO, first: dict[str, Any]) -> None:
    try:
        _serve(requests, answers, first)
    except BrokenPipeError:  # pawl has gone
        os._exit(0)


def _serve(requests: BinaryIO, answers: BinaryIO, first: dict[str, Any]) -> None:
    write_frame(answers, first)
    if "error" in first:
        return
    server = Server()
    while (body := read_frame(requests)) is not None:
        request = json.loads(body)
        if "many" in request:
            server.many(request["many"], lambda answer: write_frame(answers, answer))
        else:
            write_frame(answers, server.answer(request))


def run() -> None:
    """Serve the workflows of this program: `pawl serve --module "python3 game.py"` starts it."""
    if os.isatty(0) or os.isatty(1):
        raise SystemExit("this is a module of pawl: start it with `pawl run %s`, or `pawl serve --module %s`" % (sys.argv[0], sys.argv[0]))
    requests, answers = _pipes()
    serve(requests, answers, hello())


def load(path: str) -> None:
    """The workflows of a file are those of this program from now on."""
    file = pathlib.Path(path).resolve()
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if not spec or not spec.loader or not file.is_file():
        raise FileNotFoundError("there is no file '%s'" % path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)


def main(path: str) -> None:
    """python3 -m pawl_client game.py"""
    requests, answers = _pipes()
    try:
        load(path)
        first = hello()
    except Exception as error:
        traceback.print_exc()
        first = {"error": "module '%s' cannot be loaded: %s" % (path, _words(error))}
    serve(requests, answers, first)
