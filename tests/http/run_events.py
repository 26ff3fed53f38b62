"""Streams of entries (DESIGN.md section 5, events; RELIABILITY.md C12, X19, F20), over HTTP."""
import os
import resource
import signal
import threading
import time

from sse import Stream, gather
from web import Web, harness

LONG = bool(os.environ.get("PAWL_TEST_LONG"))
WHEEL = {"states": ["on", "off"], "initial_state": "on", "terminal_states": ["off"],
         "terminal_kinds": {"off": "success"},
         "transitions": [{"from_state": "on", "action": "turn", "to_state": "on"},
                         {"from_state": "on", "action": "stop", "to_state": "off"}]}


def server(shell, *words):
    child, address = shell.serve(*words)
    web = Web(address)
    web.child = child
    return web


def wheel(web):
    return web.create(declaration=WHEEL)


def turn(web, id, count=1, **members):
    for _ in range(count):
        web.expect(200, "POST", "/v1/instances/%s/fire" % id, {"action": "turn", **members})


def numbers(events, id=None):
    return [e.entry["sequence_number"] for e in events if id is None or e.entry["instance_id"] == id]


def test_a_creation_is_an_event_of_its_own_kind_in_the_stream_of_all(shell):
    web = server(shell)
    stream, kinds = Stream(web).open(), ("entry", "created")
    id = web.create(declaration=WHEEL, actor_ref="ann", subject_ref="s", correlation_id="c")
    turn(web, id)
    created, entry = stream.event(kinds), stream.event(kinds)
    assert (created.kind, entry.kind) == ("created", "entry"), (created, entry)
    instance = web.get("/v1/instances/" + id).json
    for member in ("instance_id", "definition", "version", "kind", "subject_ref", "correlation_id", "parent_id", "created_by", "instantiated_at"):
        assert created.entry[member] == instance[member], (member, created.entry)
    assert created.entry["initial_state"] == "on" and len(created.entry["hash"]) == 64, created.entry
    assert "sequence_number" not in created.entry
    again = Stream(web, last=created.id).open()
    assert again.event(kinds).id == entry.id, "its id is a cursor like any other"
    whole = Stream(web, "/v1/events?from=start").open()
    assert [whole.event(kinds).id for _ in range(2)] == [created.id, entry.id]
    of_one = Stream(web, "/v1/instances/%s/events?from=start" % id).open()
    assert of_one.event(kinds).id == entry.id, "a stream of one instance has its entries"


def test_an_event_is_the_entry_of_the_history_with_its_instance(shell):
    harness.one_shard("cursors are longer")
    web = server(shell)
    id = wheel(web)
    stream = Stream(web).open()
    turn(web, id, actor_ref="ann", reason="why\nnot", payload={"a": [1, 1.50]})
    event = stream.event()
    entry = web.get("/v1/instances/%s/history" % id).json["entries"][0]
    assert event.kind == "entry" and len(event.id) == 26, event.id
    assert event.entry == dict(entry, instance_id=id), (event.entry, entry)
    assert stream.headers["cache-control"] == "no-store"


def test_a_payload_with_line_ends_is_one_event(shell):
    web = server(shell)
    id = wheel(web)
    stream = Stream(web).open()
    web.expect(200, "POST", "/v1/instances/%s/fire" % id, '{"action": "turn", "payload": {"a":\n 1,\r\n\r"b": 2}}')
    turn(web, id)
    first, second = stream.events(2)
    assert first.entry["payload"] == {"a": 1, "b": 2} and second.entry["sequence_number"] == 2


def test_only_what_is_new_comes_unless_everything_is_asked_for(shell):
    web = server(shell)
    one, two = wheel(web), wheel(web)
    turn(web, one, 3)
    stream = Stream(web).open()
    everything = Stream(web, "/v1/events?from=start").open()
    of_two = Stream(web, "/v1/instances/%s/events?from=start" % two).open()
    of_one = Stream(web, "/v1/instances/%s/events" % one).open()
    turn(web, two)
    turn(web, one)
    assert numbers(stream.events(2)) == [1, 4]
    assert numbers(everything.events(5), one) == [1, 2, 3, 4]
    assert [e.entry["instance_id"] for e in of_two.events(1)] == [two]
    assert numbers(of_one.events(1)) == [4]
    turn(web, two)
    assert numbers(of_two.events(1)) == [2]
    assert len({stream.event().id, everything.event().id}) == 1, "a cursor is the same for everybody"


