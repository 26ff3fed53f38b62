#!/usr/bin/env python3
"""run_package.py - what is installed, and the Debian package: whole, and of use once it is there.

The package is made of the build under test (and compressed lightly, which takes a second instead of a minute);
`make deb` itself, a release build for /usr, is made with PAWL_TEST_LONG."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "house"))
from sentences import BUILD, ROOT, Skip, build_compiler, build_option, main, need, need_long, sh  # noqa: E402

FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="pawl-package-"))
LIGHTLY = {"DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"}
PREFIX = build_option("prefix").strip("/")


def package():
    """Made once."""
    for program in ("dpkg-deb", "meson", "strip"):
        need(program)
    found = sorted(FOLDER.glob("*.deb"))
    if not found:
        said = sh(ROOT / "script/deb", "--build", BUILD, "--output", FOLDER, env=LIGHTLY)
        found = [pathlib.Path(said.strip().splitlines()[-1])]
    assert found[0].exists(), found
    return found[0]


def dist():
    """The portable tarball, unpacked; made once, from a release build."""
    place = FOLDER / "dist"
    if not place.exists():
        for program in ("meson", "strip", "ldd", "tar"):
            need(program)
        tarball = sh(ROOT / "script/dist", "--build", BUILD.parent / "build-dist", "--output", FOLDER, timeout=1200).strip().splitlines()[-1]
        place.mkdir()
        sh("tar", "-xzf", tarball, "-C", place, "--strip-components=1")
    return place


def test_the_portable_tarball_has_its_libraries_man_pages_and_completion():
    need_long("a release build")
    place = dist()
    for name in ("bin/pawl", "share/man/man1/pawl.1", "share/man/man1/pawl-fire.1", "share/bash-completion/completions/pawl.bash", "share/zsh/site-functions/_pawl",
                 "share/fish/vendor_completions.d/pawl.fish", "clients/python/pawl_client/__init__.py", "examples/order.yaml", "README.md", "LICENSE"):
        assert (place / name).exists(), name
    names = {path.name for path in (place / "lib/pawl").iterdir()}
    assert any(name.startswith("libsqlite3.so") for name in names) and any(name.startswith("libmicrohttpd.so") for name in names), names
    assert not any(re.match(r"(libc|libm|ld-linux.*)\.so", name) for name in names), names


def test_the_portable_tarball_runs_where_there_is_the_c_library_and_nothing_else():
    """A root folder with the files of Debian's libc6 package, a shell, and the tarball: what a bare Debian 12 has, and less."""
    need_long("a release build")
    if os.geteuid() != 0:
        raise Skip("chroot needs root")
    root = FOLDER / "bare"
    shutil.copytree(dist(), root / "opt/pawl", symlinks=True)
    for path in sh("dpkg", "-L", "libc6").split():
        if re.search(r"/(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv)\.so[.0-9]*$", path):
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(path), target)
    (root / "lib64").mkdir(exist_ok=True)
    if not (root / "lib64/ld-linux-x86-64.so.2").exists():
        shutil.copy(os.path.realpath("/lib64/ld-linux-x86-64.so.2"), root / "lib64/ld-linux-x86-64.so.2")
    for name in ("tmp", "proc"):
        (root / name).mkdir()
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        raise Skip("this container may not make a mount namespace, and the loader asks /proc where the binary is")

    def inside(*words):
        line = ["chroot", str(root), "/opt/pawl/bin/pawl", "--store", "sqlite:/tmp/a.db", *words]
        return sh("unshare", "--mount", "sh", "-c", 'mount --rbind /proc "$0/proc" && exec "$@"', root, *line, env={"LD_LIBRARY_PATH": "", "HOME": "/tmp"})

    assert "definitions" in inside("define", "--help")
    inside("define", "/opt/pawl/examples/order.yaml")
    made = inside("start", "order").strip()
    inside("fire", made, "pay", "--actor", "ann")
    assert "valid" in inside("verify")
    inside("define", "/opt/pawl/examples/approval.yaml")
    assert "suspended" in inside("list", "--json")


def listed(path):
    """name -> mode"""
    lines = [line.split() for line in sh("dpkg-deb", "-c", path).splitlines()]
    return {words[5][2:]: words[0] for words in lines if not words[5].endswith("/")}


def expect_whole(path, prefix):
    files = listed(path)
    for pattern, mode in ((r"bin/pawl", "-rwxr-xr-x"), (r"lib/.*libpawl\.so\.0\.1\.0", "-rwxr-xr-x"), (r"lib/.*libpawl\.so", "lrwxrwxrwx"),
                          (r"lib/.*libpawl\.a", "-rw-r--r--"), (r"include/pawl\.h", "-rw-r--r--"), (r"lib/.*pkgconfig/pawl\.pc", "-rw-r--r--"),
                          (r"share/man/man1/pawl\.1\.gz", "-rw-r--r--"), (r"share/man/man1/pawl-fire\.1\.gz", "-rw-r--r--"),
                          (r"share/man/man5/pawl\.yaml\.5\.gz", "-rw-r--r--"),
                          (r"share/man/man3/pawl\.h\.3\.gz", "-rw-r--r--"), (r"share/bash-completion/completions/pawl\.bash", "-rw-r--r--"),
                          (r"share/zsh/site-functions/_pawl", "-rw-r--r--"), (r"share/fish/vendor_completions\.d/pawl\.fish", "-rw-r--r--"),
                          (r"lib/systemd/system/pawl\.service", "-rw-r--r--"), (r"lib/systemd/system/pawl\.socket", "-rw-r--r--")):
        there = [m for name, m in files.items() if re.fullmatch("%s/%s" % (prefix, pattern), name)]
        assert there == [mode], "%s: expected one of mode %s, found %s" % (pattern, mode, there)
    for name in ("copyright", "changelog.gz", "clients/python/pawl_client/__init__.py", "clients/python/pyproject.toml",
                 "clients/node/pawl_client.mjs", "clients/node/package.json", "examples/order.yaml"):
        assert "usr/share/doc/pawl/" + name in files, name
    strange = [name for name in files if not name.startswith((prefix + "/", "usr/share/doc/pawl/")) or re.search(r"__pycache__|egg-info|clients/python/build", name)]
    assert not strange, strange


