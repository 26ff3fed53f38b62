"""Completion, asked of real shells."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

from harness import EXAMPLES, PAWL, Skip, main

BASH = r'''
eval "$(pawl completion bash)"
complete -p pawl
ask() {
    COMP_LINE="$1"; COMP_POINT=${#COMP_LINE}
    local words; read -ra words <<< "${COMP_LINE//@/ @ }"   # as bash breaks them
    [[ "$COMP_LINE" == *' ' ]] && words+=("")
    COMP_WORDS=("${words[@]}"); COMP_CWORD=$(( ${#words[@]} - 1 ))
    _pawl; printf '%s|' "${COMPREPLY[@]}"; echo
}
'''


def path(shell):
    """A folder in which pawl is called pawl."""
    folder = shell.folder / "bin"
    if not folder.exists():
        folder.mkdir()
        (folder / "pawl").symlink_to(os.path.abspath(PAWL))
    return str(folder) + ":" + os.environ["PATH"]


def ask(shell, *lines):
    script = BASH + "".join("ask '%s'\n" % line for line in lines)
    done = subprocess.run(["bash", "--norc", "-c", script], cwd=shell.folder, capture_output=True, text=True,
                          env=shell.environment({"PATH": path(shell)}), timeout=60)
    assert done.returncode == 0, done
    first, *rest = done.stdout.splitlines()
    assert first == "complete -F _pawl pawl", first
    return [set(line.split("|")[:-1]) for line in rest]


def order(shell):
    shell.pawl("define", str(EXAMPLES / "order.yaml"))
    return shell.pawl("start", "order").out.strip()


def test_bash_completes_verbs_options_and_their_values(shell):
    verbs, options, statuses, formats, words = ask(
        shell, "pawl d", "pawl list --st", "pawl list --status wa", "pawl graph --format ", "pawl alarm ")
    assert verbs == {"declaration", "demo", "define", "doctor"}, verbs
    assert options == {"--state", "--status", "--store"}, options
    assert statuses == {"waiting"}, statuses
    assert formats == {"text", "mermaid", "dot", "svg", "json"}, formats
    assert words == {"set", "list", "cancel"}, words
    assert not (shell.folder / "pawl.db").exists()


def test_bash_completes_names_of_definitions_ids_and_legal_actions(shell):
    id = order(shell)
    names, ids, begun, actions, last = ask(shell, "pawl start o", "pawl show ", "pawl show " + id[:12],
                                           "pawl fire %s " % id, "pawl show @l")
    assert names == {"order"} and id in ids and "@last" in ids and begun == {id}, (names, ids, begun)
    assert actions == {"pay", "drop"} and last == {"last"}, (actions, last)


def test_bash_completes_in_the_store_that_is_named_and_files(shell):
    shell.write("flow-one.yaml", "")
    shell.pawl("--store", "sqlite:other.db", "define", str(EXAMPLES / "order.yaml"))
    names, files = ask(shell, "pawl --store sqlite:other.db start o", "pawl define flow")
    assert names == {"order"} and files == {"flow-one.yaml"}, (names, files)


def test_every_verb_can_be_completed(shell):
    every = set(re.findall(r"^  ([a-z][a-z-]*) ", shell.pawl().out, re.MULTILINE)[1:])
    found = ask(shell, "pawl ")[0]
    assert found == every, found ^ every


def test_fish_completes(shell):
    if not shutil.which("fish"):
        raise Skip("fish is not installed")
    id = order(shell)
    script = "pawl completion fish | source; complete -C 'pawl doc'; complete -C 'pawl show 0'; complete -C 'pawl start o'"
    done = subprocess.run(["fish", "--no-config", "-c", script], cwd=shell.folder, capture_output=True, text=True,
                          env=shell.environment({"PATH": path(shell), "HOME": str(shell.folder)}), timeout=60)
    words = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert words == ["doctor", id, "order"], done


def typed_in_zsh(shell, keys, wanted):
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(shell.folder)
        os.execvpe("zsh", ["zsh", "-f", "-i"],
                   shell.environment({"PATH": path(shell), "TERM": "dumb", "PS1": "", "HOME": str(shell.folder)}))
    seen = b""
    os.write(fd, b"autoload -U compinit; compinit -D; eval \"$(pawl completion zsh)\"; echo rea''dy\n")
    until = time.monotonic() + 30
    sent = False
    while time.monotonic() < until and wanted not in seen:
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
        if not sent and b"ready" in seen:
            os.write(fd, keys)
            sent = True
    os.close(fd)
    os.waitpid(pid, 0)
    return seen


def test_zsh_completes(shell):
    if not shutil.which("zsh"):
        raise Skip("zsh is not installed")
    id = order(shell).encode()
    assert b"doctor" in typed_in_zsh(shell, b"pawl docto\t", b"doctor"), "no doctor"
    assert id in typed_in_zsh(shell, b"pawl show " + id[:12] + b"\t", id), "no id"


def test_another_shell_is_refused(shell):
    assert "expected bash, zsh or fish" in shell.pawl("completion", "tcsh", expect=2).err


main(globals())
