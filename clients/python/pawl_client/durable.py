"""durable.py - durable code in Python: what a workflow is written with.

A workflow is an `async def`. Its locals, loops and helpers are ordinary; the program may die at any `await` and goes on there. Nothing but
the events that came is stored: after a death the code runs again from its last checkpoint with those events, and comes to the same place.
So it must do the same again: time, chance and the world come through `now()`, `random()` and `step()`.
"""
from __future__ import annotations

import ast
import datetime
import inspect
import re
import sys
import types
from typing import Any, Awaitable, Callable, Coroutine, Generator, Generic, Iterable, ParamSpec, Sequence, TypeVar, overload

from . import values

T = TypeVar("T")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
P = ParamSpec("P")
Duration = float | int | str | datetime.timedelta


class Fail(Exception):
    """The step, or the workflow, has failed with this error (any JSON). Of a step: retry=False ends its attempts."""

    def __init__(self, error: Any, retry: bool = True):
        super().__init__(str(error))
        self.error, self.retry = error, retry


class StepError(Fail):
    """A step has failed, and its attempts are over. `error` is what it failed with, `step` its name."""

    def __init__(self, step: str, error: Any):
        super().__init__(error)
        self.step = step

    def __str__(self) -> str:
        return "%s failed: %s" % (self.step, self.error)


class ChildError(StepError):
    """A child has failed, or was cancelled ("child-cancelled")."""


class NondeterminismError(Exception):
    """The code, replayed, did not come to where it was. Names the line and the entry."""


class Mistake(Exception):
    """The code asks for what it may not: the instance is paused, and the words say why."""


class ContinueAs(BaseException):
    """Raised by continue_as(); not to be caught."""

    def __init__(self, args: dict[str, Any]):
        super().__init__()
        self.arguments = args


