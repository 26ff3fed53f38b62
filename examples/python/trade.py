"""trade.py - both sides accept within five minutes, then another system moves the goods."""
from pawl_client import Fail, Signal, external, select, signal, sleep, workflow

accept = Signal("accept", int, kept=False)
decline = Signal("decline", int, kept=False)


@workflow
async def trade(buyer: int = 0, seller: int = 0) -> dict[str, object]:
    accepted: set[int] = set()
    while not {buyer, seller} <= accepted:
        which, who = await select(timeout=sleep("5m", name="timeout"), decline=signal(decline), accept=signal(accept))
        if which == "timeout":
            raise Fail("no reply for five minutes")
        if which == "decline":
            raise Fail("%d declined" % who)
        accepted.add(who)
    return {"receipt": await external("transfer_goods", {"from": seller, "to": buyer})}
