"""ten.py - ten steps as sequential code: pawl serve --module bench/peers/ten.py"""
from pawl_client import step, workflow

STEPS = 10


def once(n: int) -> dict[str, object]:
    return {"n": n, "at": "step %d" % n}


@workflow
async def ten() -> dict[str, object]:
    result: dict[str, object] = {}
    for n in range(1, STEPS + 1):
        result = await step(once, n)
    return result
