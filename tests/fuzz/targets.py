"""targets.py - the fuzz targets, and how each is compiled."""
import os
import pathlib
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CORPUS = HERE / "corpus"
LIBRARIES = ["-lsqlite3", "-lcrypto", "-lyaml", "-llua5.4", "-lpthread"]
FLAGS = ["-std=c11", "-g", "-O1", "-D_GNU_SOURCE", "-DPAWL_BUILD", "-I" + str(ROOT / "include"),
         "-I" + str(ROOT / "src"), "-I" + str(HERE)]
# What a target needs beside the core: sources of the binary, and their libraries.
HTTP = ROOT / "src/surface/http"
WHOLE = [str(path) for path in sorted(HTTP.glob("*.c"))] + ["-lmicrohttpd", "-lz"]
EXTRA = {"http": WHOLE, "query": WHOLE,
         "request": [str(HERE / "wire.c")] + [str(path) for path in sorted(HTTP.glob("*.c"))
                                                 if path.name not in ("listen.c", "acceptor.c", "work_queue.c")] + ["-lz"]}


def extra(name, core):
    """The MCP surface is compiled with what the core's build made for it."""
    if name != "mcp":
        return EXTRA.get(name, [])
    made = pathlib.Path(core).resolve().parent / "src/surface"
    return [str(path) for path in sorted((ROOT / "src/surface/mcp").glob("*.c"))] + [str(made / one) for one in ("mcp_tools.c", "mcp_app_files.c")]


def names():
    return sorted(path.stem[len("fuzz_"):] for path in HERE.glob("fuzz_*.c"))


def command(compiler, name, core, out, more=()):
    """The words that compile one target against a core library."""
    return [*compiler, *FLAGS, str(HERE / ("fuzz_%s.c" % name)), *more, *extra(name, core), str(core),
            "-o", str(out), *LIBRARIES]


def corpus(name):
    return sorted(path for path in (CORPUS / name).iterdir() if path.is_file())


def folder():
    """A folder for a target's files, in memory where there is one; gone at the end of the with."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="pawl-fuzz-", dir=memory)
