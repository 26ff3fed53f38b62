"""Workflows for run_python.py: each shows one thing that durable code in Python can do."""
import os
import signal as posix
import time
from dataclasses import dataclass

from pawl_client import (Fail, Signal, StepError, continue_as, external, gather, instance_id, now, patched, random, retries, select, send, signal,
                         sleep, spawn, start, step, step_info, subscribe, uuid4, workflow)


@dataclass
class Line:
    sku: str
    count: int


paid = Signal("paid", int)


def greet(name: str) -> str:
    return "hello " + name


def price(line: Line) -> int:
    return 3 * line.count


def decline(card: str) -> None:
    raise Fail({"code": "declined", "card": card}, retry=False)


@retries(max_attempts=3, first="1s", longest="2s")
def flaky() -> list[str]:
    info = step_info()
    if info.attempt < 3:
        raise RuntimeError("attempt %d" % info.attempt)
    return [info.idempotency_key, str(info.attempt)]


async def later(name: str) -> str:
    return "later " + name


@workflow
async def order(lines: list[Line], limit: int = 100) -> dict[str, object]:
    """Typed arguments, steps at once, an async step, an error that is caught."""
    prices = await gather(*(step(price, line) for line in lines))
    try:
        await step(decline, card="4711")
    except StepError as error:
        reason = error.error["code"]
    return {"sum": sum(prices), "reason": reason, "late": await step(later, lines[0].sku), "tries": await step(flaky)}


def refund() -> str:
    info = step_info()
    if info.attempt == 1 and not info.idempotency_key.endswith(":refund"):
        raise Fail("the key is " + info.idempotency_key)
    return info.idempotency_key


@workflow
async def keyed() -> list[str]:
    """A key of the author's own is the same each time around."""
    return [await step(refund).with_key("refund") for _ in range(2)]


@workflow
async def invoice(cents: int = 100) -> dict[str, int]:
    """The invoice of docs/durable-code.md: a loop, a select, a signal with a type, a timer with a name."""
    got = reminders = 0
    while got < cents:
        which, value = await select(paid=signal(paid), write_off=signal("write_off"), remind=sleep("7d", name="remind"))
        if which == "paid":
            got += value
        elif which == "write_off":
            break
        else:
            reminders += 1
            if reminders == 4:
                raise Fail("does not pay")
    return {"paid": got, "reminders": reminders}


@workflow
async def chance(rounds: int = 3) -> list[object]:
    """Time and chance are the same again when it is replayed."""
    seen: list[object] = [uuid4()]
    for _ in range(rounds):
        await sleep(1)
        seen += [now().isoformat(), random(), instance_id()]
    return seen


@workflow
async def ticker(count: int = 0, most: int = 10) -> int:
    """A checkpoint every third turn."""
    for _ in range(3):
        if count >= most:
            return count
        await sleep(1, name="tick")
        count += 1
    continue_as(count=count, most=most)
    return -1


async def watch(name: str) -> str:
    await sleep(2, name=name)
    return name


@workflow
async def helpers() -> list[str]:
    """Helpers that await, side by side and cancelled."""
    which, value = await select(slow=watch("slow"), both=gather(watch("a"), sleep(1)))
    return [which, *[str(one) for one in (value if isinstance(value, tuple) else [value])]]


@workflow
async def parent(count: int = 3) -> list[object]:
    done = await gather(*(spawn(child, n=i) for i in range(count)))
    return list(done)


@workflow
async def child(n: int) -> int:
    if n == 99:
        raise Fail("too many")
    await sleep(n + 1)
    return n * n


@workflow
async def sender(to: str) -> str:
    """Starts and signals others with the commit of its turn."""
    start(child, n=5)
    send(to, "paid", 60)
    await sleep(1)
    send(to, paid, 40)
    return "sent"


@workflow
async def human() -> object:
    return await external("transfer", {"from": 1})


@workflow
async def hunter(enemy: str = "wolf") -> str:
    subscribe("killed", enemy)
    return str(await signal("killed"))


@workflow
async def wild(mode: str = "") -> str:
    """What goes wrong."""
    await signal("go")
    if mode == "crash":
        os.kill(os.getpid(), posix.SIGKILL)
    if mode == "loop":
        while True:
            time.sleep(0.01)
    if mode == "bug":
        raise KeyError("a mistake")
    if mode == "step":
        await step(die)
    await sleep(1)
    return mode


def die() -> None:
    os.kill(os.getpid(), posix.SIGKILL)


@workflow
async def changing() -> str:
    said = "old"
    await signal("one")
    if patched("greeting"):
        said = "new"
    await signal("two")
    return said
