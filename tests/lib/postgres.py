"""postgres.py - a private PostgreSQL for tests: a cluster in a temporary folder, on a Unix socket of
its own and on a free port of the loopback, that ends with whoever started it.

    python3 tests/lib/postgres.py [--durable]   prints its URL, and serves until its standard input ends; --durable: as people
                                                run theirs, for measuring

Python tests use private() instead. Debian's package is enough; no cluster of the system is touched.
$PAWL_TEST_POSTGRES names one that runs already.
"""
import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "shared_buffers": "32MB",
            "max_connections": "60", "autovacuum": "off", "logging_collector": "off", "log_min_messages": "fatal",
            "listen_addresses": "127.0.0.1", "timezone": "UTC", "log_timezone": "UTC", "max_wal_size": "256MB"}


DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "shared_buffers": "512MB", "autovacuum": "on",
           "max_connections": "100", "max_wal_size": "4GB"}


def program(name):
    """The newest installed one, or that of the folder $PAWL_TEST_POSTGRES_BIN if it has one; None: there is none."""
    given = os.path.join(os.environ.get("PAWL_TEST_POSTGRES_BIN", "/nowhere"), name)
    if os.path.exists(given):
        return given
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/" + name), key=lambda p: int(p.split("/")[4]))
    return found[-1] if found else shutil.which(name)


def is_there():
    return "PAWL_TEST_POSTGRES" in os.environ or bool(program("initdb") and program("postgres"))


def unprivileged():
    """initdb refuses root: then a user that owns nothing else."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Private:
    """A cluster; `url` is of its database, with the user `pawl`, whose password is `secret`."""

    def __init__(self, settings=None):
        self.folder = tempfile.mkdtemp(prefix="pawl-pg-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.data = os.path.join(self.folder, "data")
        os.mkdir(self.data, 0o700)
        self.user = unprivileged()
        if self.user:
            for path in self.folder, self.data:
                os.chown(path, self.user["user"], self.user["group"])
        self.settings = dict(SETTINGS, **(settings or {}))
        self.server = None
        try:
            self.make()
            self.start()
        except BaseException:
            self.stop()
            raise

    def make(self):
        secret = os.path.join(self.folder, "secret")
        with open(secret, "w", encoding="utf-8") as out:
            out.write("secret\n")
        os.chmod(secret, 0o644)
        subprocess.run([program("initdb"), "-D", self.data, "-U", "pawl", "--pwfile", secret, "--auth-local=trust",
                        "--auth-host=scram-sha-256", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)
        self.port = free_port()

    def start(self):
        given = [word for key, value in self.settings.items() for word in ("-c", "%s=%s" % (key, value))]
        self.server = subprocess.Popen([program("postgres"), "-D", self.data, "-p", str(self.port), "-k", self.folder]
                                       + given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       stdin=subprocess.DEVNULL, cwd="/", **self.user)
        for _ in range(600):
            ready = subprocess.run([program("pg_isready"), "-q", "-h", self.folder, "-p", str(self.port), "-t", "1"],
                                   check=False).returncode
            if ready == 0:
                return
            if self.server.poll() is not None:
                raise RuntimeError("postgres ended with status %d" % self.server.returncode)
        raise RuntimeError("postgres did not start")

    @property
    def url(self):
        return "postgres://pawl@/postgres?host=%s&port=%d" % (self.folder, self.port)

    @property
    def tcp_url(self):
        return "postgres://pawl:secret@127.0.0.1:%d/postgres" % self.port

    def sql(self, text):
        return subprocess.run([program("psql"), "-X", "-q", "-A", "-t", "-h", self.folder, "-p", str(self.port), "-U",
                               "pawl", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-c", text], check=True,
                              capture_output=True, text=True).stdout.strip()

    def kill(self):
        """As a crash of the whole server."""
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait()

    def stop(self):
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGQUIT)  # nothing in it is to be kept
            self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Standby(Private):
    """A copy of another cluster that follows it, and is waited for by its commits."""

    def __init__(self, primary):
        self.primary = primary
        super().__init__()

    def make(self):
        self.port = free_port()
        subprocess.run([program("pg_basebackup"), "-h", self.primary.folder, "-p", str(self.primary.port), "-U", "pawl", "-D", self.data,
                        "-X", "stream", "-R", "--no-sync", "-c", "fast"], check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)

    def promote(self):
        subprocess.run([program("pg_ctl"), "promote", "-D", self.data, "-w"], check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)


@contextlib.contextmanager
def standby(primary):
    """It is synchronous when this returns."""
    cluster = Standby(primary)
    try:
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")
        for _ in range(600):
            if primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1":
                break
            time.sleep(0.05)
        yield cluster
    finally:
        cluster.stop()


@contextlib.contextmanager
def private(settings=None):
    """A cluster of one's own, for tests that stop it or change it."""
    cluster = Private(settings)
    try:
        yield cluster
    finally:
        cluster.stop()


def serve():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us decides when we end
    with private(DURABLE if "--durable" in sys.argv else None) as cluster:
        os.write(1, (cluster.url + "\n").encode())  # at once: who started us reads once, and may have closed it then
        sys.stdin.read()


if __name__ == "__main__":
    serve()
