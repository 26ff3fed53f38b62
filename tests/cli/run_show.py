"""`pawl show`: the path, the tree of steps, the timeline; colours and widths."""
import html.parser
import json
import re
import shlex
import sqlite3
import urllib.request

from harness import EXAMPLES, Terminal, main

LONG = "name: long\nsteps:\n  start: {name: a-step-with-quite-a-long-name, tool: set, args: {words: '%s'}, done: true}\n" % ("x" * 200)
TIMES = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\dZ"  # fired, recorded

REPORT = """name: report
steps:
  start: {name: collect, tool: exec, args: {argv: [echo, '{"orders": 12}']}, next: rest}
  rest: {tool: sleep, args: {for: 300ms}, next: deliver}
  deliver: {tool: exec, retry: {max: 2, backoff: [1ms]}, args: {argv: [sh, -c, "mkdir once && exit 1; rmdir once; echo 1"]}, next: file}
  file: {tool: set, args: {}, done: true}
"""


def report(shell):
    shell.write("report.yaml", REPORT)
    shell.pawl("run", "report.yaml")


def test_a_flow_is_drawn_as_its_steps_with_marks_attempts_and_results(shell):
    report(shell)
    found = shell.pawl("show", "@last").out
    assert re.search(r'✔ collect  exec  \d+ ms  {"orders": 12', found), found
    assert re.search(r"✔ deliver  exec  attempt 2  \d+", found), found
    assert "12 entries: pawl history" in found, found
    shell.pawl("run", str(EXAMPLES / "create-deployable.yaml"), "--input", '{"name": "s"}')
    assert re.search(r'│  └─ ✘ smoke-test  fail  \d+ ms  "the smoke test', shell.pawl("show", "@last").out)


def test_a_gate_a_wait_and_a_spawn_without_a_name_are_shown_with_their_kind_beside_their_path(shell):
    shell.write("leaf.yaml", "name: leaf\ndo: [{action: set, payload: {}}]\n")
    shell.pawl("define", "leaf.yaml")
    shell.write("waits.yaml", """name: waits
do: [{tool: null}, {wait: {timer: 1ms}}, {spawn: {definition: leaf}}, {name: last, wait: {timer: 1ms}}]
""")
    shell.pawl("define", "waits.yaml")
    shell.pawl("start", "waits")
    shell.pawl("approve", "@last")
    shell.pawl("resume", "@last")
    found = shell.pawl("history", "@last").out
    for line in (r"gate.approve .*do.0 gate", r"timer .*do.1 wait", r"child .*do.2 spawn", r"timer .*last *\n"):
        assert re.search(line, found), (line, found)


def test_a_leaf_without_a_name_is_shown_with_its_action_beside_its_path(shell):
    shell.write("tree.yaml", """name: tree
do:
  - dopar: [{action: paint, payload: {}}, {name: named, action: paint, payload: {}}]
""")
    shell.pawl("define", "tree.yaml")
    shell.pawl("start", "tree")
    assert re.search("do.0.dopar.0 .*paint", shell.pawl("why", "@last").out)
    assert "do.0.dopar.0  paint\n" in shell.pawl("show", "@last").out
    shell.write("leaf.yaml", "name: leaf\ndo: [{action: set, payload: {}}, {name: b, action: set, payload: {}}]\n")
    shell.pawl("run", "leaf.yaml")
    found = shell.pawl("history", "@last").out
    assert re.search(r"step.complete +do.0 set  {}", found) and re.search(r"step.complete +b  {}", found), found
    steps = [e.get("tool") for e in json.loads(shell.pawl("history", "@last", "--json").out)["entries"] if e.get("step")]
    assert steps == ["set", "set", None, None], steps


def test_a_step_that_has_not_begun_is_there_without_a_mark(shell):
    shell.pawl("define", str(EXAMPLES / "approval.yaml"))
    shell.pawl("start", "approval", "--input", '{"what": "x"}')
    found = shell.pawl("show", "@last").out
    assert re.search(r"○ request_approval  approval, needs 2 of 3\n  · execute_write  set\n", found), found


