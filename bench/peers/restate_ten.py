"""restate_ten.py - the service of Restate's side in Python: ten ctx.run. hypercorn serves it."""
import restate
from turn import STEPS, work

ten = restate.Service("ten")


@ten.handler()
async def go(ctx: restate.Context, asked: dict[str, object]) -> dict[str, object]:
    result: dict[str, object] = {}
    for n in range(1, STEPS + 1):
        result = await ctx.run_typed("s%d" % n, work, n=n)
    return result


app = restate.app([ten])
