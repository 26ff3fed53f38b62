"""`pawl watch`: lines for each entry off a terminal, a live view on one; on a file and on a server."""
import json
import os
import re
import signal
import urllib.request

from harness import EXAMPLES, Terminal, main

CLEAN = b"\x1b[?7h\x1b[?25h"  # wrapping and the cursor are back


def order(shell, *store):
    shell.pawl(*store, "define", str(EXAMPLES / "order.yaml"))
    return shell.pawl(*store, "start", "order").out.strip()


def story(shell, *store):
    """An order watched to its end; what was printed."""
    id = order(shell, *store)
    shell.pawl(*store, "fire", id, "pay", "--actor", "ann")
    child = shell.begin(*store, "watch", id)
    first = child.stdout.readline().decode()
    assert re.search(r"#1  new → paid  pay  by ann$", first), first
    shell.pawl(*store, "fire", id, "ship", "--reason", "there it goes")
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0 and re.search("#2  paid → shipped  ship  “there it goes”$", out.decode().strip()), (out, err)


def test_watching_an_instance_tells_its_story_and_ends_with_it(shell):
    story(shell)


def test_a_server_is_watched_the_same(shell):
    child, address = shell.serve()
    story(shell, "--store", address)
    shell.stop(child)


def asked(shell, server):
    """The operations that a server was asked for, as its log says."""
    err = shell.stop(server)[1]
    return {json.loads(line).get("operation") for line in err.splitlines() if line.startswith('{"at"')}


def test_without_a_terminal_watch_run_and_show_read_an_instance_by_its_view(shell):
    flow = "name: two\nsteps: {a: {tool: set, args: {}, next: b}, b: {tool: sleep, args: {for: 200ms}, done: true}}\n"
    shell.pawl("define", shell.write("two.yaml", flow))
    id = shell.pawl("start", "two").out.strip()
    shell.pawl("run", "two.yaml")
    parts = {"instance.get", "instance.history", "instance.why", "instance.steps", "instance.graph"}
    for words in (["watch", id], ["show", id], ["run", "two"]):
        server, _ = shell.serve("--log-format", "json")
        out = shell.pawl(*words).out
        assert words[0] == "show" or ("step.complete" in out and "completed" in out), out
        operations = asked(shell, server)
        assert "instance.view" in operations and not operations & parts, (words, operations)