def seconds(duration: Duration) -> float:
    """2, 0.5, "90s", "5m", "12h", "7d", "250ms" or a timedelta."""
    if isinstance(duration, datetime.timedelta):
        return duration.total_seconds()
    if isinstance(duration, (int, float)) and not isinstance(duration, bool):
        return float(duration)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", str(duration))
    if not found:
        raise ValueError('a duration: expected seconds, a timedelta or a text like "90s", "5m", "7d", found %r' % (duration,))
    return float(found[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[found[2]]


# ---- What code awaits ------------------------------------------------------------------------------------------------------------------


class Future(Generic[T]):
    """Something that has begun and may be awaited: a step, a timer, a signal, a child."""

    _value: T

    def __init__(self, run: Run, label: str):
        self._run, self.label = run, label
        self._done = self._cancelled = False
        self._error: BaseException | None = None
        self._waiting: list[Task[Any]] = []
        self.child_id: str | None = None

    def done(self) -> bool:
        return self._done

    def cancel(self) -> None:
        """It is no longer wanted: a timer is disarmed, a step is withdrawn, a child is cancelled."""
        if not self._done:
            self._cancelled = self._done = True
            self._error = Mistake("%s was cancelled, and is awaited" % self.label)
            self._run.forget(self)

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value

    def with_key(self, key: str) -> Future[T]:
        """Of a step that was just asked for: its own idempotency key, INSTANCE:key, the same each time around a loop."""
        call = next((call for call in self._run.calls if call.future is self and not call.number), None)
        if call is None or call.spawn:
            raise Mistake("with_key() belongs right behind a step: await step(...).with_key(%r)" % key)
        call.key = key
        return self

    def settle(self, value: Any, error: BaseException | None = None) -> None:
        if self._done:
            return
        self._done, self._value, self._error = True, value, error
        for task in self._waiting:
            self._run.ready.append(task)
        self._waiting.clear()

    def __await__(self) -> Generator[Future[Any], None, T]:
        while not self._done:
            yield self
        return self.result()


class Task(Future[T]):
    """A coroutine that runs beside others: an arm of gather() or select()."""

    def __init__(self, run: Run, coroutine: Coroutine[Any, Any, T]):
        super().__init__(run, getattr(coroutine, "__qualname__", "a coroutine"))
        self.coroutine = coroutine
        self.awaiting: Future[Any] | None = None
        run.ready.append(self)

    def cancel(self) -> None:
        if not self._done:
            self._done = self._cancelled = True
            self._error = Mistake("%s was cancelled, and is awaited" % self.label)
            if self.awaiting and self in self.awaiting._waiting:
                self.awaiting._waiting.remove(self)
                if not self.awaiting._waiting:
                    self.awaiting.cancel()
            self.coroutine.close()

    def advance(self) -> None:
        if self._done:
            return
        try:
            awaited = self.coroutine.send(None)
        except StopIteration as end:
            self.settle(end.value)
        except Exception as error:
            self.settle(None, error)
        else:
            if not isinstance(awaited, Future):
                raise Mistake("%s awaits %r; a workflow awaits what pawl_client gives: step(), sleep(), signal(), spawn(), gather(), "
                              "select()" % (self.label, awaited))
            self.awaiting = awaited
            awaited._waiting.append(self)

    def place(self) -> str:
        """file:line where it waits, of the innermost helper."""
        coroutine: Any = self.coroutine
        frame = getattr(coroutine, "cr_frame", None)
        while getattr(coroutine, "cr_await", None) is not None and getattr(coroutine.cr_await, "cr_frame", None) is not None:
            coroutine = coroutine.cr_await
            frame = coroutine.cr_frame
        return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno) if frame else "its end"


# ---- The types -------------------------------------------------------------------------------------------------------------------------


class Signal(Generic[T]):
    """A signal with the type of its payload: paid = Signal("paid", int); cents = await signal(paid).

    kept=False: one that comes while the code does not await it is refused (not-awaiting), instead of kept until it does."""

    @overload
    def __init__(self: Signal[Any], name: str, *, kept: bool = True) -> None: ...

    @overload
    def __init__(self, name: str, payload: type[T], *, kept: bool = True) -> None: ...

    def __init__(self, name: str, payload: Any = Any, *, kept: bool = True) -> None:
        self.name, self.payload, self.kept = name, payload, kept


class Workflow(Generic[P, T]):
    """What @workflow makes of a function. Calling it runs it as a helper, inside another workflow."""

    def __init__(self, function: Callable[P, Coroutine[Any, Any, T]], name: str, version: int, signals: Iterable[str | Signal[Any]],
                 steps: Iterable[Callable[..., Any]], children: Iterable[str | Workflow[Any, Any]], external: Iterable[str]):
        self.function, self.name, self.version = function, name, version
        self.signals: dict[str, Any] = {}
        self.passing: set[str] = set()  # signals that are not kept
        self.steps: dict[str, Callable[..., Any]] = {}
        self.children, self.external = {_name_of(child) for child in children}, set(external)
        self.__name__, self.__doc__, self.__wrapped__ = function.__name__, function.__doc__, function
        for one in signals:
            self.add_signal(one)
        for fn in steps:
            self.add_step(fn)

    def add_signal(self, one: str | Signal[Any]) -> None:
        if isinstance(one, str):
            self.signals.setdefault(one, Any)
            return
        self.signals[one.name] = one.payload
        (self.passing.discard if one.kept else self.passing.add)(one.name)

    def add_step(self, fn: Callable[..., Any]) -> str:
        name = step_name(fn)
        if self.steps.setdefault(name, fn) is not fn:
            raise Mistake("two functions are called %s; give one of them another name" % name)
        return name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return self.function(*args, **kwargs)


WORKFLOWS: dict[str, Workflow[Any, Any]] = {}
RETRIES: dict[Callable[..., Any], dict[str, Any]] = {}


def _name_of(what: str | Workflow[Any, Any]) -> str:
    return what if isinstance(what, str) else what.name


def step_name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", ""))


@overload
def workflow(function: Callable[P, Coroutine[Any, Any, T]], /) -> Workflow[P, T]: ...


@overload
def workflow(*, name: str | None = None, version: int = 1, signals: Iterable[str | Signal[Any]] = (), steps: Iterable[Callable[..., Any]] = (),
             children: Iterable[str | Workflow[Any, Any]] = (),
             external: Iterable[str] = ()) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Workflow[P, T]]: ...


