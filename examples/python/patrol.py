"""patrol.py - walks waypoints until it sees a threat, fights (a child), walks on. Uses combat.py."""
from combat import combat
from pawl_client import Fail, Signal, select, signal, sleep, spawn, workflow

threat_detected = Signal("threat_detected", int, kept=False)
stand_down = Signal("stand_down", kept=False)


@workflow
async def patrol(waypoints: int = 3) -> dict[str, int]:
    waypoint = fights = 0
    await sleep(1, name="start_patrol")
    while waypoint < waypoints:
        which, enemy = await select(arrival=sleep(10, name="arrival"), stand_down=signal(stand_down), threat=signal(threat_detected))
        if which == "arrival":
            waypoint += 1
        elif which == "stand_down":
            break
        else:
            outcome = await spawn(combat, target_id=enemy)
            fights += 1
            if not outcome.victory:
                raise Fail("lost against %d after %d rounds" % (enemy, outcome.rounds))
    return {"waypoint": waypoint, "fights": fights}