def test_a_cursor_resumes_without_gap_or_repeat_also_after_a_restart(shell):
    harness.one_shard("two readers need not see one order")
    web = server(shell)
    one, two = wheel(web), wheel(web)
    stream = Stream(web, "/v1/events?from=start").open()
    turn(web, one, 5)
    turn(web, two, 5)
    seen = stream.events(10)
    for number in (signal.SIGTERM, signal.SIGKILL):
        shell.stop(web.child, number, expect=None)
        web = server(shell)
        for i, event in enumerate(seen):
            again = Stream(web, "/v1/events?from=start", last=event.id).open()
            assert [e.id for e in again.events(len(seen) - 1 - i)] == [e.id for e in seen[i + 1:]]
            again.close()
        of_two = Stream(web, "/v1/instances/%s/events" % two, last=seen[2].id).open()
        assert numbers(of_two.events(5)) == [1, 2, 3, 4, 5], "a cursor of the other address is as good"
        resumed = Stream(web, last=seen[-1].id).open()
        turn(web, one)
        more = resumed.events(1)
        assert numbers(more) == [len([e for e in seen if e.entry["instance_id"] == one]) + 1]
        seen += more


def test_what_cannot_begin_is_refused_before_the_stream_begins(shell):
    web = server(shell)
    id = wheel(web)
    web.refused("invalid-query", "GET", "/v1/events?from=end")
    web.refused("invalid-query", "GET", "/v1/events?since=1")
    web.refused("invalid-query", "GET", "/v1/events", headers={"Last-Event-ID": "7"})
    web.refused("invalid-query", "GET", "/v1/events", headers={"Last-Event-ID": "0000ZZZZZZ0000000000000000"})
    web.refused("invalid-query", "GET", "/v1/events", headers={"Last-Event-ID": id})
    web.refused("not-known", "GET", "/v1/instances/nobody/events?from=never")
    web.refused("invalid-query", "GET", "/v1/instances/%s/events?from=never" % id)
    web.refused("not-allowed", "POST", "/v1/events")
    head = web.expect(200, "HEAD", "/v1/events")
    assert head.headers["content-type"] == "text/event-stream" and head.body == b""


def test_a_rejected_fire_is_no_event_and_flows_tell_their_steps(shell):
    web = server(shell)
    id = wheel(web)
    web.expect(201, "PUT", "/v1/definitions/two", {"name": "two", "do": [{"action": "set", "payload": {"a": 1}},
                                                                        {"action": "set", "payload": {"b": 2}}]})
    stream = Stream(web).open()
    web.refused("invalid-transition", "POST", "/v1/instances/%s/fire" % id, {"action": "jump"})
    web.create(definition="two")
    actions = []
    while not actions or actions[-1] != "finish":
        actions.append(stream.event().entry["action"])
    assert actions[0] == "start" and actions.count("step.complete") == 2, actions


def test_a_subscriber_far_behind_catches_up_while_others_write(shell):
    harness.one_shard("two readers need not see one order")
    web = server(shell)
    ids = [wheel(web) for _ in range(3)]
    for id in ids:
        turn(web, id, 100)
    stop = threading.Event()

    def write(id):
        while not stop.is_set():
            turn(web, id)

    writers = [threading.Thread(target=write, args=(id,)) for id in ids]
    for writer in writers:
        writer.start()
    streams = [Stream(web, "/v1/events?from=start").open() for _ in range(4)]
    found = [stream.events(450) for stream in streams]
    stop.set()
    for writer in writers:
        writer.join()
    for events in found:
        for id in ids:
            assert numbers(events, id) == list(range(1, len(numbers(events, id)) + 1)), "a gap or a repeat"
    assert len({tuple(e.id for e in events) for events in found}) == 1, "the same order for everybody"