def workflow(function: Any = None, /, *, name: str | None = None, version: int = 1, signals: Iterable[str | Signal[Any]] = (),
             steps: Iterable[Callable[..., Any]] = (), children: Iterable[str | Workflow[Any, Any]] = (), external: Iterable[str] = ()) -> Any:
    """Make a durable workflow of an `async def`. Its name is the function's, its input are the parameters.

    Signals, steps and children that the file names where it uses them, step(charge, ...) or signal("paid"), need no declaration."""
    def make(fn: Any) -> Workflow[Any, Any]:
        if not inspect.iscoroutinefunction(fn):
            raise TypeError("@workflow: expected an async def, found %r" % (fn,))
        made: Workflow[Any, Any] = Workflow(fn, name or fn.__name__, version, signals, steps, children, external)
        before = WORKFLOWS.get(made.name)
        if before and before.function.__module__ != fn.__module__:
            raise TypeError("@workflow: %s is there already, in %s" % (made.name, before.function.__module__))
        WORKFLOWS[made.name] = made
        return made
    return make if function is None else make(function)


def retries(max_attempts: int = 3, first: Duration = 1, longest: Duration = 60, final: Sequence[str] = ()) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """How a step is tried again: max_attempts in all, the delay doubles from `first` to `longest`; errors in `final` end it."""
    def note(fn: Callable[P, T]) -> Callable[P, T]:
        RETRIES[fn] = {"max": max_attempts, "first": round(seconds(first) * 1000), "longest": round(seconds(longest) * 1000), "final": list(final)}
        return fn
    return note


