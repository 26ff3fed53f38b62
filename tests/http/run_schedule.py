"""Schedules: which slots a cron expression means, against a model over Python's zones, and flows that wait for them: each slot
once, through kills, with the missed ones counted and as many made up for as is declared."""
import datetime
import os
import random
import signal
import urllib.parse
import zoneinfo

from run_flows import server, yaml
from run_timers import advance
from web import harness

CASES = 3000 if os.environ.get("PAWL_TEST_LONG") else 120
SLOTS = 6
UTC = datetime.timezone.utc
MINUTE, DAY = datetime.timedelta(minutes=1), datetime.timedelta(days=1)
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Africa/Casablanca", "America/Nuuk",
         "Asia/Gaza", "Europe/Dublin", "Antarctica/Troll", "Asia/Kolkata", "Pacific/Chatham", "America/Santiago", "Asia/Tehran"]
NIGHTLY = """steps:
  tick: {schedule: {cron: "30 2 * * *", zone: Europe/Berlin%s}, next: run}
  run: {tool: %s, args: {slot: "{{steps.tick.result.slot}}"}, next: tick, on_error: tick}
"""


# ---- The model: minute by minute, from the page alone ----


def field(text, low, high):
    """The set that a field means; None: every value."""
    found = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        else:
            first, _, last = span.partition("-")
            first, last = int(first), int(last or (high if step else first))
        found.update(range(first, last + 1, int(step or 1)))
    return found


class Cron:
    def __init__(self, text):
        minute, hour, day, month, weekday = text.split()
        self.minutes, self.hours = field(minute, 0, 59), field(hour, 0, 23)
        self.days, self.months = field(day, 1, 31), field(month, 1, 12)
        self.weekdays = {n % 7 for n in field(weekday, 0, 7)}
        self.is_either = not day.startswith("*") and not weekday.startswith("*")

    def has(self, local):
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (local.minute in self.minutes and local.hour in self.hours and local.month in self.months
                and (day or weekday if self.is_either else day and weekday))

    def instants(self, local, zone):
        """Those that a local time stands for: of each, the one where clocks skip it, or show it first; or all there are."""
        shown = []
        for fold in (0, 1):
            at = local.replace(tzinfo=zone, fold=fold).astimezone(UTC)
            if at.astimezone(zone).replace(tzinfo=None, fold=0) == local and at not in shown:
                shown.append(at)
        if len(self.hours) == 24:
            return shown
        return shown[:1] or [skip(local, zone)]


def skip(local, zone):
    """The first instant whose clocks show a later time than one that is skipped."""
    at = local.replace(tzinfo=zone, fold=0).astimezone(UTC) - DAY / 4
    while at.astimezone(zone).replace(tzinfo=None) < local:
        at += MINUTE
    return at


def model(text, zone, after, count):
    cron, zone, found = Cron(text), zoneinfo.ZoneInfo(zone), []
    day = (after.astimezone(zone) - DAY).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    while len(found) < count + 2:
        times = [day + MINUTE * n for n in range(1440)]
        found += [at for local in times if cron.has(local) for at in cron.instants(local, zone) if at > after]
        found = sorted(set(found))
        day += DAY
    return found[:count]


def random_cron(rng):
    def some(low, high):
        first = rng.randint(low, high)
        return rng.choice(["*", str(first), "%d-%d" % (first, rng.randint(first, high)), "*/%d" % rng.randint(2, min(high, 9)),
                           ",".join(str(rng.randint(low, high)) for _ in range(3)), "%d/%d" % (first, rng.randint(1, min(high, 9)))])
    return " ".join([some(0, 59), rng.choice(["*", "*", "0-4", "2", some(0, 23)]), rng.choice(["*", "*", some(1, 28)]),
                     rng.choice(["*", "*", "*", some(1, 12)]), rng.choice(["*", "*", some(0, 7)])])


def near_change(rng, zone):
    """A time in years that the zone's rules differ in, often within three days of a change of its clocks."""
    zone, at = zoneinfo.ZoneInfo(zone), datetime.datetime(rng.randint(2020, 2035), rng.randint(1, 12), rng.randint(1, 28), tzinfo=UTC)
    if rng.random() < 0.3:
        return at + MINUTE * rng.randint(0, 1440)
    for _ in range(370):
        if (at + DAY).astimezone(zone).utcoffset() != at.astimezone(zone).utcoffset():
            break
        at += DAY
    return at + MINUTE * rng.randint(-2 * 1440, 1440)


