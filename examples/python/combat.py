"""combat.py - what it does to the world (reduce) is in the same transaction as its own step on."""
from pawl_client import Signal, reduce, select, signal, sleep, workflow

flee = Signal("flee", kept=False)


@workflow
async def combat(target_id: int = 0, damage: int = 50) -> dict[str, object]:
    for rounds in (1, 2):
        reduce("apply_damage", target=target_id, damage=damage)
        which, _ = await select(delay=sleep(1, name="delay"), flee=signal(flee))
        if which == "flee":
            return {"victory": False, "rounds": rounds}
    return {"victory": True, "rounds": rounds}
