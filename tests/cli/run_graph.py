"""Pictures of definitions and of what instances did: `pawl graph`."""
import json
import re
import xml.etree.ElementTree as xml

from harness import EXAMPLES, main

CLAIM = """name: claim
states: [draft, 'a<b & "c"', review, paid, gone]
initial_state: draft
terminal_states: [paid, gone]
terminal_kinds: {paid: success, gone: cancel}
transitions:
  - {from_state: draft, action: edit, to_state: draft}
  - {from_state: draft, action: submit, to_state: review}
  - {from_state: review, action: back, to_state: draft, requires_reason: true}
  - {from_state: review, action: ask, to_state: 'a<b & "c"'}
  - {from_state: 'a<b & "c"', action: answer, to_state: review}
  - {from_state: review, action: pay, to_state: paid, guard: four-eyes}
  - {from_state: review, action: drop, to_state: gone}
  - {from_state: draft, action: drop, to_state: gone}
  - {from_state: 'a<b & "c"', action: drop, to_state: gone}
"""
FAN = """name: fan
steps:
  start: {name: split, tool: log, args: {message: x}, parallel: [a, b]}
  a: {tool: set, args: {x: 1}, join: meet}
  b: {tool: set, args: {x: 1}, join: meet}
  meet: {tool: set, args: {}, branch: [{if: "result == null", then: no_}, {if: "result != null", then: yes_}]}
  yes_: {tool: set, args: {}, done: true}
  no_: {tool: null, done: true}
"""
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return ["".join(t.itertext()) for t in xml.fromstring(svg).iter(SVG + "text")]


def boxes(svg):
    for rect in xml.fromstring(svg).iter(SVG + "rect"):
        if rect.get("class") == "box":
            x, y, w, h = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
            yield x, y, x + w, y + h


def test_a_machine_is_drawn_with_every_state_and_transition_in_every_format(shell):
    shell.write("claim.yaml", CLAIM)
    for form in ("text", "mermaid", "dot"):
        found = shell.pawl("graph", "claim.yaml", "--format", form).out
        for word in ("draft", "review", "paid", "gone", "edit", "submit", "back", "ask", "answer",
                     "guard four-eyes", "reason"):
            assert word in found, (form, word, found)
    drawn = shell.json("graph", "claim.yaml")
    assert len([e for e in drawn["edges"] if e["label"]]) == 9, drawn
    assert shell.pawl("graph", "claim.yaml").out == shell.pawl("graph", "claim.yaml", "--format", "text").out


def test_a_definition_is_drawn_from_standard_input(shell):
    shell.write("fan.yaml", FAN)
    drawn = shell.pawl("graph", "-", input=FAN.encode())
    assert drawn.out == shell.pawl("graph", "fan.yaml").out, drawn


def test_a_file_without_a_name_is_drawn_under_the_files_own(shell):
    shell.write("fan-in.yaml", FAN.replace("name: fan\n", ""))
    assert shell.pawl("graph", "fan-in.yaml").out.startswith("fan-in"), shell.pawl("graph", "fan-in.yaml").out
    shell.write("my file.yaml", FAN.replace("name: fan\n", ""))
    assert shell.pawl("graph", "my file.yaml").out.startswith("my-file")
    assert "'name: ...'" in shell.pawl("define", "fan-in.yaml", expect=1).err


def test_the_picture_is_well_formed_and_no_two_boxes_overlap(shell):
    shell.write("claim.yaml", CLAIM)
    for path in ["claim.yaml", *map(str, sorted(EXAMPLES.glob("*.yaml")))]:
        svg = shell.pawl("graph", path, "--format", "svg").out
        found = sorted(boxes(svg))
        for i, a in enumerate(found):
            for b in found[i + 1:]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (path, a, b)
        root = xml.fromstring(svg)
        width, height = float(root.get("width")), float(root.get("height"))
        assert all(0 <= x and 0 <= y and r <= width and d <= height for x, y, r, d in found), path
    assert 'a<b & "c"' in texts(shell.pawl("graph", "claim.yaml", "--format", "svg").out)


def test_an_instance_shows_its_way_and_where_it_stands(shell):
    shell.write("claim.yaml", CLAIM)
    shell.pawl("define", "claim.yaml")
    shell.pawl("start", "claim")
    for words in (["edit"], ["submit"], ["back", "--reason", "x"], ["submit"]):
        shell.pawl("fire", "@last", *words)
    found = shell.pawl("graph", "--instance", "@last").out
    assert "○ draft ×3\n" in found and "● review ×2\n" in found and "· paid" in found, found
    assert "━ submit → review  ×2" in found and "━ back" in found and "─ pay" in found, found
    drawn = shell.json("graph", "--instance", "@last")
    assert [n["name"] for n in drawn["nodes"] if n["mark"] == "present"] == ["review"], drawn
    shell.pawl("fire", "@last", "pay", "--guard")
    drawn = shell.json("graph", "--instance", "@last")
    assert {n["name"]: n["mark"] for n in drawn["nodes"] if n["mark"]} == \
        {"draft": "passed", "review": "passed", "paid": "done"}, drawn


