"""combat.py - what it does to the world (reduce) is in the same transaction as its own step on."""
from dataclasses import dataclass

from pawl_client import Signal, reduce, select, signal, sleep, workflow

flee = Signal("flee", kept=False)


@dataclass
class Outcome:
    victory: bool
    rounds: int


@workflow
async def combat(target_id: int = 0, damage: int = 50) -> Outcome:
    for rounds in (1, 2):
        reduce("apply_damage", target=target_id, damage=damage)
        which, _ = await select(delay=sleep(1, name="delay"), flee=signal(flee))
        if which == "flee":
            return Outcome(False, rounds)
    return Outcome(True, rounds)