def test_entries_between_two_looks_are_printed_however_many_they_are(shell):
    steps = "".join("  s%d: {tool: set, args: {n: %d}, next: s%d}\n" % (n, n, n + 1) for n in range(700))
    shell.write("long.yaml", "name: long\nsteps:\n" + steps.replace("  s0:", "  start:", 1).replace("start: {", "start: {name: s0, ") + "  s700: {tool: set, args: {}, done: true}\n")
    out = shell.pawl("run", "long.yaml", "--test").out
    numbers = [int(n) for n in re.findall(r"(?m)^  │ +(\d+)  20", out)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 1400, (len(numbers), out[-300:])


def test_a_named_store_of_a_server_is_watched_the_same(shell):
    child, address = shell.serve()
    request = urllib.request.Request(address + "/v1/stores/other", method="PUT")
    assert urllib.request.urlopen(request).status == 201
    story(shell, "--store", address + "/v1/stores/other")
    shell.stop(child)


def test_an_end_that_is_no_success_is_exit_1_and_one_that_ended_is_told_at_once(shell):
    id = order(shell)
    shell.pawl("fire", id, "drop")
    found = shell.pawl("watch", id, expect=1)
    assert "new → dropped  drop" in found.out, found
    entry = json.loads(shell.pawl("watch", id, "--json", expect=1).out)
    assert entry["instance_id"] == id and entry["action"] == "drop", entry


def test_all_instances_are_watched_until_interrupted(shell):
    child, address = shell.serve()
    order(shell)
    watcher = shell.begin("--store", address, "watch")
    # The stream may have begun after the first fire: fire until something is heard.
    os.set_blocking(watcher.stdout.fileno(), False)
    heard = b""

    def hears():
        nonlocal heard
        shell.pawl("start", "order")
        shell.pawl("fire", "@last", "pay", "--actor", "bob")
        heard += watcher.stdout.read() or b""
        return b"new \xe2\x86\x92 paid  pay  by bob" in heard
    shell.wait_for(hears)
    shell.stop(watcher, signal.SIGINT)
    shell.stop(child)


def test_a_live_view_is_drawn_over_and_leaves_the_terminal_clean(shell):
    id = order(shell)
    for columns in (40, 120):
        seen = Terminal(shell, "watch", id, columns=columns)
        seen.wait_for("● new")
        assert seen.widest() <= columns, seen.text()
        seen.press("\x03" if columns == 40 else "q")
        assert seen.end() == 0 and seen.bytes.endswith(CLEAN), seen.bytes[-80:]
    seen = Terminal(shell, "watch", id)
    seen.wait_for("● new")
    shell.pawl("fire", id, "pay")
    seen.wait_for("● paid")
    shell.pawl("fire", id, "ship")
    assert seen.end() == 0 and "✔ shipped" in seen.text() and seen.bytes.endswith(CLEAN), seen.text()


def test_a_live_view_breaks_lines_that_are_too_long_and_cuts_nothing(shell):
    shell.write("wait.yaml", "name: wait\nsteps:\n  start: {name: w, approval: {by: [annabel@shop.example, bob], count: 2}, done: true}\n")
    shell.pawl("define", "wait.yaml")
    id = shell.pawl("start", "wait").out.strip()
    for columns in (40, 50, 60):
        seen = Terminal(shell, "watch", id, columns=columns)
        seen.wait_for("WHO")
        assert seen.widest() <= columns, seen.text()
        joined = " ".join(seen.text().split())
        assert "pawl approve %s.1 --actor WHO" % id in joined, seen.text()
        assert "for annabel@shop.example, bob" in joined and re.search(r"since [0-9-]+ [0-9:]+Z", joined), seen.text()
        seen.press("q")
        assert seen.end() == 0


def test_a_watch_ends_with_its_terminal(shell):
    seen = Terminal(shell, "watch", order(shell))
    seen.wait_for("● new")
    os.close(seen.fd)
    ended = []
    shell.wait_for(lambda: ended or ended.extend(pid for pid in [os.waitpid(seen.pid, os.WNOHANG)[0]] if pid) or ended)


def test_the_live_list_shows_new_instances_and_what_happened(shell):
    child, address = shell.serve()
    id = order(shell)
    seen = Terminal(shell, "--store", address, "watch", columns=100)
    seen.wait_for(id)
    shell.pawl("fire", id, "pay", "--actor", "ann")
    seen.wait_for("new → paid  pay  by ann")
    shell.pawl("fire", id, "ship", "--payload", json.dumps({"to": "a street of a long name " * 9}))
    seen.wait_for(r'shipped  ship  \{"to": "a .*…\n')
    line = re.search(r'.*shipped  ship  \{"to.*', seen.text()).group(0)
    assert len(line) <= 100, line
    seen.press("q")
    assert seen.end() == 0 and seen.bytes.endswith(CLEAN)
    shell.stop(child)


def test_a_server_that_is_started_again_is_found_again(shell):
    child, address = shell.serve()
    id = order(shell)
    watcher = shell.begin("watch", id)
    shell.pawl("fire", id, "pay")
    assert "pay" in watcher.stdout.readline().decode()
    shell.stop(child)
    shell.pawl("fire", id, "ship")  # into the file itself
    out, err = watcher.communicate(timeout=60)
    assert watcher.returncode == 0 and "paid → shipped" in out.decode(), (out, err)
    assert "%s is gone" % address in err.decode() and "nothing serves sqlite:pawl.db now" in err.decode(), err


def test_a_server_that_hangs_is_noticed(shell):
    child, address = shell.serve()
    id = order(shell)
    seen = Terminal(shell, "--store", address, "watch", columns=100)
    quiet = shell.begin("--store", address, "watch", id)
    seen.wait_for(id)
    shell.pawl("fire", id, "pay")
    assert "pay" in quiet.stdout.readline().decode()
    child.send_signal(signal.SIGSTOP)
    try:
        listing = shell.begin("--store", address, "list")
        said = listing.stderr.readline().decode()
        assert said == "pawl: %s has not answered for 10 s; waiting for up to 120 s\n" % address, said
        seen.wait_for(address + " has not answered for 10 s; waiting")
        said = quiet.stderr.readline().decode()
        assert said == "pawl: %s has sent nothing for 20 s; waiting\n" % address, said
        hung = Terminal(shell, "--store", address, "watch", id, columns=100)
        hung.wait_for("has not answered")
        hung.press("q")
        hung.end()
    finally:
        child.send_signal(signal.SIGCONT)
    out, err = listing.communicate(timeout=60)
    assert listing.returncode == 0 and id in out.decode() and err == b"", (out, err)
    seen.wait_for(address + " answers again")
    shell.pawl("fire", id, "ship")
    seen.wait_for("paid → shipped")
    seen.press("q")
    assert seen.end() == 0
    out, err = quiet.communicate(timeout=60)
    assert quiet.returncode == 0 and "%s answers again" % address in err.decode() and "shipped" in out.decode(), (out, err)


def test_a_watch_says_when_its_server_is_gone_and_when_it_is_back(shell):
    child, address = shell.serve()
    id = order(shell)
    seen = Terminal(shell, "--store", address, "watch", columns=100)
    quiet = shell.begin("--store", address, "watch", id)
    seen.wait_for(id)
    shell.pawl("fire", id, "pay")
    assert "pay" in quiet.stdout.readline().decode()
    shell.stop(child, signal.SIGKILL, expect=None)
    seen.wait_for(address + " is gone; looking for it again")
    child = shell.begin("serve", "--listen", address[7:])
    seen.wait_for(address + " is back")
    shell.pawl("fire", id, "ship")
    seen.wait_for("paid → shipped")
    seen.press("q")
    assert seen.end() == 0
    _, err = quiet.communicate(timeout=60)
    assert quiet.returncode == 0 and err.decode().count("is gone") == err.decode().count("is back") == 1, err
    shell.stop(child)


main(globals())