def preview(web, **members):
    path = "/v1/schedule?" + urllib.parse.urlencode(members)
    return web.expect(200, "GET", path).json["slots"]


def test_slots_are_those_of_a_model_that_looks_at_every_minute_around_changes_of_clocks(shell):
    _, web = server(shell)
    rng = random.Random(int(os.environ.get("PAWL_TEST_SEED", "1")))
    for _ in range(CASES):
        text, zone = random_cron(rng), rng.choice(ZONES)
        after = near_change(rng, zone)
        expected = model(text, zone, after, SLOTS)
        found = preview(web, cron=text, zone=zone, after=after.isoformat().replace("+00:00", "Z"), limit=SLOTS)
        slots = [datetime.datetime.fromisoformat(slot["slot"].replace("Z", "+00:00")) for slot in found]
        assert slots == expected, (text, zone, after, slots, expected)
        for slot, at in zip(found, slots):
            assert slot["local"] == at.astimezone(zoneinfo.ZoneInfo(zone)).isoformat(), (slot, zone)


def test_every_zone_of_the_machine_shows_what_python_says(shell):
    _, web = server(shell)
    for zone in sorted(zoneinfo.available_timezones() - {"localtime"}):
        if not zone[0].isupper() or zone in ("Factory",):
            continue
        for slot in preview(web, cron="0 0 1 1,4,7,10 *", zone=zone, after="2020-02-01T00:00:00Z", limit=80):
            at = datetime.datetime.fromisoformat(slot["slot"].replace("Z", "+00:00"))
            expected = at.astimezone(zoneinfo.ZoneInfo(zone))
            assert expected.utcoffset() % MINUTE or slot["local"] == expected.isoformat(), (zone, slot, expected)


def test_words_that_mean_no_schedule_are_refused_by_name(shell):
    _, web = server(shell)
    for words, part in (({"cron": "* * * *"}, "expected 5 fields"), ({"cron": "60 * * * *"}, "the minute"), ({"cron": "* * * * fry"}, "the weekday"),
                        ({"cron": "* * 0 * *"}, "the day"), ({"cron": "*/0 * * * *"}, "the minute"), ({"cron": "5-1 * * * *"}, "the minute"),
                        ({"cron": "1,, * * * *"}, "the minute"), ({"cron": "1, * * * *"}, "comma"), ({"cron": "x" * 5000}, "the minute"),
                        ({"cron": "@never"}, "the minute"), ({"cron": "@daily", "zone": "Berlin"}, "time zone"), ({}, "either"),
                        ({"cron": "@daily", "every": "1h"}, "either"), ({"every": "1500ms"}, "whole seconds"), ({"every": "0s"}, "whole seconds"),
                        ({"every": "1h", "zone": "UTC"}, "cron beside it"), ({"cron": "@daily", "after": "soon"}, "a time")):
        detail = web.refused("invalid-query", "GET", "/v1/schedule?" + urllib.parse.urlencode(words))
        assert part in str(detail.json), (words, detail)
    assert preview(web, cron="0 0 31 2 *") == [], "a date that never is"
    assert len(preview(web, cron="0 0 29 2 *", after="2096-03-01T00:00:00Z", limit=2)) == 2, "2100 has no such day"
    for text, part in (('schedule: {cron: "0 0 31 2 *"}', "a date that exists"), ("schedule: {}", "found neither"), ("schedule: 5m", "an object"),
                       ("schedule: {cron: '@daily', every: 1h}", "found both"), ("schedule: {every: 1h, zone: UTC}", "belongs to 'cron'"),
                       ("schedule: {cron: '@daily', zone: Mars}", "a time zone"), ("schedule: {every: 100ms}", "whole seconds"),
                       ("schedule: {every: 1h, catch_up: 101}", "0 to 100"), ("schedule: {every: 1h, catchup: 1}", "unknown key"),
                       ("schedule: {every: 1h}, retry: {max: 3}", "is not tried again")):
        refused = web.refused("invalid-definition", "PUT", "/v1/definitions/bad", "steps: {a: {%s, done: true}}" % text, {"Content-Type": "application/yaml"})
        assert part in str(refused.json), (text, refused)


