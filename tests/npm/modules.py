"""modules.py - what the tests take from npm: one lock file, one `npm ci` for all of them, kept in the build folder."""
import fcntl
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("PAWL_BUILD", "build")).resolve()


class Unavailable(Exception):
    """npm is not here, or could not fetch what the lock file names."""


def npm_modules(part=""):
    """The folder that has node_modules of package-lock.json, or of that in the folder `part`. Suites that run at the same time wait for each other."""
    place = BUILD / ("npm" + part)
    if not shutil.which("npm"):
        raise Unavailable("there is no npm here: script/install-deps npm")
    place.mkdir(exist_ok=True)
    with open(place / "lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fetch(place, HERE / part)
    return place


def fetch(place, source):
    lock = (source / "package-lock.json").read_text()
    fetched = place / "fetched"  # written last, so that a fetch that was cut short is made again
    if fetched.exists() and fetched.read_text() == lock:
        return
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, place)
    done = subprocess.run(["npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=place,
                          capture_output=True, timeout=300)
    if done.returncode != 0:
        raise Unavailable("npm cannot fetch what tests/npm/package-lock.json names: %s" % done.stderr.decode()[-300:])
    fetched.write_text(lock)
