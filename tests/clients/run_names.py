"""The names of the clients: pawl-client is the package and pawl_client the import, in Python and in Node. The name
pawl on PyPI belongs to another project."""
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import harness  # noqa: E402

CLIENTS = harness.ROOT / "clients"
OLD = re.compile(r"python/pawl\.py|node/pawl\.mjs|\./pawl\.mjs|^\s*(?:from|import) pawl\b", re.M)
VERSION = re.search(r'PAWL_VERSION "(.*)"', (harness.ROOT / "include/pawl.h").read_text()).group(1)


def tracked():
    if not (harness.ROOT / ".git").exists():
        raise harness.Skip("this is no clone: there is no list of its files")
    listed = subprocess.run(["git", "-C", str(harness.ROOT), "ls-files", "-z"], capture_output=True, check=True, timeout=60)
    return [harness.ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_no_file_names_the_clients_by_their_old_name(shell):
    """CHANGELOG.md says what they were called."""
    for path in tracked():
        if path.suffix in (".py", ".mjs", ".md", ".toml", ".json", ".sh", "") and path.name != "CHANGELOG.md" and path != HERE / "run_names.py":
            found = OLD.search(path.read_text(errors="replace")) if path.is_file() else None
            assert not found, "%s: %s" % (path, found.group())


def test_both_packages_are_called_pawl_client_and_have_the_version_of_the_program(shell):
    python = tomllib.loads((CLIENTS / "python/pyproject.toml").read_text())
    node = json.loads((CLIENTS / "node/package.json").read_text())
    assert python["project"]["name"] == node["name"] == "pawl-client"
    assert python["tool"]["setuptools"]["packages"] == ["pawl_client"] and node["exports"]["."] == "./pawl_client.mjs"
    assert not python["project"]["dependencies"] and "dependencies" not in node
    assert '__version__ = "%s"\n' % VERSION in (CLIENTS / "python/pawl_client/__init__.py").read_text()
    assert node["version"] == VERSION


def test_the_python_package_holds_the_client_and_durable_code_and_no_more(shell):
    if not importlib.util.find_spec("setuptools"):
        raise harness.Skip("there is no setuptools here")
    source = shutil.copytree(CLIENTS / "python", shell.folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-W", "ignore", "-c", "import setuptools.build_meta as b; b.build_sdist('..')"], cwd=source,
                   check=True, capture_output=True, timeout=120)
    with tarfile.open(next(shell.folder.glob("*.tar.gz"))) as archive:
        about = next(name for name in archive.getnames() if name.endswith("/PKG-INFO"))
        fields = archive.extractfile(about).read().decode().splitlines()
        modules = [name.partition("/")[2] for name in archive.getnames() if name.endswith(".py")]
    assert "Name: pawl-client" in fields and "Version: " + VERSION in fields and all(
        name.startswith("pawl_client/") for name in modules) and "pawl_client/durable.py" in modules, (fields, modules)


def test_the_node_package_is_imported_by_its_name(shell):
    if not shutil.which("node"):
        raise harness.Skip("there is no node here")
    (shell.folder / "node_modules").mkdir()
    (shell.folder / "node_modules/pawl-client").symlink_to(CLIENTS / "node")
    shell.write("shop.mjs", 'import { Pawl, Worker } from "pawl-client";\nconsole.log(typeof Pawl, typeof Worker);\n')
    said = subprocess.run(["node", "shop.mjs"], cwd=shell.folder, check=True, capture_output=True, timeout=60).stdout
    assert said == b"function function\n", said


if __name__ == "__main__":
    harness.main(globals())
