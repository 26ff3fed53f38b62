"""otlp.py - sends what pawl did to an OpenTelemetry collector, as traces over OTLP/HTTP.

    otlp.py http://127.0.0.1:7295 http://127.0.0.1:4318 [--cursor FILE]     follow: each instance when it has ended
    otlp.py http://127.0.0.1:7295 http://127.0.0.1:4318 --instance ID       this one, as it is now

An instance is a span, each attempt of a step that was called is a span below it, and what it heard (signals, timers,
approvals, fired actions) are events of its span. The trace is that of the `traceparent` with which the instance was
created; without one it is made of the id of the outermost instance. Ids of spans are made of the ids of what they
stand for: an instance that is sent twice is the same trace. PAWL_TOKEN is sent to pawl, if it is set."""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import sys
import urllib.parse
import urllib.request

CALLS = ("step.start", "step.complete", "step.fail", "step.retry", "step.timeout", "start", "finish", "fail", "cancel", "child")


def ask(url, data=None, **headers):
    token = os.environ.get("PAWL_TOKEN") if data is None else None
    if token:
        headers["Authorization"] = "Bearer " + token
    request = urllib.request.Request(url, data=None if data is None else json.dumps(data).encode(), headers=headers)
    return urllib.request.urlopen(request, timeout=60)


def nanoseconds(time):
    moment = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    return str(int((moment - datetime.datetime.fromtimestamp(0, datetime.timezone.utc)) / datetime.timedelta(microseconds=1)) * 1000)


def id_of(text, size):
    return hashlib.sha256(text.encode()).hexdigest()[:2 * size]


def attributes(**values):
    """As OTLP writes them; what is not known is left out. `__` stands for a dot."""
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue"}
    return [{"key": key.replace("__", "."), "value": {kinds[type(value)]: str(value) if type(value) is int else value}}
            for key, value in values.items() if value is not None]


def status_of(failed, error):
    text = error if isinstance(error, str) else json.dumps(error)
    return {"code": 2, "message": text[:200]} if failed else {"code": 1}


def kind_of(error):
    """The kind of an error, as `retry: {on: ...}` sees it."""
    if isinstance(error, dict):
        error = next((error[key] for key in ("kind", "code", "reason", "status") if key in error), "error")
    return str(error).split(":")[0][:80]


class Pawl:
    def __init__(self, url):
        self.url = url.rstrip("/") + "/v1"

    def get(self, path):
        with ask(self.url + path) as answer:
            return json.load(answer)

    def pages(self, path, key):
        after = None
        while True:
            page = self.get(path + "?limit=1000" + ("&after=" + urllib.parse.quote(after) if after else ""))
            yield from page[key]
            after = page.get("next")
            if not after:
                return

    def trace_of(self, instance, entries):
        """(trace id, id of the span above)."""
        given = next((entry["traceparent"] for entry in entries[:1] if "traceparent" in entry), None)
        above = instance["parent_id"]
        if given:
            _, trace, span, _ = given.split("-")
            return trace, id_of(above, 8) if above else span
        while instance["parent_id"]:
            instance = self.get("/instances/" + instance["parent_id"])
        return id_of(instance["instance_id"], 16), id_of(above, 8) if above else ""

    def spans(self, id):
        instance = self.get("/instances/" + id)
        entries = list(self.pages("/instances/%s/history" % id, "entries"))
        trace, above = self.trace_of(instance, entries)
        end = entries[-1]["recorded_at"] if entries else instance["updated_at"]
        own = id_of(id, 8)
        labels = {"pawl__label__" + key: value for key, value in (instance["labels"] or {}).items()}
        yield {"traceId": trace, "spanId": own, "parentSpanId": above, "name": instance["definition"] or "declaration", "kind": 1,
               "startTimeUnixNano": nanoseconds(instance["instantiated_at"]), "endTimeUnixNano": nanoseconds(end),
               "status": status_of(instance["status"] == "failed", instance["error"]),
               "attributes": attributes(pawl__instance__id=id, pawl__instance__status=instance["status"], pawl__instance__state=instance["current_state"],
                                        pawl__definition__name=instance["definition"], pawl__definition__version=instance["version"],
                                        pawl__definition__kind=instance["kind"], pawl__subject_ref=instance["subject_ref"],
                                        pawl__correlation_id=instance["correlation_id"], pawl__created_by=instance["created_by"], **labels),
               "events": [{"timeUnixNano": nanoseconds(entry["recorded_at"]), "name": entry["action"],
                           "attributes": attributes(pawl__sequence_number=entry["sequence_number"], pawl__step__name=entry.get("step"),
                                                    pawl__actor_ref=entry.get("actor_ref"), pawl__state=entry["to_state"])}
                          for entry in entries if entry["action"] not in CALLS]}
        for step in self.pages("/instances/%s/steps" % id, "steps") if instance["kind"] == "flow" else ():
            begun = step["started_at"] or step["ready_at"]
            if begun:  # a step that waits is an event above
                failed = step["status"] == "failed"
                yield {"traceId": trace, "spanId": id_of(step["step_id"], 8), "parentSpanId": own, "name": step["name"], "kind": 3,
                       "startTimeUnixNano": nanoseconds(begun), "endTimeUnixNano": nanoseconds(step["completed_at"] or end),
                       "status": status_of(failed, step["error"]),
                       "attributes": attributes(pawl__step__id=step["step_id"], pawl__step__name=step["name"], pawl__step__tool=step["tool"],
                                                pawl__step__attempt=step["attempt"], pawl__step__status=step["status"],
                                                error__type=kind_of(step["error"]) if failed else None)}


def send(pawl, collector, id):
    body = {"resourceSpans": [{"resource": {"attributes": attributes(service__name="pawl")},
                               "scopeSpans": [{"scope": {"name": "pawl"}, "spans": list(pawl.spans(id))}]}]}
    with ask(collector.rstrip("/") + "/v1/traces", body, **{"Content-Type": "application/json"}) as answer:
        answer.read()


def has_ended(pawl, entry):
    """Flows and code end with these; of a machine it is asked."""
    if entry["from_state"] == entry["to_state"]:
        return False
    return pawl.get("/instances/" + entry["instance_id"])["terminal_kind"] is not None


def follow(pawl, collector, cursor):
    """Each instance that ends, from where the cursor is: it is written when what came before it was taken."""
    place = cursor.read_text().strip() if cursor and cursor.exists() else None
    headers = {"Last-Event-ID": place} if place else {}
    kind, at = None, place
    for line in ask(pawl.url + "/events" + ("" if place else "?from=start"), **headers):
        word, _, text = line.decode().rstrip("\n").partition(": ")
        if word == "id":
            at = text
        elif word == "event":
            kind = text
        elif word == "data" and kind == "entry" and has_ended(pawl, json.loads(text)):
            send(pawl, collector, json.loads(text)["instance_id"])
            if cursor:
                part = cursor.with_suffix(".part")
                part.write_text(at)
                part.replace(cursor)


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pawl", help="the address of pawl serve")
    parser.add_argument("collector", help="the address of the collector: OTLP over HTTP, often port 4318")
    parser.add_argument("--instance", metavar="ID", help="send this one, and end")
    parser.add_argument("--cursor", metavar="FILE", type=pathlib.Path, help="where to go on after a restart")
    args = parser.parse_args(words)
    if args.instance:
        send(Pawl(args.pawl), args.collector, args.instance)
    else:
        follow(Pawl(args.pawl), args.collector, args.cursor)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, KeyboardInterrupt) as error:
        sys.exit("otlp.py: %s" % error)