def test_a_slow_subscriber_holds_nobody_up_and_misses_nothing(shell):
    web = server(shell)
    id = wheel(web)
    slow = Stream(web, receive_buffer=4096).open()
    quick = Stream(web).open()
    wide = "x" * 30000
    count = 200  # more than the window and every buffer on the way hold
    for i in range(count):
        turn(web, id, payload=wide)
        assert quick.event().entry["sequence_number"] == i + 1
    assert numbers(slow.events(count)) == list(range(1, count + 1))


def test_stopping_the_server_ends_streams_in_good_order(shell):
    web = server(shell)
    id = wheel(web)
    streams = [Stream(web).open(), Stream(web, "/v1/instances/%s/events" % id).open()]
    turn(web, id)
    shell.stop(web.child)
    for stream in streams:
        assert numbers(stream.rest()) == [1]
        assert stream.raw.startswith(b"0\r\n"), "the last chunk says that this was all"


def test_a_client_that_left_is_forgotten(shell):
    web = server(shell)
    id = wheel(web)
    for _ in range(50):
        Stream(web).open().close()
    stream = Stream(web).open()
    turn(web, id, 3)
    assert numbers(stream.events(3)) == [1, 2, 3]
    shell.stop(web.child)


def test_a_stream_can_be_resumed_before_its_first_event(shell):
    """The comment that opens it says where it stands."""
    web = server(shell)
    id = wheel(web)
    turn(web, id)
    stream = Stream(web)
    stream.head()
    comment, cursor = stream.block()
    stream.close()
    turn(web, id, 2)
    assert comment == ":" and cursor.startswith("id: "), (comment, cursor)
    assert numbers(Stream(web, last=cursor[4:]).open().events(2)) == [2, 3]


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as status:
        return int([line for line in status if line.startswith("VmRSS")][0].split()[1])


def test_one_event_reaches_many_idle_streams(shell):
    """500 of them, or 10,000 with PAWL_TEST_LONG: half of everything, half of one instance."""
    count = 10000 if LONG else 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < count + 500:
        raise harness.Skip("only %d files may be open" % hard)
    web = server(shell)
    id, other = wheel(web), wheel(web)
    before = resident_kib(web.child.pid)
    streams = []
    for i in range(count):
        streams.append(Stream(web, "/v1/events" if i % 2 else "/v1/instances/%s/events" % id))
        if i % 100 == 99:
            gather(streams[-100:], lambda s: b"\n\n" in s.raw)
    each = (resident_kib(web.child.pid) - before) / count
    for stream in streams:
        stream.open()
    begun = time.monotonic()
    turn(web, id)
    gather(streams, Stream.has_block)
    took = time.monotonic() - begun
    print("# %d streams: %.1f KiB resident each, one event to all in %.2f s" % (count, each, took))
    for stream in streams:
        assert numbers(stream.events(1)) == [1]
    turn(web, other)
    turn(web, id)
    for i, stream in enumerate(streams):
        assert numbers(stream.events(2 if i % 2 else 1), id) == [2]
    for stream in streams:
        stream.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_silence_is_broken_by_comments_and_a_stalled_client_is_dropped(shell):
    if not LONG:
        raise harness.Skip("takes a minute of real time: PAWL_TEST_LONG")
    web = server(shell, "--test")
    id = wheel(web)
    quiet, stalled = Stream(web).open(), Stream(web, receive_buffer=4096).open()
    quiet.beat()
    wide = "x" * 100000
    for _ in range(30):
        turn(web, id, payload=wide)
    last = quiet.events(30)[-1]
    time.sleep(45)
    turn(web, id)
    seen = []
    try:
        seen = stalled.rest()
    except ConnectionError:
        pass
    assert len(seen) < 31, "it was given everything although it took nothing for 45 s"
    resumed = Stream(web, last=last.id).open()
    assert numbers(resumed.events(1)) == [31]


if __name__ == "__main__":
    harness.main(dict(globals()))
