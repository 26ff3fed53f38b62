#!/usr/bin/env python3
"""hunt.py [SECONDS] [TARGET] - build the fuzz targets with clang and libFuzzer in build-fuzz, and
run each for SECONDS (30). Exit status 1 if one crashes; its input is kept in build-fuzz/found."""
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import targets  # noqa: E402

BUILD = targets.ROOT / "build-fuzz"
SANITIZE = "address,undefined"
CLANG = ["clang", "-fsanitize=fuzzer," + SANITIZE, "-fno-sanitize-recover=undefined"]


def build_core():
    """The core library, instrumented; meson knows its files."""
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(BUILD), str(targets.ROOT), "-Db_lundef=false",
                        "-Db_sanitize=" + SANITIZE, "-Dhardening=false", "-Doptimization=1",
                        "-Dc_args=-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined"],
                       check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, CC="clang"))
    subprocess.run(["ninja", "-C", str(BUILD), "libpawl_core.a", "src/surface/mcp_tools.c", "src/surface/mcp_app_files.c"], check=True, stdout=subprocess.DEVNULL)
    return BUILD / "libpawl_core.a"


def hunt(name, seconds, core):
    """Run one target; True if nothing was found."""
    program, new, found = BUILD / ("fuzz_" + name), BUILD / "corpus" / name, BUILD / "found"
    for folder in (new, found):
        folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(targets.command(CLANG, name, core, program), check=True)
    print("fuzz: %s, %d s" % (name, seconds), flush=True)
    words = targets.HERE / (name + ".dict")
    with open(BUILD / ("fuzz_%s.log" % name), "wb") as log, targets.folder() as scratch:
        done = subprocess.run([str(program), "-max_total_time=%d" % seconds, "-timeout=20",
                               "-rss_limit_mb=4096", "-max_len=16384",
                               "-artifact_prefix=%s/%s-" % (found, name),
                               *(["-dict=%s" % words] if words.exists() else []), str(new),
                               str(targets.CORPUS / name)], stdout=log, stderr=subprocess.STDOUT,
                              env=dict(os.environ, PAWL_FUZZ_FOLDER=scratch))
    lines = pathlib.Path(log.name).read_text(errors="replace").splitlines()
    if done.returncode:
        print("\n".join(lines[-60:]))
    else:
        print("      %s" % next((line for line in reversed(lines) if "DONE" in line), "done"))
    return done.returncode == 0


def main():
    words = sys.argv[1:]
    seconds = int(words.pop(0)) if words and words[0].isdigit() else 30
    unknown = set(words) - set(targets.names())
    if unknown:
        sys.exit("fuzz: no target %s; there are %s" % (", ".join(sorted(unknown)), ", ".join(targets.names())))
    core = build_core()
    crashed = [name for name in words or targets.names() if not hunt(name, seconds, core)]
    print("fuzz: " + ("no crash" if not crashed else "a crash in " + ", ".join(crashed)))
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