def test_a_graph_shows_which_branch_was_taken_and_that_all_arms_joined(shell):
    shell.write("fan.yaml", FAN)
    shell.pawl("run", "fan.yaml")
    drawn = shell.json("graph", "--instance", "@last")
    name = {n["id"]: n["name"] or n["shape"] for n in drawn["nodes"]}
    taken = {(name[e["from"]], name[e["to"]]) for e in drawn["edges"] if e["taken"]}
    assert taken == {("start", "split"), ("split", "a"), ("split", "b"), ("a", "meet"), ("b", "meet"),
                     ("meet", "yes_"), ("yes_", "end")}, taken


def drawn_ways(shell):
    """Of the last instance: {(from, to): (label, how often it was taken)}."""
    drawn = shell.json("graph", "--instance", "@last")
    name = {n["id"]: n["name"] or n["shape"] for n in drawn["nodes"]}
    return {(name[e["from"]], name[e["to"]], e["label"]): e["taken"] for e in drawn["edges"]}


def test_a_failure_takes_the_way_of_errors_also_where_a_branch_leads_to_the_same_step(shell):
    shell.write("pay.yaml", """name: pay
steps:
  charge:
    tool: fail
    retry: {max: 1}
    branch: [{if: "result.paid", then: ship}, {if: "true", then: refuse}]
    on_error: [{if: 'error == "never"', then: ship}, {if: "true", then: refuse}]
  ship: {tool: log, args: {message: shipped}, done: true}
  refuse: {tool: log, args: {message: refused}, done: true}
""")
    shell.pawl("run", "pay.yaml")
    ways = drawn_ways(shell)
    assert ways[("charge", "refuse", "on any other error")] == 1 and ways[("charge", "refuse", "else")] == 0, ways
    assert ways[("charge", "ship", 'on error, error == "never"')] == 0, ways


def test_items_of_a_map_and_compensations_hang_below_their_step(shell):
    shell.write("saga.yaml", """name: saga
steps:
  book: {tool: exec, args: {argv: ["true"]}, compensate: {tool: exec, args: {argv: ["true"]}}, next: each}
  each:
    map: {over: "{{input.list}}", max_parallel: 1, step: {tool: log, args: {message: "{{item}}"}}}
    next: room
  room: {tool: exec, args: {argv: ["true"]}, compensate: {tool: exec, args: {argv: ["true"]}}, next: last}
  last: {tool: fail, retry: {max: 1}, done: true}
""")
    shell.pawl("run", "saga.yaml", "--input", '{"list": [1, 2, 3]}', expect=1)
    ways = drawn_ways(shell)
    item = next(key for key in ways if key[2] == "each item")
    assert item[0] == "each" and ways[item] == 3, ways
    assert ways[("book", "book.compensate", "undo")] == 1 and ways[("room", "room.compensate", "undo")] == 1, ways
    assert len(ways) == 8, ("no other way was taken", ways)


def test_what_is_long_is_cut_in_the_picture_and_a_flow_without_end_has_none(shell):
    long = "wait " + "ä" * 60
    shell.write("round.yaml", """name: round
steps:
  %s: {tool: log, args: {message: x}, branch: [{if: "result ~= '%s'", then: rest}]}
  rest: {wait: {timer: 1h}, next: "%s"}
""" % (long.replace(" ", "_"), "y" * 300, long.replace(" ", "_")))
    drawn = json.loads(shell.pawl("graph", "round.yaml", "--format", "layout").out)
    assert drawn["width"] < 900, drawn["width"]
    words = [e["words"] for e in drawn["edges"] if "words" in e]
    assert len(words) == 1 and words[0].endswith("y…") and len(words[0]) == 41, words
    assert not [n for n in drawn["nodes"] if n["shape"] == "end"], drawn["nodes"]
    assert "y" * 300 in shell.pawl("graph", "round.yaml").out
    shell.pawl("graph", "round.yaml", "--format", "svg")


