"""A flipped bit anywhere in what is covered is named by both verifiers (issue: the format, frozen).

flip.py does the work: a store written from docs/format.md alone is read by verify_file (the C
verifier on the store's verbs), and one that the program itself made by pawl.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", HERE.parent.parent / "build-test"))
PAWL = os.environ.get("PAWL", str(BUILD / "pawl"))


def run(name, *words):
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=1200)
    ok = done.returncode == 0
    print("%s - %s" % ("ok" if ok else "not ok", name))
    if not ok:
        print(done.stdout[-4000:], done.stderr[-4000:])
    else:
        print("\n".join("# " + line for line in done.stdout.splitlines()[-2:]))
    return ok


results = [
    run("the test vectors are what the page says", str(HERE.parent / "vectors" / "make.py"), "--check"),
    run("every flip in a store written from the page is named by both", str(HERE / "flip.py"), "--pawl",
        str(BUILD / "tests" / "verify_file")),
    run("every flip in a store the program made is named by both", str(HERE / "flip.py"), "--pawl", PAWL, "--by-cli"),
]
print("# %d passed, %d failed" % (sum(results), len(results) - sum(results)))
sys.exit(0 if all(results) else 1)
