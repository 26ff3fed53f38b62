#!/usr/bin/env python3
"""run_reference.py - docs/reference/ and man/ are what the program says of itself."""
import copy
import functools
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from sentences import BUILD, ROOT, Skip, main

PAWL = os.environ.get("PAWL", str(BUILD / "pawl"))


def load():
    loader = importlib.machinery.SourceFileLoader("gen_reference", str(ROOT / "tools/gen-reference"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


TOOL = load()
MADE = TOOL.pages(os.path.abspath(PAWL))


def test_every_page_is_what_the_program_says():
    wrong, left = TOOL.stale(MADE)
    assert not wrong and not left, "run tools/gen-reference: stale are %s" % ", ".join(wrong + left)


def test_every_operation_and_every_verb_has_its_place():
    pages = "".join(text for path, text in MADE.items() if path.endswith(".md"))
    rows = [name for name, _, _, _ in TOOL.openapi.rows(TOOL.read_document())]
    assert len(rows) > 40 and all("\n## %s\n" % name in pages for name in rows)
    verbs = [line.split()[0] for line in TOOL.ask_help(PAWL).split("\nEverywhere")[0].split("\n") if line.startswith("  ")][1:]
    assert len(verbs) > 20 and len(verbs) == len(set(verbs)), "a verb is there twice: %s" % sorted(verbs)
    for verb in verbs:
        assert "man/man1/pawl-%s.1" % verb in MADE and "\n### %s\n" % verb in pages, verb


def test_a_changed_page_would_be_seen():
    other = {**MADE, "man/man1/pawl.1": MADE["man/man1/pawl.1"] + "more"}
    assert TOOL.stale(other)[0] == ["man/man1/pawl.1"]
    assert TOOL.stale({k: v for k, v in MADE.items() if k != "man/man1/pawl.1"})[1] == ["man/man1/pawl.1"]


# ---- The definition language ----

LANGUAGE = TOOL.load_tool("gen-definitions")
PAGE = MADE["docs/definitions.md"]


def is_defect(call):
    try:
        call()
    except LANGUAGE.Defect as defect:
        return str(defect)
    return None


def test_every_key_of_the_language_is_in_an_example_of_the_page():
    """The examples are run by tests/docs/run_docs.py."""
    examples = "\n".join(re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S))
    words = {row[0] for _, rows in LANGUAGE.read_tables(ROOT).values() for row in rows}
    missing = sorted(word for word in words if not re.search(r"(?<![\w-])%s:" % word, examples))
    assert len(words) > 80 and not missing, "docs/definitions.md.in has no example with %s" % missing


def test_every_key_of_the_language_has_its_words_and_its_place():
    """Where one lacks them the page is not made, so that nothing here could run."""
    template = (ROOT / LANGUAGE.PAGE).read_text()
    assert "spawn_keys" in is_defect(lambda: LANGUAGE.page(ROOT, template.replace("@keys spawn_keys@\n", "")))
    assert "2 times" in is_defect(lambda: LANGUAGE.page(ROOT, template + "\n@keys spawn_keys@\n"))
    assert "no table" in is_defect(lambda: LANGUAGE.page(ROOT, template + "\n@keys no_such_keys@\n"))
    assert "LIMIT_NONE" in is_defect(lambda: LANGUAGE.page(ROOT, template + "\n@LIMIT_NONE@\n"))
    assert "step_kind_" not in LANGUAGE.kinds_text(ROOT) and "| `approval` | gate |" in LANGUAGE.kinds_text(ROOT)
    assert "'word'" in is_defect(lambda: LANGUAGE.table_text(ROOT, "t", ("Keys", "t"), [("word", "TEXT", "", "")]))


def test_every_step_kind_and_every_tool_has_a_section():
    kinds = re.findall(r"X\((\w+)\)", re.search(r"#define STEP_KINDS\(X\)((?:.*\\\n)*.*)", (ROOT / "src/flow/kinds.h").read_text()).group(1))
    tools = re.findall(r'\{ \.name = "(\w+)"', (ROOT / "src/tool/builtin.c").read_text())
    assert len(kinds) > 6 and len(tools) > 4
    headings = "\n".join(re.findall(r"^### (.*)$", PAGE, re.M)).lower()
    missing = [word for word in set(kinds + tools) - {"gone"} if word not in headings]
    assert not missing, "docs/definitions.md.in has no section about %s" % missing


def test_every_section_that_describes_keys_has_an_example():
    parts = re.split(r"^## ", PAGE, flags=re.M)[1:]
    bare = [part.split("\n")[0] for part in parts if re.search(r"^\| (key|argument) \| takes", part, re.M) and "```yaml" not in part]
    assert not [heading for heading in bare if heading not in ("Flows",)], bare


def test_the_facts_of_the_language_are_those_of_the_code():
    code = (ROOT / "src/flow/compile_retry.c").read_text()
    assert "{ 30000, 120000, 300000 }" in code and "| [30s, 2m, 5m] |" in PAGE
    assert LANGUAGE.constant(ROOT, "LIMIT_STEPS") == "10,000" and LANGUAGE.constant(ROOT, "LIMIT_TEXT") == "1 MiB"
    assert LANGUAGE.constant(ROOT, "LEASE_DEFAULT_MS") == "2m" and LANGUAGE.constant(ROOT, "EXPR_OPERATION_MAX") == "50,000"
    assert not re.search(r"@\w+@", PAGE), re.findall(r"@\w+@", PAGE)


def graph(step, **beside):
    return {"name": "f", "steps": {"a": step, "b": {"tool": "set", "done": True}}, **beside}


def retried(retry):
    return graph({"tool": "set", "next": "b", "retry": retry})


MACHINE = {"name": "m", "states": ["a", "b"], "initial_state": "a", "terminal_states": ["b"], "terminal_kinds": {"b": "success"},
           "transitions": [{"from_state": "a", "action": "go", "to_state": "b", "requires_reason": True, "starts": {"definition": "x", "input": {}}},
                           {"from_state": "a", "action": "on", "to_state": "a"}],
           "deadlines": [{"state": "a", "after": "1s", "action": "on"}]}
# A table of keys -> a definition that has them, and where.
PLACES = {
    "machine_keys": (MACHINE, []), "transition_keys": (MACHINE, ["transitions", 0]), "starts_keys": (MACHINE, ["transitions", 0, "starts"]),
    "deadline_keys": (MACHINE, ["deadlines", 0]),
    "branch_keys": (graph({"tool": "set", "branch": [{"if": "true", "then": "b"}]}), ["steps", "a", "branch", 0]),
    "arm_keys": (graph({"select": [{"timer": "1s", "then": "b"}]}), ["steps", "a", "select", 0]),
    "tree_arm_keys": ({"name": "t", "do": [{"select": [{"timer": "1s", "do": [{"tool": "set"}]}]}]}, ["do", 0, "select", 0]),
    "try_keys": ({"name": "t", "do": [{"try": [{"tool": "set"}], "rescue": [], "finally": []}]}, ["do", 0]),
    "spawn_keys": (graph({"spawn": {"definition": "x", "input": {}, "on_parent_end": "cancel"}, "next": "b"}), ["steps", "a", "spawn"]),
    "retry_keys": (retried({"max": 2, "backoff": ["1s"]}), ["steps", "a", "retry"]),
    "backoff_keys": (retried({"max": 2, "backoff": {"initial": "1s", "factor": 2, "max": "1m", "jitter": 0}}), ["steps", "a", "retry", "backoff"]),
    "approval_keys": (graph({"approval": {"by": ["ann"], "count": 1}, "next": "b"}), ["steps", "a", "approval"]),
    "cancel_keys": (graph({"tool": "set", "next": "b"}, cancel={"not_from": ["a"]}), ["cancel"]),
    "signal_keys": (graph({"tool": "set", "next": "b"}, signals={"x": {"buffer": True}}), ["signals", "x"]),
    "sleep_arguments": (graph({"tool": "sleep", "args": {"for": "1s"}, "next": "b"}), ["steps", "a", "args"]),
}
NEEDED_BY_ANOTHER = {"terminal_states"}  # terminal_kinds names them


def is_valid(definition):
    done = subprocess.run([PAWL, "--store", "memory:", "check", "/dev/stdin"], input=json.dumps(definition).encode(), capture_output=True, timeout=60)
    return done.returncode == 0


def test_what_the_page_calls_required_is_required_and_every_other_key_may_be_left_out():
    for table, (definition, path) in PLACES.items():
        assert is_valid(definition), table
        for word, _, _, preset in LANGUAGE.read_tables(ROOT)[table][1]:
            without = copy.deepcopy(definition)
            place = functools.reduce(lambda node, key: node[key], path, without)
            if place.pop(word, None) is not None and word not in NEEDED_BY_ANOTHER:
                assert is_valid(without) != preset.startswith("required"), "%s: '%s' is not %s" % (table, word, preset or "free to be left out")


# ---- pawl.yaml(5) and the environment ----

# Which functions read the keys of which object.
READERS = {"src/api/config.c": {"config_read": "", "read_tls": "tls.", "read_limits": "limits."},
           "src/tool/rules.c": {"read_exec": "tools.exec.", "read_http": "tools.http.", "read_mcp": "tools.mcp.", "read_member": "tools.TOOL."},
           "src/tool/remote/remote_rules.c": {"read_member": "tools.mcp.servers.NAME."}}
SECTIONS = {"tls", "limits", "tools"}  # objects: their keys are rows of their own
TOOLS = {"tools.exec", "tools.http"}   # rows of tools that are more than their keys


def keys_of_the_code():
    for path, readers in READERS.items():
        bodies = re.split(r"^(?:static )?pawl_status (\w+)\(", (ROOT / path).read_text(), flags=re.M)
        for name, body in zip(bodies[1::2], bodies[2::2]):
            for key in re.findall(r'\{ "(\w+)", read_|str_is\(node->key, "(\w+)"\)', body) if name in readers else []:
                yield readers[name] + "".join(key)


def rows_of_the_page():
    """key -> (value, default), of docs/config.md."""
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \| (.*?) \| .* \|$", (ROOT / "docs/config.md").read_text(), re.M)
    return {key: (value, default.strip("`")) for key, value, default in rows}


def man_text(page):
    """As a reader sees it, on one line."""
    return re.sub(r"\s+", " ", re.sub(r"^\.\w+ ?|\\f.|\\&", "", MADE[page].replace("\\-", "-"), flags=re.M))


def test_pawl_yaml_has_a_man_page_with_every_key_and_its_default():
    rows, known = rows_of_the_page(), set(keys_of_the_code()) - SECTIONS | TOOLS
    assert len(known) > 15 and set(rows) == known, "docs/config.md: %s" % sorted(set(rows) ^ known)
    text = man_text("man/man5/pawl.yaml.5")
    for key, (value, default) in rows.items():
        assert "%s (%s; default: %s)" % (key, value.replace("`", ""), default) in text, key


def test_the_defaults_of_pawl_yaml_are_those_of_the_code():
    code = "".join((ROOT / path).read_text() for path in ("src/base/limits.h", "src/surface/http/http.h", "src/surface/cli/host.h", "src/tool/rules.c"))

    def number(name):
        value = re.search(r"#define %s +([^/\n]+)" % name, code).group(1)
        return eval(re.sub(r"\(uint64_t\)|(?<=\d)u\b", "", value))

    rows = rows_of_the_page()
    for key, name in (("limits.workers", "HOST_WORKERS"), ("limits.body_memory", "HTTP_BODY_MEMORY"), ("limits.max_entries", "LIMIT_ENTRIES"),
                      ("limits.max_live_steps", "LIMIT_LIVE_STEPS"), ("tools.http.size", "LIMIT_TEXT")):
        assert rows[key][1] == str(number(name)), (key, number(name))
    assert rows["tools.http.timeout"][1] == "%ds" % (number("HTTP_TIMEOUT_MS") // 1000)
    assert "(%s;" % rows["listen"][1] in TOOL.ask_help(PAWL, "serve") and "default %s," % rows["store"][1] in TOOL.ask_help(PAWL)


def test_the_example_of_the_page_is_a_valid_pawl_yaml():
    example = re.search(r"(?:^    .*\n)+", (ROOT / "docs/config.md").read_text(), re.M).group()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "pawl.yaml")
        path.write_text(re.sub(r"^    ", "", example, flags=re.M))
        done = subprocess.run([PAWL, "check", str(path)], capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith(b": valid\n"), done
    assert all(key.split(".")[-1] + ":" in example for key in set(keys_of_the_code()) - {"tools.TOOL.answers"}), example


def test_every_variable_that_the_program_reads_is_in_its_man_page():
    """But for those of test builds."""
    code = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.c")))
    names = set(re.findall(r'(?:getenv|number_of)\("(\w+)"\)', code)) - {"PAWL_CRASH_AT", "PAWL_BUG"}
    assert {"PAWL_STORE", "PAWL_TOKEN"} <= names
    for page in ("man/man1/pawl.1", "docs/reference/cli.md"):
        told = MADE[page].replace("\\-", "-").split("ENVIRONMENT" if page.endswith("1") else "## Environment")[1]
        missing = [name for name in names if not re.search(r"\b%s\b" % name, told)]
        assert not missing, "%s does not tell %s" % (page, missing)


def test_the_man_pages_are_clean_roff():
    if not shutil.which("groff"):
        raise Skip("there is no groff here")
    for path, text in MADE.items():
        if path.startswith("man/"):
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text.encode(), capture_output=True, timeout=60)
            assert done.returncode == 0 and not done.stderr, "%s: %s" % (path, done.stderr.decode())


main(globals())
