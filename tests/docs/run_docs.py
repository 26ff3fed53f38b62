"""The pages of docs/: what they tell people to type is typed, what they promise is proved by a test that exists, and
no link leads nowhere.

A page's blocks are one session, in a folder of its own:

    ```sh       typed into a shell; its status is that of its last command, 0 unless it says `# exit status N`
    ```text     what the block before it printed, lines in this order; `…` stands for anything
    ```FORMAT   (yaml, json, python, ...) a file, named `so.yaml` in the paragraph before it, which ends in a colon
"""
import os
import pathlib
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402

ROOT = harness.ROOT
PAGES = [ROOT / "docs/tutorial.md", ROOT / "docs/definitions.md", ROOT / "docs/mcp.md"] + [ROOT / "docs/howto" / name for name in
                                       ("workers.md", "safe-calls.md", "time.md", "approvals.md", "events.md", "tokens.md", "backup.md",
                                        "upgrade.md", "metrics.md", "clients.md", "proxy.md", "handlers.md",
                                        "cancel.md", "webhooks.md", "traces.md", "patterns.md", "retention.md", "sizing.md", "cron.md", "stuck.md")]
BLOCK = re.compile(r"(?:`([\w/-]+\.\w+)`(?:(?!\n\n)[^`])*:\n\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
MARK = "<<<a block has ended: %d>>>"
PATIENCE_S = 60


class Session:
    """One shell, a block at a time."""

    def __init__(self, shell):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        (shell.folder / "bin").mkdir()
        (shell.folder / "bin/pawl").symlink_to(os.path.abspath(harness.PAWL))
        (shell.folder / "work").mkdir()
        environment = shell.environment({"PATH": "%s:%s" % (shell.folder / "bin", os.environ["PATH"]), "PAWL_SOURCE": str(ROOT), "NO_COLOR": "1"})
        self.folder = shell.folder / "work"
        self.shell = subprocess.Popen(["bash"], cwd=self.folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, start_new_session=True)
        self.read, self.ready = b"", selectors.DefaultSelector()
        self.ready.register(self.shell.stdout, selectors.EVENT_READ)

    def type(self, text):
        """(status, what it printed)"""
        self.shell.stdin.write((text.replace("7295", self.port) + "\nprintf '\\n" + MARK + "\\n' $?\n").encode())
        self.shell.stdin.flush()
        out = ""
        while True:
            line = self.line()
            assert line is not None, "no end after %d s of\n%s\n%s" % (PATIENCE_S, text, out)
            assert line, "the shell has ended after:\n" + out
            found = re.fullmatch(r"<<<a block has ended: (\d+)>>>\n", line)
            if found:
                return int(found.group(1)), out.replace(self.port, "7295")
            out += line

    def line(self):
        """The next one; None: it does not come."""
        while b"\n" not in self.read:
            if not self.ready.select(PATIENCE_S):
                return None
            piece = os.read(self.shell.stdout.fileno(), 65536)
            if not piece:
                return ""
            self.read += piece
        line, _, self.read = self.read.partition(b"\n")
        return line.decode() + "\n"

    def end(self):
        """By its group: servers and workers that a page began end with it."""
        os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.communicate()


def expect_text(page, wanted, found):
    rest = found.split("\n")
    for line in wanted.rstrip("\n").split("\n"):
        pattern = ".*".join(re.escape(part) for part in line.rstrip().split("…"))
        while rest and not re.fullmatch(pattern, rest[0].rstrip()):
            rest.pop(0)
        assert rest, "%s promises the line\n  %s\nwhich is not (there) in\n%s" % (page, line, found)
        rest.pop(0)


def play(shell, page):
    session, out, count = Session(shell), "", 0
    try:
        for name, kind, text in BLOCK.findall(page.read_text()):
            if kind == "sh":
                wanted = re.search(r"# exit status (\d+)", text)
                status, out = session.type(text)
                assert status == int(wanted.group(1) if wanted else 0), "%s: exit status %d of\n%s%s" % (page.name, status, text, out)
                assert "Sanitizer" not in out, out
            elif kind == "text":
                expect_text(page.name, text, out)
            else:
                assert name, "%s: a block of %s that is no file:\n%s" % (page.name, kind, text)
                (session.folder / name).write_text(text.replace("7295", session.port))
            count += 1
    finally:
        session.end()
    assert count > 2, "%s: there is nothing to type" % page.name


def page_test(page):
    def test(shell):
        for program in ("bash", "curl", "openssl", "sqlite3"):
            if not shutil.which(program):
                raise harness.Skip("there is no %s here" % program)
        play(shell, page)
    return test


for one in PAGES:
    globals()["test_what_%s_says_to_type_does_what_it_says" % one.stem.replace("-", "_")] = page_test(one)


def test_what_the_readme_lets_people_taste_tastes_so(shell):
    """Its lines of pawl, as they stand; the store is its own."""
    taste = re.search(r"^## A 20-second taste\n(.*?)^`pawl demo`", (ROOT / "README.md").read_text(), re.M | re.S).group(1)
    lines = [line.strip() for line in taste.splitlines() if line.startswith("    pawl ")]
    assert len(lines) >= 6, lines
    session = Session(shell)
    try:
        session.type("cd $PAWL_SOURCE; export PAWL_STORE=sqlite:%s" % (shell.folder / "taste.db"))
        status, out = session.type("\n".join(lines))
    finally:
        session.end()
    assert status == 0 and "warning" not in out, out
    expect_text("README.md", "…no 'ship' from 'new'; legal now: pay, drop\npaid…\n…completed\n✔ valid…\n", out)


def test_what_the_readme_starts_first_ends_in_a_link_to_four_examples(shell):
    """script/server with a new store, in a clean folder; it builds nothing, because the program is there."""
    readme = (ROOT / "README.md").read_text()
    assert "    ./script/server " in readme and "pawl list " in readme
    environment = shell.environment({"PAWL": os.path.abspath(harness.PAWL), "PAWL_STORE": "sqlite:%s" % (shell.folder / "first.db")})
    child = subprocess.Popen([str(ROOT / "script/server"), "--listen", "127.0.0.1:0"], cwd=shell.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    shell.children.append(child)
    lines = [child.stdout.readline().decode() for _ in range(2)]
    link = re.fullmatch(r"open (http://127\.0\.0\.1:\d+)/ in a browser\n", lines[1])
    assert link, lines
    with urllib.request.urlopen(link.group(1) + "/", timeout=60) as page:
        assert page.headers["Content-Type"].startswith("text/html"), page.headers
    found = shell.json("--store", link.group(1), "list", "--limit", "100")["instances"]
    examples = {one["labels"]["example"]: one for one in found if (one["labels"] or {}).get("example")}
    assert set(examples) == {"verified", "refused", "approval", "killed"}, examples
    shell.wait_for(lambda: shell.json("--store", link.group(1), "show", examples["killed"]["instance_id"])["status"] == "completed")
    shell.stop(child)


def test_what_the_readme_tries_without_waiting_takes_no_days(shell):
    days = re.search(r"^## Days in a moment\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S).group(1)
    lines = [line.strip() for line in days.splitlines() if line.startswith("    pawl ")]
    assert len(lines) >= 3, lines
    session = Session(shell)
    try:
        session.type("cd $PAWL_SOURCE")
        status, out = session.type("\n".join(lines))
    finally:
        session.end()
    assert status == 0, out
    expect_text("README.md", "…\"amount\":12…\n…not paid in time…\n…completed…\n", out)


def test_no_example_and_no_definition_that_people_copy_has_a_warning(shell):
    """The first thing that people put must not be questioned."""
    pages = (ROOT / "docs/tutorial.md", ROOT / "docs/definitions.md", ROOT / "docs/howto/patterns.md")
    copied = [text for page in pages for _, kind, text in BLOCK.findall(page.read_text()) if kind == "yaml"]
    assert len(copied) > 30
    files = sorted((ROOT / "examples").glob("*.yaml")) + [shell.write("copied-%d.yaml" % n, text) for n, text in enumerate(copied)]
    for path in files:
        found = shell.pawl("check", str(path))
        assert "warning" not in found.out + found.err, (found, path)


def test_the_player_would_see_a_wrong_promise(shell):
    page = shell.folder / "page.md"
    for text in ("```sh\nfalse\n```\n```sh\ntrue\n```\n```sh\ntrue\n```\n", "```sh\necho a\n```\n```text\nb\n```\n```sh\ntrue\n```\n",
                 "```sh\necho a; echo b\n```\n```text\nb\na\n```\n```sh\ntrue\n```\n", "```yaml\na: 1\n```\n```sh\ntrue\n```\n```sh\ntrue\n```\n"):
        page.write_text(text)
        for left in ("bin", "work"):
            shutil.rmtree(shell.folder / left, ignore_errors=True)
        try:
            play(shell, page)
        except AssertionError:
            continue
        assert False, "not seen: " + text


# ---- What is promised, and what proves it ----

def has_test(path, sentence):
    """Is there a test of this name in this file?"""
    name, text = re.sub(r"[ -]", "_", sentence), (ROOT / path).read_text()
    pattern = r"^\s*(?:(?:WORLD_|WIDTH_)?TEST\(\w+,\s+|WIDE_TEST\(\w+,\s+\w+,\s+|WATCH_TEST\()%s\)" if path.endswith(".c") else r"^def test_%s\("
    is_run = path.endswith(".py") and '\n    run("%s",' % sentence in text  # one that runs a program of its own
    return is_run or re.search(pattern % re.escape(name), text, re.M) is not None


PROOF = re.compile(r"`(tests/[\w./-]+)`: ((?:\*[^*]+\*(?:, )?)+)")


def proofs(text):
    """(file, name of a test); the page wraps its lines."""
    for path, sentences in PROOF.findall(re.sub(r"\s+", " ", text)):
        for sentence in re.findall(r"\*([^*]+)\*", sentences):
            yield path, sentence


def test_every_guarantee_names_tests_that_exist(shell):
    text = (ROOT / "docs/guarantees.md").read_text()
    found = list(proofs(text))
    for path, sentence in found:
        assert (ROOT / path).exists(), "docs/guarantees.md names %s, which is not there" % path
        assert has_test(path, sentence), "docs/guarantees.md: %s has no test '%s'" % (path, sentence)
    headings = re.split(r"^## ", text, flags=re.M)[1:]
    bare = [part.split("\n")[0] for part in headings if not list(proofs(part))]
    assert len(headings) >= 7 and not bare, "promised without a proof: %s" % bare
    assert not has_test("tests/fault/promises.c", "pigs can fly") and not has_test("tests/race/run_race.py", "pigs can fly")


def test_every_limit_of_the_page_is_the_one_in_the_code(shell):
    page, code = (ROOT / "docs/limits.md").read_text(), (ROOT / "src/base/limits.h").read_text()
    for name in re.findall(r"#define (LIMIT_\w+)", code):
        assert "`%s`" % name in page, "docs/limits.md does not tell %s" % name
    for name in re.findall(r"`(LIMIT_\w+)`", page):
        assert "#define %s " % name in code, "docs/limits.md tells %s, which is no limit" % name


# ---- Links ----

def anchors(text):
    """As a forge makes them of headings."""
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_no_link_leads_nowhere(shell):
    pages = [p for p in ROOT.glob("*.md")] + [p for top in ("docs", "examples", "clients", "src", "tests") for p in (ROOT / top).rglob("*.md")]
    assert len(pages) > 30
    for page in pages:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if re.match(r"\w+:", target):
                continue
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), "%s links to %s" % (page.relative_to(ROOT), target)
            assert not anchor or anchor in anchors(there.read_text()), "%s links to %s: no such heading" % (page.relative_to(ROOT), target)


def test_every_page_is_on_the_index(shell):
    index = (ROOT / "docs/README.md").read_text()
    linked = {(ROOT / "docs" / target.partition("#")[0]).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", index)}
    pages = {p.resolve() for p in (ROOT / "docs").rglob("*.md")} - {(ROOT / "docs/README.md").resolve()}
    lost = [str(p.relative_to(ROOT)) for p in pages - linked if p.parent.name != "reference"]
    assert not lost, "docs/README.md does not name %s" % sorted(lost)


if __name__ == "__main__":
    harness.main(globals())