def test_the_package_holds_all_that_belongs_on_a_machine_and_nothing_else():
    expect_whole(package(), PREFIX)
    owners = {line.split()[1] for line in sh("dpkg-deb", "-c", package()).splitlines()}
    assert owners == {"root/root"}, owners


def test_the_package_says_what_it_is_and_what_it_needs():
    fields = dict(line.split(": ", 1) for line in sh("dpkg-deb", "-f", package()).splitlines() if ": " in line)
    version = re.search(r'PAWL_VERSION "(.*)"', (ROOT / "include/pawl.h").read_text()).group(1)
    assert fields["Package"] == "pawl" and fields["Version"] == version, fields
    for library in ("libsqlite3-0", "libssl3", "libyaml-0-2", "libmicrohttpd12", "libc6"):
        assert library in fields["Depends"], "%s is not in %s" % (library, fields["Depends"])


def scratch():
    """A machine that has nothing but this package."""
    place = FOLDER / "machine"
    if not place.exists():
        (place / "var/lib/dpkg/info").mkdir(parents=True)
        (place / "var/lib/dpkg/updates").mkdir()
        (place / "var/lib/dpkg/status").touch()
        sh("dpkg", "--root", place, "--force-not-root", "--force-depends", "--force-script-chrootless", "--log", FOLDER / "dpkg.log",
           "--install", package())
    return place


def test_once_installed_dpkg_knows_its_files_and_finds_them_unchanged():
    place = scratch()
    assert "Status: install ok" in (place / "var/lib/dpkg/status").read_text()
    done = subprocess.run(["dpkg", "--root", str(place), "--verify", "pawl"], capture_output=True)
    assert not done.stdout.strip(), done.stdout.decode()


def test_a_program_is_compiled_against_what_was_installed_and_runs():
    place = scratch()
    found = next(place.rglob("pawl.pc"))
    environment = {"PKG_CONFIG_PATH": str(found.parent), "PKG_CONFIG_SYSROOT_DIR": str(place)}
    flags = sh(need("pkg-config"), "--cflags", "--libs", "pawl", env=environment).split()
    assert any(str(place) in flag for flag in flags), flags
    sh(*build_compiler(), ROOT / "examples/embed.c", *flags, "-o", FOLDER / "program")
    said = sh(FOLDER / "program", cwd=FOLDER, env={"LD_LIBRARY_PATH": str(found.parent.parent)})
    assert "1 new -> paid" in said, said
    listing = sh(place / PREFIX / "bin/pawl", "--store", "sqlite:%s/orders.db" % FOLDER, "list")
    assert "order@1" in listing, listing


def test_every_verb_has_its_page_and_completion_knows_it():
    place = scratch()
    pages = {p.name for p in place.rglob("*.1.gz")}
    help_text = sh(place / PREFIX / "bin/pawl", "--help")
    verbs = re.findall(r"^  ([a-z]+) ", help_text.split("\nEverywhere")[0], re.M)
    assert len(verbs) > 20 and all("pawl-%s.1.gz" % verb in pages for verb in verbs if verb != "pawl"), sorted(pages)


def test_the_unit_names_the_program_and_is_hardened():
    place = scratch()
    unit = next(place.rglob("pawl.service"))
    text = unit.read_text()
    assert "ExecStart=/%s/bin/pawl " % PREFIX in text and "Type=notify" in text and "DynamicUser=yes" in text, text
    if not shutil.which("systemd-analyze"):
        raise Skip("there is no systemd-analyze here")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)], capture_output=True, timeout=60)
    if b"Unknown" in done.stderr or b"unrecognized" in done.stderr:
        raise Skip("systemd-analyze is too old to judge a file")
    assert done.returncode == 0, "more exposed than 2.0:\n" + done.stdout.decode()[-600:]


def test_make_install_takes_prefix_and_destdir():
    need_long("a release build")
    place = FOLDER / "installed"
    sh("make", "-C", ROOT, "install", "BUILD=%s" % (FOLDER / "build"), "PREFIX=/opt/pawl", "DESTDIR=%s" % place, timeout=1200)
    assert (place / "opt/pawl/bin/pawl").exists() and (place / "opt/pawl/include/pawl.h").exists()
    assert "prefix=/opt/pawl" in next(place.rglob("pawl.pc")).read_text()
    assert "ExecStart=/opt/pawl/bin/pawl " in next(place.rglob("pawl.service")).read_text()


def test_make_deb_makes_a_release_for_usr():
    need_long("a release build")
    sh("make", "-C", ROOT, "deb", timeout=1200)
    path = next(ROOT.glob("pawl_*.deb"))
    try:
        expect_whole(path, "usr")
        assert path.stat().st_size < 4 << 20, "%d bytes: a few megabytes were promised" % path.stat().st_size
        assert "asan" not in sh("dpkg-deb", "-f", path, "Depends")
    finally:
        path.unlink()


try:
    main(globals())
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
