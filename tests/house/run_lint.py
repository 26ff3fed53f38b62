#!/usr/bin/env python3
"""run_lint.py - changed code, by clang-format and clang-tidy (tools/lint)."""
import subprocess
from sentences import BUILD, ROOT, Skip, main


def lint(*words):
    done = subprocess.run([ROOT / "tools/lint", *words], capture_output=True, text=True)
    if done.returncode == 77:
        raise Skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout.strip())


def test_changed_lines_are_as_clang_format_writes_them():
    lint("format")


def test_clang_tidy_finds_no_defect_in_changed_files():
    lint("defects", BUILD)


if __name__ == "__main__":
    main(globals())
