"""packages.py - what the tests take from pip: an environment for each list of requirements, kept in the build folder."""
import fcntl
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", "build")).resolve()


class Unavailable(Exception):
    """There is no pip here, or it could not fetch what the list names."""


def environment(name="requirements"):
    """The python of an environment that has NAME.txt. Suites that run at the same time wait for each other."""
    place = BUILD / "pip"
    place.mkdir(exist_ok=True)
    with open(place / (name + ".lock"), "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        return str(fetched(place / name, (HERE / (name + ".txt")).read_text()) / "bin/python")


def fetched(folder, wanted):
    mark = folder / "fetched"  # written last, so that a fetch that was cut short is made again
    if not mark.exists() or mark.read_text() != wanted:
        run([sys.executable, "-m", "venv", "--clear", str(folder)])
        listed = folder / "wanted.txt"
        listed.write_text(wanted)
        run([str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(listed)])
        mark.write_text(wanted)
    return folder


def run(words):
    """A step of a fetch; on Debian it needs python3-venv."""
    done = subprocess.run(words, capture_output=True, timeout=300)
    if done.returncode != 0:
        raise Unavailable("%s: %s" % (" ".join(words[1:4]), (done.stdout + done.stderr).decode()[-300:]))
