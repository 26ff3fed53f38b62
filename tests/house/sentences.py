"""sentences.py - tests whose names are sentences, for scripts about the build itself.

    from sentences import BUILD, ROOT, main, sh
    def test_a_thing_holds(): ...
    main(globals())
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", ROOT / "build")).resolve()
LIBRARIES = ["-lsqlite3", "-lcrypto", "-lyaml", "-llua5.4", "-lpthread"]
TIMEOUT_S = 300


class Skip(Exception):
    """What is needed is not on this machine; said aloud."""


def sh(*words, cwd=None, env=None, timeout=TIMEOUT_S):
    """Standard output of a command; an AssertionError with all it said if it fails."""
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, timeout=timeout,
                          env=dict(os.environ, **(env or {})))
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, "%s\nexit %d\n%s%s" % (" ".join(map(str, words)), done.returncode, out, err)
    return out


def build_option(name):
    """An option of the build under test, e.g. b_sanitize."""
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
    return next((option["value"] for option in options if option["name"] == name), "")


def build_compiler():
    """The compiler of the build under test, with the sanitizers that it was built with."""
    first = json.loads((BUILD / "compile_commands.json").read_text())[0]["command"].split()
    words = [word for word in first[:2] if not word.startswith("-")]  # "ccache gcc", or "gcc"
    sanitize = build_option("b_sanitize")
    return words + (["-fsanitize=" + sanitize, "-fno-sanitize-recover=all"] if sanitize != "none" else [])


def need(program):
    if not shutil.which(program):
        raise Skip("there is no %s here" % program)
    return program


def need_long(what):
    """What takes minutes and is the same for every build: in script/test --all, and there once."""
    if not os.environ.get("PAWL_TEST_LONG"):
        raise Skip("%s takes minutes; PAWL_TEST_LONG=1 does it" % what)
    if "thread" in build_option("b_sanitize") or "clang" in " ".join(build_compiler()):
        raise Skip("once is enough; the build with gcc and the address sanitizer does it")


def main(module):
    passed = failed = 0
    for name, test in list(module.items()):
        if not name.startswith("test_"):
            continue
        sentence = name[len("test_"):].replace("_", " ")
        try:
            test()
            passed += 1
            print("ok - %s" % sentence)
        except Skip as reason:
            print("SKIPPED - %s: %s" % (sentence, reason))
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print("not ok - %s\n%s: %s" % (sentence, type(error).__name__, error))
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(1 if failed else 0)
