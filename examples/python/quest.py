"""quest.py - is reached by broadcasts of what happens in the world, as far as it has asked for it.

The item may be found while the quest still hunts: that signal is kept until it is awaited. A broadcast without a filter, or a
signal to this quest alone, may bring any item: the code compares what it got, and waits on until it is the right one."""
from pawl_client import Signal, signal, subscribe, workflow

enemy_killed = Signal("enemy_killed", str, kept=False)
item_collected = Signal("item_collected", int)


@workflow
async def quest(enemy: str = "wolf", item: int = 0, kills: int = 2) -> dict[str, bool]:
    subscribe(enemy_killed, enemy)
    subscribe(item_collected, item)
    for _ in range(kills):
        await signal(enemy_killed)
    while await signal(item_collected) != item:
        pass
    return {"completed": True}