# ---- What the file uses, found by reading it -------------------------------------------------------------------------------------------


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _value_of(node: ast.expr, space: dict[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return space.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_value_of(node.value, space), node.attr, None)
    return None


def _note_use(flow: Workflow[Any, Any], call: str, used: Any) -> None:
    if call == "step" and callable(used):
        flow.add_step(used)
    elif call == "signal" and isinstance(used, (str, Signal)):
        flow.add_signal(used)
    elif call == "spawn" and isinstance(used, (str, Workflow)):
        flow.children.add(_name_of(used))
    elif call == "external" and isinstance(used, str):
        flow.external.add(used)


def _uses_in(module: types.ModuleType) -> Iterable[tuple[str, Any]]:
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _called(node) in ("step", "signal", "spawn", "external"):
            yield _called(node), _value_of(node.args[0], vars(module))


def find_uses(flows: Iterable[Workflow[Any, Any]]) -> None:
    """step(NAME, signal("NAME" and spawn(NAME in the file of a workflow are what it may use. Each file is read once."""
    found: dict[str, list[tuple[str, Any]]] = {}
    for flow in flows:
        name = flow.function.__module__
        if name not in found:
            found[name] = list(_uses_in(sys.modules[name])) if name in sys.modules else []
        for call, used in found[name]:
            _note_use(flow, call, used)


# ---- One instance ----------------------------------------------------------------------------------------------------------------------

KINDS = {1: "start", 2: "timer", 3: "signal", 4: "call", 5: "call failed", 6: "child", 7: "child failed"}
START, TIMER, SIGNAL, CALL, CALL_FAILED, CHILD, CHILD_FAILED = 1, 2, 3, 4, 5, 6, 7
_current: list[Run] = []


def current() -> Run:
    if not _current:
        raise Mistake("this is only possible inside a workflow")
    return _current[-1]


class Call:
    def __init__(self, name: str, args: Any, future: Future[Any], returns: Any, spawn: int = 0, key: str | None = None):
        self.name, self.args, self.future, self.returns, self.spawn, self.key = name, args, future, returns, spawn, key
        self.number = 0


class Run:
    """The code of one instance, and what it waits for. What a turn did is what has changed between its begin() and end()."""

    def __init__(self, flow: Workflow[Any, Any]):
        self.flow = flow
        self.ready: list[Task[Any]] = []
        self.timers: dict[str, tuple[Future[Any], int]] = {}
        self.signals: dict[str, list[Future[Any]]] = {}
        self.calls: list[Call] = []
        self.armed: dict[str, Future[Any]] = {}
        self.awaited: set[str] = set()
        self.begun: dict[int, Call] = {}
        self.numbers = 0
        self.id = ""
        self.at = 0
        self.is_replaying = self.is_first = self.is_timed = False
        self.old_note: dict[str, Any] = {}
        self.note: dict[str, Any] = {}
        self.patches: set[str] = set()
        self.rng: Any = None
        self.subscriptions: dict[str, list[Any]] = {}
        self.sends: list[list[Any]] = []
        self.reduces: list[list[Any]] = []
        self.main: Task[Any] | None = None
        self.checkpoint: dict[str, Any] | None = None
        self.events = 0

    # -- a turn --

    def begin(self, at: int, note: dict[str, Any] | None, is_replaying: bool) -> None:
        self.at, self.old_note, self.note = at, note or {}, {}
        self.is_replaying, self.is_timed, self.checkpoint, self.sends, self.reduces = is_replaying, False, None, [], []

    def start(self, arguments: dict[str, Any]) -> None:
        bound = values.bind(self.flow.function, arguments)
        self.main = Task(self, self.flow.function(**bound))

    def go_on(self) -> None:
        """Everything that can run, in the order in which it became ready."""
        _current.append(self)
        try:
            while self.ready:
                try:
                    self.ready.pop(0).advance()
                except ContinueAs as again:
                    self.restart(again.arguments)
        finally:
            _current.pop()

    def restart(self, arguments: dict[str, Any]) -> None:
        self.ready.clear()
        if self.main:
            self.main.coroutine.close()
        self.timers.clear()
        self.signals.clear()
        self.calls.clear()
        self.rng, self.note, self.old_note = None, {}, {}
        self.patches.clear()
        self.checkpoint = {"args": values.encode(arguments), "at": self.at, "calls": self.numbers}
        self.is_timed = True
        self.is_replaying = False
        self.start(values.encode(arguments))

    def resume_from(self, state: dict[str, Any]) -> None:
        """From a checkpoint: as if continue_as() had just been called."""
        self.numbers = state["calls"]
        self.subscriptions = {name: list(found) for name, found in state.get("subscriptions", {}).items()}
        self.begin(state["at"], state.get("note"), True)
        self.start(state["args"])
        self.go_on()
        self.end()

    def feed(self, event: dict[str, Any]) -> None:
        self.events += 1
        kind, name = event["kind"], event.get("name", "")
        self.is_first = kind == START
        if kind == START:
            self.start(event.get("payload") or {})
        elif kind == TIMER:
            self.fire(name, event)
        elif kind == SIGNAL:
            self.receive(name, event)
        else:
            self.answer(event)

    def lost(self, event: dict[str, Any]) -> NondeterminismError:
        what = "%s %r" % (KINDS.get(event["kind"], "?"), event.get("name", ""))
        if event.get("call"):
            what += " (call %d)" % event["call"]
        return NondeterminismError("entry %s brings %s, and the code does not wait for it: it waits for %s at %s; what it does must follow "
                                   "from its input and its events alone, and a change under running instances goes behind patched()"
                                   % (event.get("seq", "?"), what, self.describe(), self.main.place() if self.main else "its beginning"))

    def describe(self) -> str:
        open_now = ["timer %r" % name for name in self.armed] + ["signal %r" % name for name in sorted(self.awaited)]
        open_now += ["%r (call %d)" % (call.name, number) for number, call in self.begun.items()]
        return ", ".join(open_now) or "nothing"

    def fire(self, name: str, event: dict[str, Any]) -> None:
        future = self.armed.pop(name, None)
        if future is None:
            raise self.lost(event)
        if self.timers.get(name, (None, 0))[0] is future:
            del self.timers[name]
        future.settle(None)

    def receive(self, name: str, event: dict[str, Any]) -> None:
        waiting = self.signals.get(name)
        if name not in self.awaited or not waiting:
            raise self.lost(event)
        self.awaited.discard(name)
        future = waiting.pop(0)
        if not waiting:
            del self.signals[name]
        future.settle(values.decode(event.get("payload"), self.flow.signals.get(name, Any)))

    def answer(self, event: dict[str, Any]) -> None:
        call = self.begun.pop(event.get("call", 0), None)
        if call is None or call.name != event.get("name"):
            raise self.lost(event)
        if call in self.calls:
            self.calls.remove(call)
        call.future.child_id = event.get("child")
        if event["kind"] in (CALL_FAILED, CHILD_FAILED):
            failure = ChildError if event["kind"] == CHILD_FAILED else StepError
            call.future.settle(None, failure(call.name, event.get("payload")))
        else:
            call.future.settle(values.decode(event.get("payload"), call.returns))

    def forget(self, future: Future[Any]) -> None:
        self.timers = {name: row for name, row in self.timers.items() if row[0] is not future}
        self.calls = [call for call in self.calls if call.future is not future]
        for name in [name for name, waiting in self.signals.items() if future in waiting]:
            self.signals[name].remove(future)
            if not self.signals[name]:
                del self.signals[name]

    def end(self) -> dict[str, Any]:
        """What the turn changed, as the answer has it. What it began gets its number here."""
        answer: dict[str, Any] = {"end": 0, "keeps": 1}
        if self.main and self.main.done():
            return self.finish()
        base = self.numbers
        dropped: list[list[Any]] = [["disarm", name, 0] for name in self.armed if name not in self.timers]
        dropped += [["leave", name, 0] for name in sorted(self.awaited) if name not in self.signals]
        dropped += [["end", number] for number, call in self.begun.items() if call not in self.calls]
        timers = [["arm", name, due, 0] for name, (future, due) in self.timers.items() if self.armed.get(name) is not future]
        signals = [self.await_effect(name) for name in self.signals if name not in self.awaited]
        calls = []
        for call in self.calls:
            if not call.number:
                self.numbers += 1
                call.number = self.numbers
                calls.append({k: v for k, v in (("name", call.name), ("args", call.args), ("key", call.key), ("spawn", call.spawn)) if v})
        self.armed = {name: future for name, (future, _) in self.timers.items()}
        self.awaited = set(self.signals)
        self.begun = {call.number: call for call in self.calls}
        for key, found in (("timers", timers), ("signals", signals), ("calls", calls), ("dropped", dropped), ("sends", self.sends),
                           ("reduces", self.reduces)):
            if found:
                answer[key] = found
        if not (self.armed or self.awaited or self.begun):
            raise Mistake("the workflow waits for nothing, at %s" % (self.main.place() if self.main else "?"))
        if self.subscriptions:
            answer["subscriptions"] = [["await", name, 0, one] for name, found in self.subscriptions.items() for one in found]
        if self.checkpoint is not None:
            answer["state"] = {**self.checkpoint, "calls": base, **({"note": self.note} if self.note else {}),
                               **({"subscriptions": self.subscriptions} if self.subscriptions else {})}
        elif self.note:
            answer["note"] = self.note
        return answer

    def await_effect(self, name: str) -> list[Any]:
        found = self.subscriptions.get(name)
        return ["await", name, 0, found[0]] if found else ["await", name, 0]

    def finish(self) -> dict[str, Any]:
        assert self.main
        more = {key: found for key, found in (("sends", self.sends), ("reduces", self.reduces)) if found}
        error = self.main._error
        if error is None:
            return {"end": 1, "value": values.encode(self.main.result()), **more}
        if isinstance(error, Fail):
            return {"end": 2, "value": values.encode(error.error), **more}
        raise error

    def check_open(self, open_now: dict[str, Any], fresh: list[dict[str, Any]]) -> None:
        """Has the replayed code come to what is recorded as open? Events whose turn is owed have spent what they were for."""
        owed = [event for event in fresh if event.get("owed")]
        timers = {*open_now["timers"], *(event["name"] for event in owed if event["kind"] == TIMER)}
        signals = {*open_now["signals"], *(event["name"] for event in owed if event["kind"] == SIGNAL)}
        calls = {number: name for number, name in open_now["calls"]} | {event["call"]: event["name"] for event in owed if event.get("call")}
        same = (timers == set(self.armed) and signals == self.awaited
                and calls == {number: call.name for number, call in self.begun.items()})
        if not same:
            recorded = ["timer %r" % name for name in sorted(timers)] + ["signal %r" % name for name in sorted(signals)]
            recorded += ["%r (call %d)" % (name, number) for number, name in calls.items()]
            raise NondeterminismError("after %d events the code waits for %s at %s, and recorded is that it waits for %s; a change under "
                                      "running instances goes behind patched()"
                                      % (self.events, self.describe(), self.main.place() if self.main else "?", ", ".join(recorded) or "nothing"))

    # -- what the code asks for --

    def free_timer(self, name: str) -> str:
        number, found = 1, name
        while found in self.timers:
            number += 1
            found = "%s_%d" % (name, number)
        return found


# ---- What a workflow calls -------------------------------------------------------------------------------------------------------------


@overload
def step(fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...


@overload
def step(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...


def step(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    """Call a plain function, once, outside of the workflow: it may do anything. Its result is recorded."""
    run = current()
    name = step_name(fn)
    if run.flow.steps.get(name) is not fn:
        raise Mistake("step(%s): the workflow %s does not declare it; say @workflow(steps=[%s])" % (name or fn, run.flow.name, name or "..."))
    bound = values.signature(fn).bind(*args, **kwargs)
    future: Future[Any] = Future(run, "step(%s)" % name)
    run.calls.append(Call(name, values.encode(dict(bound.arguments)), future, values.returns(fn)))
    return future


def external(name: str, args: Any = None) -> Future[Any]:
    """Wait until another program answers: step.complete, or `pawl complete`."""
    run = current()
    if name not in run.flow.external:
        raise Mistake("external(%r): the workflow %s does not declare it; say @workflow(external=[%r])" % (name, run.flow.name, name))
    future: Future[Any] = Future(run, "external(%r)" % name)
    run.calls.append(Call(name, values.encode(args), future, Any))
    return future


@overload
def spawn(child: Workflow[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...


@overload
def spawn(child: str, /, **input: Any) -> Future[Any]: ...


def spawn(child: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
    """Start a child, a workflow or any definition by its name, and wait for its result. It is cancelled with its parent."""
    run = current()
    name = _name_of(child)
    if name not in run.flow.children:
        raise Mistake("spawn(%s): the workflow %s does not declare it; say @workflow(children=[%r])" % (name, run.flow.name, name))
    given = dict(values.signature(child.function).bind(*args, **kwargs).arguments) if isinstance(child, Workflow) else kwargs
    future: Future[Any] = Future(run, "spawn(%s)" % name)
    run.calls.append(Call(name, values.encode(given), future, values.returns(child.function) if isinstance(child, Workflow) else Any, spawn=1))
    return future


def sleep(duration: Duration, name: str = "sleep") -> Future[None]:
    """A timer of this length: seconds, "90s", "7d" or a timedelta. It runs on while the program is dead."""
    run = current()
    future: Future[None] = Future(run, "sleep(%s)" % (duration,))
    run.is_timed = True
    run.timers[run.free_timer(name)] = (future, run.at + max(1, round(seconds(duration) * 1000)))
    return future


@overload
def signal(name: Signal[T]) -> Future[T]: ...


@overload
def signal(name: str) -> Future[Any]: ...


def signal(name: str | Signal[Any]) -> Future[Any]:
    """Wait for a signal; its payload is the result. One that came before is kept, and taken in order."""
    run = current()
    text = name if isinstance(name, str) else name.name
    if text not in run.flow.signals:
        raise Mistake("signal(%r): the workflow %s does not declare it; say @workflow(signals=[%r])" % (text, run.flow.name, text))
    future: Future[Any] = Future(run, "signal(%r)" % text)
    run.signals.setdefault(text, []).append(future)
    return future


def subscribe(name: str | Signal[Any], value: Any) -> None:
    """From now on a broadcast of the signal reaches this instance with this value as its filter."""
    found = current().subscriptions.setdefault(name if isinstance(name, str) else name.name, [])
    if value not in found:
        found.append(value)


def _future_of(run: Run, awaitable: Awaitable[Any]) -> Future[Any]:
    if isinstance(awaitable, Future):
        return awaitable
    if isinstance(awaitable, types.CoroutineType):
        return Task(run, awaitable)
    raise Mistake("expected step(), sleep(), signal(), spawn() or a call of an async helper, found %r" % (awaitable,))


@overload
async def gather(a: Awaitable[T1], b: Awaitable[T2], /) -> tuple[T1, T2]: ...


@overload
async def gather(a: Awaitable[T1], b: Awaitable[T2], c: Awaitable[T3], /) -> tuple[T1, T2, T3]: ...


@overload
async def gather(*awaitables: Awaitable[T], return_exceptions: bool = False) -> tuple[T, ...]: ...


async def gather(*awaitables: Awaitable[Any], return_exceptions: bool = False) -> tuple[Any, ...]:
    """All of them at once. Waits until all have ended, then raises the first error, so that nothing is left behind."""
    run = current()
    futures = [_future_of(run, one) for one in awaitables]
    results: list[Any] = []
    first: Exception | None = None
    try:
        for future in futures:
            try:
                results.append(await future)
            except Exception as error:
                results.append(error)
                first = first or error
    finally:  # it may be cancelled itself
        for future in futures:
            future.cancel()
    if first is not None and not return_exceptions:
        raise first
    return tuple(results)


async def select(**arms: Awaitable[Any]) -> tuple[str, Any]:
    """The first of them: its name and its value. The others are cancelled. An error of the first is raised."""
    run = current()
    if not arms:
        raise Mistake("select() has nothing to wait for; expected one arm or more")
    futures = {name: _future_of(run, one) for name, one in arms.items()}
    won: Future[Any] = Future(run, "select()")

    async def watch(name: str, future: Future[Any]) -> None:
        try:
            value = await future
        except Exception as error:
            won.settle(None, error)
        else:
            won.settle((name, value))

    tasks = [Task(run, watch(name, future)) for name, future in futures.items()]
    try:
        found: tuple[str, Any] = await won
        return found
    finally:
        for task in tasks:
            task.cancel()
        for future in futures.values():
            future.cancel()


def now() -> datetime.datetime:
    """When the event happened that woke the code, by the store's clock; the same when it is replayed."""
    run = current()
    run.is_timed = True
    if run.is_replaying and "now" in run.old_note:
        at = run.old_note["now"]
    else:
        at = run.note["now"] = run.at
    return datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc)


def _rng() -> Any:
    import random as chance
    run = current()
    if run.rng is None:
        seed = run.old_note.get("seed") if run.is_replaying else None
        if seed is None:
            seed = chance.SystemRandom().getrandbits(52)
        run.note["seed"] = seed
        run.rng = chance.Random(seed)
    return run.rng


def random() -> float:
    """0 <= x < 1; the same when it is replayed."""
    return float(_rng().random())


def uuid4() -> str:
    """A random UUID; the same when it is replayed."""
    import uuid
    return str(uuid.UUID(int=_rng().getrandbits(128), version=4))


def patched(name: str) -> bool:
    """Code that changes under running instances: True for those that come here from now on, False where an older build already was."""
    run = current()
    if name in run.patches:
        return True
    if run.is_replaying and name not in run.old_note.get("patched", ()):
        return False
    run.patches.add(name)
    run.note.setdefault("patched", []).append(name)
    return True


def continue_as(**arguments: Any) -> None:
    """A checkpoint: the workflow begins again with these arguments, in the same instance. What was before is not replayed any more."""
    current()
    raise ContinueAs(arguments)


def instance_id() -> str:
    """The id of the instance; it has one after its first await."""
    run = current()
    if run.is_first or not run.id:
        raise Mistake("the instance has no id before its first await")
    return run.id


def send(instance: str, name: str | Signal[Any], payload: Any = None) -> None:
    """Signal another instance, with the commit of this turn; does not wait."""
    text = name if isinstance(name, str) else name.name
    current().sends.append(["send", "signal.send", {"instance_id": instance, "name": text, "payload": values.encode(payload)}])


def start(definition: str | Workflow[Any, Any], **input: Any) -> None:
    """Start another instance, with the commit of this turn; does not wait, and is not cancelled with this one."""
    current().sends.append(["send", "instance.create", {"definition": _name_of(definition), "input": values.encode(input)}])


def reduce(name: str, **args: Any) -> None:
    """A function that the host has, called in the transaction of this turn. A server has none."""
    current().reduces.append(["reduce", name, values.encode(args)])