def test_a_machine_is_drawn_with_times_actors_and_what_may_come_next(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    shell.pawl("fire", "@last", "pay", "--actor", "ann")
    found = shell.pawl("show", "@last").out
    assert re.search(r"○ new\n  │ +1  %s +\+\d.* m?s +pay +by ann *\n  ● paid\n" % TIMES, found), found
    assert "ship → shipped" in found, found


def test_when_an_entry_was_recorded_stands_beside_when_it_was_fired(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    shell.pawl("fire", "@last", "pay")
    assert re.search(r"^# +FIRED AT +RECORDED +STATES.*\n1  %s  new → paid" % TIMES, shell.pawl("history", "@last").out)
    assert re.search(r"# +fired at +recorded", shell.pawl("show", "@last").out)
    shell.pawl("fire", "@last", "ship")
    assert re.search(r"^%s  #2  paid → shipped" % TIMES, shell.pawl("watch", "@last").out, re.MULTILINE)


def duration_of(bar):
    """The seconds that a bar's row says."""
    number, unit = re.search(r"([\d.]+) (ms|s)\b", bar).groups()
    return float(number) / (1000 if unit == "ms" else 1)


def test_what_is_shown_of_a_long_instance_is_named_as_a_part_of_it(shell):
    shell.pawl("define", shell.write("cycle.yaml", "name: cycle\nsteps:\n  start: {name: a, tool: set, args: {n: 1}, next: b}\n"
                                     "  b: {tool: log, args: {message: b}, next: c}\n  c: {tool: set, args: {m: 1}, next: start}\n"))
    id = shell.pawl("start", "cycle").out.strip()
    server, address = shell.serve()
    shell.wait_for(lambda: shell.json("show", id)["next_sequence_number"] > 5000)
    shell.pawl("pause", id)
    shell.stop(server)
    server, address = shell.serve()
    steps = all_steps(address, id)
    assert len(steps) > 2000
    shown = shell.pawl("show", id).out
    assert len(re.findall(r" [abc]  (?:set|log)  ×\d+\+\s", shown)) == 3, shown
    newest = re.search(r"⋮ of the newest (\d+) attempts; (\d+) earlier: pawl graph --instance %s" % id[:10], shown)
    assert newest and int(newest.group(1)) + int(newest.group(2)) == len(steps), shown
    drawn = shell.pawl("show", id, "--timeline").out
    bars = [line for line in drawn.splitlines() if re.search("[█▒▏]", line)]
    newest = re.search(r"the newest (\d+): from .*\n  ⋮ (\d+) earlier: pawl history %s" % id[:10], drawn)
    assert newest and int(newest.group(1)) == len(bars) and len(bars) + int(newest.group(2)) == len(steps), drawn[:300]
    assert "in all" not in drawn, drawn[:300]


def all_steps(address, id):
    steps, after = [], ""
    while after is not None:
        with urllib.request.urlopen("%s/v1/instances/%s/steps?limit=1000%s" % (address, id, after)) as answer:
            page = json.load(answer)
        steps += page["steps"]
        after = "&after=" + page["next"] if page["next"] else None
    return steps


def test_the_timeline_of_a_machine_with_many_entries_counts_those_before_its_bars(shell):
    shell.pawl("define", shell.write("wheel.yaml", "name: wheel\nstates: [a, b, end]\ninitial_state: a\nterminal_states: [end]\n"
                                     "terminal_kinds: {end: success}\ntransitions:\n  - {from_state: a, action: go, to_state: b}\n"
                                     "  - {from_state: b, action: go, to_state: a}\n  - {from_state: b, action: stop, to_state: end}\n"))
    id = shell.pawl("start", "wheel").out.strip()
    server, address = shell.serve()
    lines = "\n".join(json.dumps({"operation": "instance.fire", "input": {"instance_id": id, "action": "go"}}) for _ in range(1500))
    urllib.request.urlopen(urllib.request.Request(address + "/v1/batch", lines.encode(), {"Content-Type": "application/x-ndjson"})).read()
    drawn = shell.pawl("show", id, "--timeline").out
    assert re.search(r"the newest 400: from .*\n  ⋮ 1100 earlier: pawl history %s" % id[:10], drawn), drawn[:300]


def test_the_timeline_has_a_bar_for_each_state_and_for_each_attempt(shell):
    report(shell)
    rows = shell.pawl("show", "@last", "--timeline").out.splitlines()
    bars = [row for row in rows if re.search("[█▒▏]", row)]
    assert [bar.split()[0] for bar in bars] == ["collect", "rest", "deliver", "deliver", "file"], rows
    longest = max(bars, key=duration_of)
    columns_per_s = longest.count("█") / duration_of(longest)
    # A bar covers whole columns, one at each end that it covers only in part.
    assert all(abs(bar.count("█") - duration_of(bar) * columns_per_s) <= 2 for bar in bars), rows
    assert duration_of(bars[1]) >= 0.3, rows  # it slept
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    shell.pawl("fire", "@last", "pay")
    bars = [row for row in shell.pawl("show", "@last", "--timeline").out.splitlines() if re.search("[█▒▏]", row)]
    assert [bar.split()[0] for bar in bars] == ["new", "paid"], bars


def test_nothing_is_wider_than_the_terminal(shell):
    shell.write("long.yaml", LONG)
    shell.pawl("run", "long.yaml")
    for columns in (60, 100):
        for words in (["show", "@last"], ["show", "@last", "--timeline"], ["list"]):
            seen = Terminal(shell, *words, columns=columns)
            assert seen.end() == 0
            assert seen.widest() <= columns, (columns, words, seen.text())


def test_nothing_that_is_needed_is_cut_off_a_terminal(shell):
    report(shell)
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    id = shell.pawl("start", "order", "--subject", "A-17 of the shop in the long street",
                    "--actor", "annabel.of.the.long.street@shop.example").out.strip()
    shell.pawl("fire", id, "pay", "--actor", "bob", "--reason", "by card", "--payload", json.dumps({"words": "x" * 99}))
    for columns in (60, 80, 100, 120):
        def seen(*words):
            terminal = Terminal(shell, *words, columns=columns, rows=60)
            assert terminal.end() == 0 and terminal.widest() <= columns, (columns, terminal.text())
            return terminal.text()
        assert "attempt 2" in seen("show", "1", "--timeline"), columns
        rows = seen("list")
        assert re.search(r"(?m)^(2|%s) " % id, rows) and re.search(r"\d\d:\d\d(:\d\d)?Z", rows), rows
        for name in ("report@1", "order@1", "paid", "completed", "A-17 of the shop in the long street"):
            assert name in rows, (columns, name, rows)
        lines = seen("show", "2", "--timeline")
        assert "annabel.of.the.long.street@shop.example" in lines, (columns, lines)
        for words in (["show", "2"], ["history", "2"]):
            assert re.search(r"\d\d:\d\d:\d\dZ .*pay .*bob", seen(*words)), (columns, words)
        assert "by card" in seen("show", "2"), columns


def test_history_cuts_neither_a_reason_nor_an_error_nor_an_attempt(shell):
    error = "the card was declined by the bank because its limit was reached"
    shell.write("pay.yaml", "name: pay\nsteps:\n  start: {name: charge, tool: fail, args: {error: '%s'},"
                            " retry: {max: 2, backoff: [1ms]}, done: true}\n" % error)
    shell.pawl("run", "pay.yaml", expect=1)
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    reason = "the customer came in person and paid with a very large note, which we had to change at the bank across the street"
    shell.pawl("start", "order")
    for columns, actor in [(columns, "ann") for columns in (60, 80, 100)] + [(60, "a" * size) for size in range(10, 20)]:
        id = shell.pawl("start", "order").out.strip()
        shell.pawl("fire", id, "pay", "--actor", actor, "--reason", reason)
        for words, needed in ((["history", "1"], (error, "charge attempt 2")), (["history", id], (reason, actor)), (["show", id], (reason, actor))):
            terminal = Terminal(shell, *words, columns=columns, rows=60)
            assert terminal.end() == 0 and terminal.widest() <= columns, (columns, terminal.text())
            joined = " ".join(terminal.text().replace("│", " ").split())
            assert all(text in joined for text in needed), (columns, words, terminal.text())
            assert words[0] == "show" or "\n\n" not in terminal.text(), terminal.text()


def test_the_columns_of_a_long_history_stay_where_they_are(shell):
    shell.pawl("define", shell.write("wheel.yaml", "name: wheel\nstates: [a, end]\ninitial_state: a\nterminal_states: [end]\n"
                                     "terminal_kinds: {end: success}\ntransitions:\n  - {from_state: a, action: go, to_state: a}\n"
                                     "  - {from_state: a, action: stop, to_state: end}\n"))
    id = shell.pawl("start", "wheel").out.strip()
    server, address = shell.serve()
    lines = "\n".join([json.dumps({"operation": "instance.fire", "input": {"instance_id": id, "action": "go"}})] * 1200)
    urllib.request.urlopen(urllib.request.Request(address + "/v1/batch", lines.encode(), {"Content-Type": "application/x-ndjson"})).read()
    rows = shell.pawl("history", id).out.splitlines()
    assert len(rows) == 1201 and {row.index(" go") for row in rows[1:]} == {rows[0].index(" ACTION")}, (rows[0], rows[1], rows[1005])


def test_a_week_is_not_six_days(shell):
    shell.write("wait.yaml", "name: wait\nsteps:\n  start: {name: w, approval: {by: [ann]}, timeout: 7d, done: true}\n")
    shell.pawl("define", "wait.yaml")
    shell.pawl("start", "wait")
    assert "in 6 d 23 h" in shell.pawl("show", "@last").out


def test_the_next_page_is_asked_for_by_the_command_that_was_typed(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    ids = [shell.pawl("start", "order", "--label", "shop=long street").out.strip() for _ in range(5)]
    shell.pawl("fire", ids[2], "pay")
    found, words = [], ["list", "--label", "shop=long street", "--state", "new", "--order", "oldest", "--limit", "2"]
    while words:
        lines = shell.pawl(*words).out.splitlines()
        found += [line.split()[0] for line in lines[1:] if not line.startswith("more: ")]
        words = shlex.split(lines[-1])[2:] if lines[-1].startswith("more: pawl ") else None
    assert found == [ids[0], ids[1], ids[3], ids[4]], found
    shell.pawl("cancel", ids[2])
    lines = shell.pawl("history", ids[2], "--limit", "1").out.splitlines()
    assert re.fullmatch(r"more: pawl history %s --limit 1 --after \S+" % ids[2], lines[-1]), lines


def test_colours_only_on_a_terminal_unless_asked_for(shell):
    report(shell)
    assert "\x1b" not in shell.pawl("show", "@last").out
    assert "\x1b[32m" in shell.pawl("show", "@last", "--color", "always").out
    assert "\x1b[32m" in shell.pawl("show", "@last", "--color=always", env={"NO_COLOR": "1"}).out
    for env, words, coloured in (({}, [], True), ({"NO_COLOR": "1"}, [], False),
                                 ({}, ["--color", "never"], False), ({"TERM": "dumb"}, [], False)):
        seen = Terminal(shell, "show", "@last", *words, env=env)
        assert seen.end() == 0
        assert (b"\x1b[32m" in seen.bytes) == coloured, (env, words)
    assert "always, never or auto" in shell.pawl("list", "--color", "blue", expect=2).err


def test_sql_is_read_only_and_goes_through_a_pager_where_it_is_longer_than_the_terminal(shell):
    shell.pawl("init")
    query = "with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) select i from n"
    for count, env, paged in ((50, {}, True), (3, {}, False), (50, {"PAGER": "cat"}, False)):
        seen = Terminal(shell, "sql", query % count, env={"PAGER": "sed 's/^/> /'", **env})
        assert seen.end() == 0
        assert ("> %d" % count in seen.text()) == paged, (count, env, seen.text())
    assert ">" not in shell.pawl("sql", query % 50, env={"PAGER": "sed 's/^/> /'"}).out
    for text in ("delete from pawl_log", "pragma user_version = 9", "attach 'x' as y", "select 1; select 2"):
        assert "invalid-request" in shell.pawl("sql", text, expect=1).err, text


def test_an_external_step_is_ended_by_the_words_that_show_tells(shell):
    """E10, E23: workflow_procedure_complete; with a failure its retries apply."""
    shell.write("letter.yaml", "name: letter\nsteps:\n  start: {name: sign, external: true, retry: {max: 2, backoff: [0s]}, done: true}\n")
    shell.pawl("define", "letter.yaml")
    id = shell.pawl("start", "letter").out.strip()
    told = "pawl complete %s.1 --result JSON" % id
    assert told in shell.pawl("show", id).out
    assert shell.json("fail", id + ".1", "--error", '"no ink"')["status"] == "failed"
    assert "lease-lost" in shell.pawl("complete", id + ".1", "--result", "1", expect=1).err
    shell.serve()
    shell.wait_for(lambda: "pawl complete %s.2 --result JSON" % id in shell.pawl("show", id).out)
    shell.pawl("complete", id + ".2", "--result", '{"by": "ann"}', "--key", "k")
    assert shell.pawl("complete", id + ".2", "--result", '{"by": "ann"}', "--key", "k").out == "done\n", "answered again"
    assert shell.json("show", id)["result"] == {"by": "ann"}



def create(address, declaration):
    call = urllib.request.Request(address + "/v1/instances", json.dumps({"declaration": declaration}).encode(),
                                  {"Content-Type": "application/json"})
    with urllib.request.urlopen(call) as answer:
        return json.load(answer)["instance_id"]


def test_an_end_that_declares_no_kind_is_shown_neutrally_and_the_wire_is_as_it_was(shell):
    _, address = shell.serve()
    declaration = {"states": ["tested", "rejected"], "initial_state": "tested", "terminal_states": ["rejected"],
                   "transitions": [{"from_state": "tested", "action": "reject", "to_state": "rejected"}]}
    batch = create(address, declaration)
    shell.pawl("fire", batch, "reject")
    wire = shell.json("show", batch)
    assert (wire.get("instance") or wire)["status"] == "completed"
    for words in (["show", batch], ["show", batch, "--timeline"], ["list"], ["graph", "--instance", batch]):
        shown = shell.pawl(*words).out
        assert "\u2714" not in shown and "completed" not in shown, (words, shown)
    assert "\u25c6" in shell.pawl("show", batch).out and "ended" in shell.pawl("list").out


def test_stats_counts_an_end_that_declares_no_kind_as_ended(shell):
    _, address = shell.serve()
    declaration = {"states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"],
                   "transitions": [{"from_state": "a", "action": "go", "to_state": "b"}]}
    for kinds in ({}, {}, {"terminal_kinds": {"b": "success"}}):
        shell.pawl("fire", create(address, {**declaration, **kinds}), "go")
    assert shell.json("stats")["by_status"] == {"completed": 3}, "the wire is as it was"
    lines = [line.split() for line in shell.pawl("stats").out.splitlines()]
    assert ["1", "completed"] in lines and ["2", "ended"] in lines, lines


def test_waits_that_are_not_listed_are_counted(shell):
    shell.pawl("define", shell.write("kid.yaml", "name: kid\nsteps: {a: {wait: {signal: go}, done: true}}\n"))
    shell.pawl("define", shell.write("wide.yaml", "name: wide\ndopar:\n" + "".join("  - {name: k%d, spawn: {definition: kid}}\n" % i for i in range(130))))
    one = shell.pawl("start", "wide").out.strip()
    shown = shell.pawl("show", one).out
    assert shown.count("has not ended") == 100 and "⋮ 30 more: pawl why %s" % one[:10] in shown, shown[-600:]
    assert shell.pawl("why", one).out.count("has not ended") == 130


class Page(html.parser.HTMLParser):
    """Every element is closed, none loads anything, and none is a script."""

    def __init__(self, text):
        super().__init__()
        self.open, self.words = [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag in ("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "table", "thead", "tbody", "tr", "th", "td", "pre", "p", "br", "span"), tag
        assert not {name for name, _ in attrs} & {"src", "href", "onclick", "onload"}, attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)


NASTY = '<script>alert("1")</script> & \u001b[31m\''
TURNED = "\u202egnp.exe\u2028 \u0085"


def evident(shell):
    shell.write("order.yaml", "name: order  # <b>\nstates: [new, paid]\ninitial_state: new\nterminal_states: [paid]\nterminal_kinds: {paid: success}\n"
                              "transitions: [{from_state: new, action: note, to_state: new}, {from_state: new, action: pay, to_state: paid}]\n")
    shell.pawl("define", "order.yaml")
    one = shell.json("start", "order", "--subject", "<A & B>" + TURNED, "--input", json.dumps({"x": NASTY}))["instance_id"]
    shell.pawl("fire", one, "note", "--actor", "ann", "--reason", "because <i>", "--payload", json.dumps(NASTY))
    shell.pawl("pause", one, "--reason", "audit")
    return one


def test_an_evidence_page_has_every_record_with_its_hash_and_what_verify_says(shell):
    one = evident(shell)
    page = shell.pawl("show", one, "--evidence").out
    entries = shell.json("history", one)["entries"]
    exported = [json.loads(line).get("record") for line in shell.pawl("export", one).out.strip().split("\n")]
    hashes = [record["hash"] for record in exported if record]
    assert len(hashes) == 3 and all(page.count(h) == 1 for h in hashes) and entries[0]["hash"] in hashes, page
    assert page.splitlines()[4].startswith("  VALID: 1 entry, with all records") and "result            VALID" in page and "terminal_kinds: {paid: success}" in page, page
    assert re.search(r"store's root +[0-9a-f]{64}", page) and "all other times on this page are UTC" in page, page
    commitments = [record[name]["commitment"] for record in exported if record for name in ("actor", "reason", "payload") if name in record]
    assert commitments and all(c in page for c in commitments), page
    assert "because <i>" in page and "pause\n" in page and "printed by" in page and "pawl " in page
    assert not re.search("[\x1b\u0085\u2028\u202e]", page), "no control character reaches a terminal"
    assert r"\xe2\x80\xaegnp.exe\xe2\x80\xa8 \xc2\x85" in page, page
    assert re.search(r"(?m)^  1  20\S+Z  note +ann +because <i>$", page) and not re.search(r"(?m) $", page), page


def test_what_turns_text_around_reaches_no_terminal(shell):
    one = evident(shell)
    for words in (["show", one], ["history", one], ["list"]):
        assert not re.search("[\x1b\u0085\u2028\u202e]", shell.pawl(*words).out), words


def test_an_evidence_page_has_every_definition_that_an_instance_went_by_and_where_it_stands(shell):
    flow = "name: f\nsteps: {w: {approval: {by: [ann, bob], count: 2}, next: %s}, %s: {tool: set, args: {}, done: true}}\n"
    shell.pawl("define", shell.write("f.yaml", flow % ("old", "old")))
    one = shell.pawl("start", "f").out.strip()
    shell.pawl("define", shell.write("f.yaml", flow % ("fresh", "fresh")))
    shell.pawl("amend", one, "f", "--actor", "op")
    shell.pawl("approve", one + ".1", "--actor", "ann")
    page = shell.pawl("show", one, "--evidence").out
    assert "f@1, from the beginning" in page and "f@2, from entry 3 on (amend)" in page, page
    assert "next: old" in page and "next: fresh" in page and "definition        f@2" in page, page
    assert re.search(r'(?m)^  approval  w     +\{"by":\["ann","bob"\],"count":2\}  \["ann"\]$', page), page
    assert re.search(r"(?m)^  3  20\S+Z  amend +op$", page), page
    sources = [json.loads(line)["definition"] for line in shell.pawl("export", one).out.splitlines() if "definition" in json.loads(line)]
    assert len(sources) == 2 and all(s["sha256"] in page and s["compiled_sha256"] in page for s in sources), page


def test_an_evidence_page_in_html_is_one_file_that_escapes_everything(shell):
    one = evident(shell)
    text = shell.pawl("show", one, "--evidence", "--format", "html").out
    page = Page(text)
    words = "".join(page.words)
    assert "<script" not in text and "<i>" not in text and "<b>" not in text and "http" not in re.sub("http-equiv", "", text), text
    assert "because <i>" in words and "<A & B>" in words and "VALID" in words and "name: order  # <b>" in words, words
    assert all(entry["hash"] in words for entry in shell.json("history", one)["entries"])


def test_an_evidence_page_of_a_tampered_instance_says_so_and_fails(shell):
    one = evident(shell)
    with sqlite3.connect(shell.folder / "pawl.db") as db:
        db.execute("UPDATE pawl_value SET bytes = CAST('\"other\"' AS BLOB) WHERE id = (SELECT payload FROM pawl_log WHERE payload IS NOT NULL)")
    page = shell.pawl("show", one, "--evidence", expect=1).out
    assert page.splitlines()[4].startswith("  NOT VALID: ") and "what is wrong" in page, page


def test_an_auditors_token_that_may_read_prints_evidence_over_http(shell):
    one = evident(shell)
    make = lambda scope: shell.json("token", "create", "--scope", scope)["token"]  # noqa: E731
    auditor, limited, stranger, writer = (make(scope) for scope in ("read", "read:order", "read:other", "write,work,define,admin"))
    _, address = shell.serve("--require-token")
    ask = lambda token, expect=0: shell.pawl("--store", address, "show", one, "--evidence", env={"PAWL_TOKEN": token}, expect=expect)  # noqa: E731
    page = ask(auditor).out
    assert "  VALID: 1 entry" in page and re.search(r"store's root +[0-9a-f]{64}\n", page), page
    assert re.search(r"with the token +%s\n" % auditor.split(".")[0], page) and auditor.split(".")[1] not in page, page
    page = ask(limited).out
    assert "  VALID: 1 entry" in page and "not for this token, which is limited" in page and len(re.findall(r"(?m)^  hash ", page)) == 3, page
    assert "forbidden" in ask(stranger, 1).err and "forbidden" in ask(writer, 1).err


def test_evidence_is_a_page_and_not_json(shell):
    one = evident(shell)
    shell.pawl("show", one, "--evidence", "--json", expect=2)
    shell.pawl("show", one, "--evidence", "--format", "pdf", expect=2)
    shell.pawl("show", one, "--format", "html", expect=2)
    shell.pawl("show", "0" * 26, "--evidence", expect=1)


main(globals())
