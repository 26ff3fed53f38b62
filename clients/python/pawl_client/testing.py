"""testing.py - a store in memory and a clock that only the test moves, for durable code in Python.

    kit = Kit()
    id = kit.start(invoice, customer="ann")
    kit.advance("8d")
    kit.signal(id, "paid", 500)
    assert kit.result(id) == {...}

At every turn the workflow is replayed from its last checkpoint: code that does not do the same again raises NondeterminismError here.
"""
from __future__ import annotations

import inspect
import json
from typing import Any, Callable, Mapping

from . import durable, turns, values

BEGIN = 1_700_000_000_000


class _Instance:
    def __init__(self, flow: durable.Workflow[Any, Any], id: str, parent: tuple[_Instance, int] | None):
        self.flow, self.id, self.parent = flow, id, parent
        self.events: list[dict[str, Any]] = []
        self.state: dict[str, Any] | None = None
        self.timers: dict[str, int] = {}
        self.signals: set[str] = set()
        self.kept: list[tuple[str, Any]] = []
        self.calls: dict[int, dict[str, Any]] = {}
        self.numbers = 0
        self.status = "running"
        self.value: Any = None
        self.history: list[str] = []

    def open(self) -> dict[str, Any]:
        return {"timers": list(self.timers), "signals": list(self.signals),
                "calls": [[number, call["name"]] for number, call in self.calls.items()]}