# ---- Flows ----


def entries(web, flow, action):
    found, page = [], [None]
    while page:
        page = web.expect(200, "GET", "/v1/instances/%s/history?limit=1000&sequence_from=%d" % (flow, len(found) + 1)).json["entries"]
        found += page
    return [entry for entry in found if entry["action"] == action]


def ticks(web, flow):
    return [entry["payload"] for entry in entries(web, flow, "timer")]



def test_each_slot_comes_once_through_kills_and_changes_of_clocks(shell):
    child, web = server(shell, "--test")
    yaml(web, "nightly", NIGHTLY % ("", "set"))
    flow = web.create(definition="nightly")
    for _ in range(4):
        advance(web, "100d")
        shell.stop(child, signal.SIGKILL, expect=None)
        child, web = server(shell, "--test")
    slots = [tick["local"] for tick in ticks(web, flow)]
    dates = [datetime.date.fromisoformat(local[:10]) for local in slots]
    assert len(dates) >= 399 and all(b - a == DAY for a, b in zip(dates, dates[1:])), "one a day, none twice, none left out"
    assert {local[11:19] for local in slots} == {"02:30:00", "03:00:00"}, "the skipped one is at the skip"
    assert len({local[19:] for local in slots}) == 2, "by the clocks of the zone"
    assert all(tick["missed"] == 0 for tick in ticks(web, flow))
    shell.stop(child)
    assert shell.pawl("verify").code == 0


def test_slots_that_pass_while_it_is_busy_are_counted_and_as_many_as_declared_made_up_for(shell):
    _, web = server(shell, "--test")
    yaml(web, "skip", NIGHTLY % ("", "far"))
    yaml(web, "two", NIGHTLY % (", catch_up: 2", "far"))
    flows = [web.create(definition=name) for name in ("skip", "two")]
    advance(web, "1d")
    steps = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["far"], "worker": "w", "max": 9, "lease": "30d"}).json["steps"]
    assert len(steps) == 2, steps
    advance(web, "5d")
    for step in steps:
        web.expect(200, "POST", "/v1/steps/%s/complete" % step["step_id"], {"lease": step["lease"], "result": 1})
    advance(web, "1h")
    first, second = (ticks(web, flow) for flow in flows)
    assert len(first) == 1, "it waits for the next one"
    advance(web, "1d")
    assert [tick["missed"] for tick in ticks(web, flows[0])] == [0, 5], ticks(web, flows[0])
    assert [tick["missed"] for tick in second] == [0, 3], "of five that were missed, three are left out"
    assert second[1]["slot"] > second[0]["slot"]


def test_a_failed_run_does_not_end_the_schedule_and_the_timer_names_its_slot(shell):
    _, web = server(shell, "--test")
    yaml(web, "nightly", (NIGHTLY % ("", "far")).replace("next: tick,", "retry: {max: 1}, next: tick,"))
    flow = web.create(definition="nightly")
    [waiting] = web.expect(200, "GET", "/v1/instances/%s/why" % flow).json["waiting_for"]
    assert waiting["kind"] == "timer" and waiting["until"].endswith("30:00.000Z"), waiting
    advance(web, "1d")
    [step] = web.expect(200, "POST", "/v1/steps/claim", {"tools": ["far"], "worker": "w"}).json["steps"]
    web.expect(200, "POST", "/v1/steps/%s/fail" % step["step_id"], {"lease": step["lease"], "error": "broken"})
    advance(web, "1d")
    assert len(ticks(web, flow)) == 2


def test_jitter_delays_a_slot_by_less_than_is_declared_and_the_slot_stays_what_it_is(shell):
    _, web = server(shell, "--test")
    yaml(web, "often", "steps: {tick: {schedule: {every: 1h, jitter: 30m}, next: tick}}")
    flows = [web.create(definition="often") for _ in range(8)]
    advance(web, "1d")
    late = set()
    for flow in flows:
        for entry in entries(web, flow, "timer"):
            slot, at = (datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) for text in (entry["payload"]["slot"], entry["recorded_at"]))
            assert slot.minute == 0 and slot <= at < slot + 30 * MINUTE, entry
            late.add(at - slot)
    assert len(late) > 20, "they are spread"


