"""soak_worker.py URL LEDGER: a worker that writes down what it answered and what it was told. Killed and begun again by run_soak.py."""
import json
import os
import pathlib
import random
import sys
import time
import uuid

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))
from pawl_client import Pawl, Worker  # noqa: E402

LEDGER = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
LEASE = "1500ms"  # of who was killed it has to run out


class Recording(Pawl):
    """A line for each answer that was sent: its mark, and what became of it."""

    def _call(self, method, path, values, query, body, **options):
        answer = super()._call(method, path, values, query, body, **options)
        if path == "/v1/steps/complete":
            for sent, told in zip(body["steps"], answer["results"]):
                line = [sent["step_id"], (sent.get("result") or sent.get("error") or {}).get("mark"), told.get("status") or told.get("reason")]
                os.write(LEDGER, (json.dumps(line) + "\n").encode())
        return answer


class Tired(Exception):
    pass


worker = Worker(Recording(sys.argv[1], patience=2.0), lease=LEASE, wait=1.0)


@worker.tool("soak_work")
def work(args, step):
    time.sleep(random.choice((0, 0, 0.01, 0.2)))
    if random.random() < 0.1:
        raise Tired("once in a while")
    return {"mark": uuid.uuid4().hex, "of": step["idempotency_key"]}


worker.run()
