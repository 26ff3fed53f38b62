"""auction.py - a bid near the end extends the auction; a bid that is too low is ignored."""
from dataclasses import dataclass

from pawl_client import Fail, Signal, select, signal, sleep, workflow


@dataclass
class Bid:
    bidder: str = ""
    cents: int = 0


bid = Signal("bid", Bid, kept=False)
withdraw = Signal("withdraw", kept=False)


@workflow
async def auction(item: str = "a lamp", reserve_cents: int = 1000, hours: int = 48) -> dict[str, object]:
    best, is_open = Bid(), False
    while True:  # from the first bid on: an hour of silence ends it
        quiet = sleep("1h", name="going_once") if is_open else sleep(hours * 3600, name="close")
        which, offer = await select(quiet=quiet, withdraw=signal(withdraw), bid=signal(bid))
        if which == "withdraw":
            raise Fail(item + " was withdrawn")
        if which == "quiet":
            return {"sold": is_open and best.cents >= reserve_cents, "best": best}
        is_open = True
        if offer.cents > best.cents:
            best = offer