def test_a_round_that_takes_too_long_is_cancelled_by_the_next_slot_or_waited_for(shell):
    _, web = server(shell, "--test")
    yaml(web, "long", "steps: {a: {wait: {timer: 150m}, done: true}}")
    runs = "run: {spawn: {definition: long}, %s retry: {max: 1}, next: tick, on_error: tick}}"
    yaml(web, "cancels", "steps: {tick: {schedule: {every: 1h, catch_up: 1}, next: run}, " + runs % "timeout: 1h,")
    yaml(web, "queues", "steps: {tick: {schedule: {every: 1h, catch_up: 100}, next: run}, " + runs % "")
    yaml(web, "skips", "steps: {tick: {schedule: {every: 1h}, next: run}, " + runs % "")
    cancels, queues, skips = (web.create(definition=name) for name in ("cancels", "queues", "skips"))
    advance(web, "12h")
    hours = {flow: [datetime.datetime.fromisoformat(tick["slot"].replace("Z", "+00:00")) for tick in ticks(web, flow)] for flow in (cancels, queues, skips)}
    steps = {flow: [b - a for a, b in zip(slots, slots[1:])] for flow, slots in hours.items()}
    assert len(hours[cancels]) == 12 and set(steps[cancels]) == {60 * MINUTE}, "each slot begins a round: %s" % hours[cancels]
    ended = [one["status"] for one in web.get("/v1/instances?definition=long&active=false&limit=1000").json["instances"]]
    assert ended.count("cancelled") == 11, ended
    assert set(steps[queues]) == {60 * MINUTE} and len(hours[queues]) == 5, "in order, none left out: %s" % hours[queues]
    assert set(steps[skips]) == {180 * MINUTE}, hours[skips]


def test_a_backfill_starts_each_slot_of_a_span_once_also_when_it_is_repeated(shell):
    _, web = server(shell)
    yaml(web, "nightly", "steps: {a: {tool: set, args: {day: '{{input.day}}'}, done: true}}")
    words = ("backfill", "nightly", "0 2 * * *", "--zone", "Europe/Berlin", "--to", "2026-04-02T00:00:00Z", "--input", '{"day": "{{local}}"}', "--from")
    first = shell.pawl(*words, "2026-03-30T00:00:00Z").out
    assert first.splitlines()[-1] == "3 slots", first
    again = shell.pawl(*words, "2026-03-28T00:00:00Z").out
    assert again.splitlines()[-1] == "5 slots" and set(first.splitlines()[:-1]) < set(again.splitlines()), again
    listed = web.get("/v1/instances?definition=nightly").json["instances"]
    assert len(listed) == 5
    days = {web.get("/v1/instances/" + one["instance_id"]).json["input"]["day"] for one in listed}
    assert days == {"2026-03-28T02:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00", "2026-03-31T02:00:00+02:00", "2026-04-01T02:00:00+02:00"}, days
    other = ["{}" if word.startswith("{") else word for word in words]
    assert "was started before with another input" in shell.pawl(*other, "2026-03-28T00:00:00Z", expect=1).err
    assert "--from and --to" in shell.pawl("backfill", "nightly", "0 2 * * *", expect=2).err
    assert "the minute" in shell.pawl("backfill", "nightly", "x", "--from", "2026-03-28T00:00:00Z", "--to", "2026-03-29T00:00:00Z", expect=1).err


def test_a_store_is_valid_whose_schedules_ran_by_the_real_clock_with_jitter(shell):
    """A decision is made a little before it is recorded: by then the next slot, and the jitter, may be others."""
    _, web = server(shell)
    yaml(web, "often", "steps: {tick: {schedule: {every: 1s, jitter: 900ms}, next: tick}}")
    flows = [web.create(definition="often") for _ in range(12)]
    shell.wait_for(lambda: all(len(entries(web, flow, "timer")) >= 2 for flow in flows))
    told = shell.pawl("verify")
    assert told.code == 0, told


if __name__ == "__main__":
    harness.main(globals())
