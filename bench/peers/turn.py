"""turn.py - turn.mjs for an app in Python: it is asked for a turn, or a proof, in lines of JSON, and answers so."""
import asyncio
import json
import sys
import time
from typing import Any, Awaitable, Callable

STEPS = 10


def work(n: int) -> dict[str, object]:
    """The work of a step: next to nothing, with a small JSON for its result."""
    return {"n": n, "at": "step %d" % n}


async def turn(flow: Callable[[], Awaitable[Any]], flight: int, milliseconds: float) -> dict[str, Any]:
    """Flows, `flight` of them at once, until the time is up; those under way are waited for."""
    took: list[float] = []
    begin = time.monotonic()

    async def lane() -> None:
        while (started := time.monotonic()) < begin + milliseconds / 1000:
            result = await flow()
            if result["n"] != STEPS:
                raise ValueError("expected the result of step %d, found %r" % (STEPS, result))
            took.append((time.monotonic() - started) * 1000)

    await asyncio.gather(*(lane() for _ in range(flight)))
    return {"flows": len(took), "seconds": time.monotonic() - begin, "took": took}


async def side(flow: Callable[[], Awaitable[Any]], proof: Callable[[], Awaitable[dict[str, Any]]]) -> None:
    loop = asyncio.get_running_loop()
    print('"ready"', flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked = json.loads(line)
        print(json.dumps(await proof() if asked.get("proof") else await turn(flow, asked["flight"], asked["milliseconds"])), flush=True)