def test_a_tree_is_drawn_as_a_tree_with_what_came_of_each_step(shell):
    shell.pawl("run", str(EXAMPLES / "create-deployable.yaml"), "--input", '{"name": "shop"}')
    found = shell.pawl("graph", "--instance", "@last").out.splitlines()[1:]
    assert found == ["do", "├─ ✔ repository  set", "├─ try", "│  ├─ dopar", "│  │  ├─ ✔ build  set",
                     "│  │  └─ ✔ project  set", "│  └─ ✘ smoke-test  fail", "├─ rescue",
                     "│  └─ ✔ roll-back  log", "└─ finally", "   └─ ✔ tidy-up  log"], found


def amended(shell, first, second):
    """A flow under way that was moved to its second version."""
    shell.pawl("define", shell.write("one.yaml", "name: f\n" + first))
    one = shell.pawl("start", "f").out.strip()
    child, _ = shell.serve()
    shell.wait_for(lambda: shell.json("show", one)["status"] == "suspended")
    shell.stop(child)
    shell.pawl("define", shell.write("two.yaml", "name: f\n" + second))
    shell.pawl("amend", one, "f")
    return one


def test_an_amended_graph_is_drawn_by_the_definition_in_force_and_with_the_way_it_took(shell):
    one = amended(shell, "steps: {start: {name: old, tool: set, args: {x: 1}, next: kept}, kept: {tool: set, args: {x: 2}, next: w},"
                         " w: {wait: {signal: go}, next: late}, late: {tool: set, args: {}, done: true}}\n",
                  "steps: {start: {name: fresh, tool: set, args: {}, next: between}, between: {tool: set, args: {}, next: w},"
                  " kept: {tool: set, args: {}, next: w}, w: {wait: {signal: go}, next: more}, more: {tool: log, args: {message: m}, done: true}}\n")
    drawn = shell.json("graph", "--instance", one)
    name = {n["id"]: n["name"] or n["shape"] for n in drawn["nodes"]}
    assert sorted(name.values()) == sorted(["start", "end", "old", "kept", "w", "fresh", "between", "more"]), name
    edges = {(name[e["from"]], name[e["to"]]): (e["taken"], e["note"]) for e in drawn["edges"]}
    assert edges["w", "more"] == (0, "") and ("old", "end") not in edges and ("w", "late") not in edges, edges
    assert edges["start", "old"] == edges["old", "kept"] == (1, "before the amend") and edges["kept", "w"][0] == 1, edges
    assert [n["note"] for n in drawn["nodes"] if n["name"] == "old"] == ["set, removed from the definition"], drawn["nodes"]
    for words in (["show", one], ["graph", "--instance", one], ["graph", "--instance", one, "--format", "mermaid"],
                  ["graph", "--instance", one, "--format", "svg"], ["graph", "--instance", one, "--format", "dot"]):
        found = shell.pawl(*words).out
        assert "between" in found and "more" in found and "late" not in found and "old" in found, (words, found)
    assert "✔ old" in shell.pawl("show", one).out and "· between" in shell.pawl("show", one).out


def test_an_amended_tree_is_drawn_by_the_definition_in_force(shell):
    one = amended(shell, "do: [{name: old, tool: set, args: {}}, {name: w, wait: {signal: go}}, {name: late, tool: set, args: {}}]\n",
                  "do: [{name: w, wait: {signal: go}}, {name: more, tool: set, args: {}}]\n")
    found = shell.pawl("graph", "--instance", one).out.splitlines()[1:]
    assert found == ["do", "├─ ● w  signal go", "└─ · more  set", "✔ old  set, removed from the definition"], found
    shown = shell.pawl("show", one).out
    assert "more" in shown and "late" not in shown and "✔ old" in shown, shown


def test_a_server_draws_the_same(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    shell.pawl("start", "order")
    here = [shell.pawl("graph", "order@1", "--format", f).out for f in ("text", "svg")]
    here.append(shell.pawl("graph", "--instance", "@last").out)
    child, address = shell.serve()
    there = [shell.pawl("--store", address, "graph", "order@1", "--format", f).out for f in ("text", "svg")]
    there.append(shell.pawl("--store", address, "graph", "--instance", "@last").out)
    shell.stop(child)
    assert here == there


def test_what_cannot_be_drawn_is_said(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    assert "not-known" in shell.pawl("graph", "nobody", expect=1).err
    assert "not-known" in shell.pawl("graph", "order@7", expect=1).err
    found = shell.pawl("graph", "order", "--format", "png", expect=1).err
    assert "expected text, mermaid, dot, svg, json or layout, found 'png'" in found, found
    shell.pawl("graph", expect=2)
    shell.pawl("graph", "missing.yaml", expect=2)
    shell.write("broken.yaml", "name: x\nstates: 3\n")
    assert "broken.yaml" in shell.pawl("graph", "broken.yaml", expect=1).err


main(globals())
