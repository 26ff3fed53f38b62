"""A flipped bit anywhere in what is covered is named by both verifiers (issue: the format, frozen).

flip.py does the work on a store written from docs/format.md alone, forger.py on a rich one that the program itself made;
verify_file asks the C verifier on the store's verbs.
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
        print("\n".join("# " + line for line in done.stdout.splitlines()[-3:]))
    return ok


results = [
    run("the test vectors are what the page says", str(HERE.parent / "vectors" / "make.py"), "--check"),
    run("every flip in a store written from the page is named by both", str(HERE / "flip.py"), "--many",
        str(BUILD / "tests" / "verify_file")),
    run("each column and each object of the schema that a forger changes is seen by both", str(HERE / "forger.py"),
        "--pawl", PAWL, "--many", str(BUILD / "tests" / "verify_file")),
]
print("# %d passed, %d failed" % (sum(results), len(results) - sum(results)))
sys.exit(0 if all(results) else 1)
