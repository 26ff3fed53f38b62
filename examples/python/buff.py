"""buff.py - a buff that stacks and runs out; every stack restarts its time."""
from pawl_client import Signal, select, signal, sleep, workflow

dispel = Signal("dispel", kept=False)
stack = Signal("stack", int, kept=False)


@workflow
async def buff(duration_secs: int = 60) -> dict[str, int]:
    stacks = 1
    while True:
        which, more = await select(expire=sleep(duration_secs, name="expire"), dispel=signal(dispel), stack=signal(stack))
        if which != "stack":
            return {"final_stacks": stacks}
        stacks += more