class Kit:
    def __init__(self, steps: Mapping[Callable[..., Any], Callable[..., Any]] | None = None):
        self.at = BEGIN
        self.instances: dict[str, _Instance] = {}
        self.stubs = {durable.step_name(fn): stub for fn, stub in (steps or {}).items()}
        self.retries: list[tuple[int, _Instance, int]] = []
        durable.find_uses(durable.WORKFLOWS.values())

    # -- what a test does --

    def start(self, what: durable.Workflow[Any, Any] | str, /, **input: Any) -> str:
        return self._create(durable._name_of(what), values.encode(input), None).id

    def signal(self, id: str, name: str | durable.Signal[Any], payload: Any = None) -> None:
        one, text = self.instances[id], name if isinstance(name, str) else name.name
        if text not in one.flow.signals:
            raise ValueError("%s has no signal %r" % (one.flow.name, text))
        if not values.fits(values.encode(payload), one.flow.signals[text]):
            raise ValueError("the payload of %r: found %r" % (text, payload))
        one.kept.append((text, values.encode(payload)))
        self._settle(one)

    def complete(self, id: str, result: Any = None, error: Any = None) -> None:
        """Answer the external step that waits."""
        one = self.instances[id]
        number = next(number for number, call in one.calls.items() if call["name"] in one.flow.external)
        self._answer(one, number, result if error is None else error, error is not None)
        self._settle(one)

    def advance(self, by: durable.Duration) -> None:
        """Move the clock, and fire what falls due, one after the other."""
        until = self.at + round(durable.seconds(by) * 1000)
        while True:
            timers = [(due, order, one, name) for order, one in enumerate(self.instances.values()) for name, due in one.timers.items()]
            due, _, one, name = min(timers, key=lambda row: row[:2], default=(until + 1, 0, None, ""))
            again = min(self.retries, key=lambda row: row[0], default=None)
            if again and again[0] <= min(due, until):
                self.at = max(self.at, again[0])
                self.retries.remove(again)
                self._run_step(again[1], again[2])
                self._settle(again[1])
            elif one and due <= until:
                self.at = max(self.at, due)
                del one.timers[name]
                self._turn(one, {"kind": durable.TIMER, "name": name}, "timer:" + name)
                self._settle(one)
            else:
                break
        self.at = until

    def result(self, id: str) -> Any:
        return self._ended(id, "completed")

    def error(self, id: str) -> Any:
        return self._ended(id, "failed")

    def history(self, id: str) -> list[str]:
        return list(self.instances[id].history)

    def status(self, id: str) -> str:
        return self.instances[id].status

    # -- what a store does --

    def _ended(self, id: str, how: str) -> Any:
        one = self.instances[id]
        if one.status != how:
            raise AssertionError("%s is %s, and waits for %s; expected %s" % (one.flow.name, one.status, json.dumps(one.open()), how))
        return one.value

    def _create(self, name: str, input: dict[str, Any], parent: tuple[_Instance, int] | None) -> _Instance:
        flow = durable.WORKFLOWS.get(name)
        if flow is None:
            raise ValueError("there is no workflow %r in this program" % name)
        values.bind(flow.function, input)
        one = _Instance(flow, "%026d" % (len(self.instances) + 1), parent)
        self.instances[one.id] = one
        self._turn(one, {"kind": durable.START, "payload": input}, "start")
        self._settle(one)
        return one

    def _turn(self, one: _Instance, event: dict[str, Any], entry: str) -> None:
        event = json.loads(json.dumps({**event, "at": self.at, "seq": len(one.history) + 1}))
        before = {**one.open()}
        if event["kind"] == durable.TIMER:
            before["timers"] = [*before["timers"], event["name"]]
        if event["kind"] == durable.SIGNAL:
            before["signals"] = [*before["signals"], event["name"]]
        if "call" in event:
            before["calls"] = [*before["calls"], [event["call"], event["name"]]]
        request: dict[str, Any] = {"id": one.id if one.events or one.state else "", "state": one.state, "events": one.events, "open": before, "fresh": [event]}
        run = turns.replay(one.flow, request)
        run.id = request["id"]
        answer = json.loads(json.dumps(turns._turn(run, self.at, None, [event], False)))
        one.history.append(entry)
        one.events = one.events + [{**event, **({"note": answer["note"]} if "note" in answer else {})}]
        self._apply(one, answer)

    def _apply(self, one: _Instance, answer: dict[str, Any]) -> None:
        for _, operation, input in answer.get("sends", ()):
            if operation == "instance.create":
                self._create(input["definition"], input["input"], None)
            else:
                self.signal(input["instance_id"], input["name"], input["payload"])
        if answer["end"] != 0:
            self._end(one, "completed" if answer["end"] == 1 else "failed", answer.get("value"))
            return
        for word, name, *_ in answer.get("dropped", ()):
            if word == "disarm":
                one.timers.pop(name, None)
            elif word == "leave":
                one.signals.discard(name)
            else:
                self._drop(one, name)
        for _, name, due, _ in answer.get("timers", ()):
            one.timers[name] = due
        one.signals |= {row[1] for row in answer.get("signals", ())}
        if "state" in answer:
            one.state, one.events = answer["state"], []
        for call in answer.get("calls", ()):
            one.numbers += 1
            one.calls[one.numbers] = {**call, "attempt": 0, "is_new": True}

    def _drop(self, one: _Instance, number: int) -> None:
        call = one.calls.pop(number, None)
        if call and call.get("child"):
            self._end(self.instances[call["child"]], "cancelled", None)

    def _end(self, one: _Instance, status: str, value: Any) -> None:
        if one.status != "running":
            return
        one.status, one.value = status, value
        one.history.append({"completed": "finish", "failed": "fail", "cancelled": "cancel"}[status])
        one.timers, one.signals = {}, set()
        for number in list(one.calls):
            self._drop(one, number)
        if one.parent and one.parent[1] in one.parent[0].calls and status != "cancelled":
            self._answer(one.parent[0], one.parent[1], value, status == "failed")
            self._settle(one.parent[0])

    def _settle(self, one: _Instance) -> None:
        """Signals that are kept and awaited, and calls that are new."""
        moved = True
        while moved and one.status == "running":
            moved = False
            for number, call in list(one.calls.items()):
                if call.pop("is_new", False):
                    self._begin(one, number, call)
                    moved = True
            row = next((row for row in one.kept if row[0] in one.signals), None)
            if row and one.status == "running":
                one.kept.remove(row)
                one.signals.discard(row[0])
                self._turn(one, {"kind": durable.SIGNAL, "name": row[0], "payload": row[1]}, "signal:" + row[0])
                moved = True

    def _begin(self, one: _Instance, number: int, call: dict[str, Any]) -> None:
        if call.get("spawn"):
            child = self._create(call["name"], call.get("args") or {}, (one, number))
            call["child"] = child.id
        elif call["name"] not in one.flow.external:
            self._run_step(one, number)

    def _run_step(self, one: _Instance, number: int) -> None:
        call = one.calls.get(number)
        if call is None:
            return
        call["attempt"] += 1
        one.history.append("step.start:" + call["name"])
        fn = one.flow.steps[call["name"]]
        stub = self.stubs.get(call["name"], fn)
        if stub is not fn:
            given = {name: value for name, value in values.bind(fn, call.get("args") or {}).items()}
            stub = _named(stub, given)
        answer = turns._run_step(stub, {"tool": call["name"], "args": call.get("args") if stub is fn else {}, "key": "%s:%s" % (one.id, call["key"]) if call.get("key") else "%s.%d" % (one.id, number),
                                        "instance": one.id, "attempt": call["attempt"]})
        policy = durable.RETRIES.get(fn)
        error = answer.get("failed")
        if "failed" in answer and policy and call["attempt"] < policy["max"] and not answer.get("final") and error not in policy["final"]:
            one.history.append("step.fail:" + call["name"])
            wait = min(policy["first"] * 2 ** (call["attempt"] - 1), policy["longest"] or 1 << 60)
            self.retries.append((self.at + wait, one, number))
            return
        self._answer(one, number, answer.get("failed", answer.get("result")), "failed" in answer)

    def _answer(self, one: _Instance, number: int, value: Any, failed: bool) -> None:
        call = one.calls.pop(number)
        kind = (durable.CHILD_FAILED if failed else durable.CHILD) if call.get("spawn") else durable.CALL_FAILED if failed else durable.CALL
        entry = "child" if call.get("spawn") and not failed else "step.fail" if failed else "step.complete"
        event = {"kind": kind, "name": call["name"], "payload": values.encode(value), "call": number}
        self._turn(one, {**event, **({"child": call["child"]} if call.get("child") else {})}, "%s:%s" % (entry, call["name"]))


def _named(stub: Callable[..., Any], given: dict[str, Any]) -> Callable[..., Any]:
    """The stub with its arguments, as a step without any."""
    takes = inspect.signature(stub).parameters
    named = any(one.kind is one.VAR_KEYWORD for one in takes.values())
    return lambda: stub(**{name: value for name, value in given.items() if named or name in takes})
