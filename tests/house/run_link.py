#!/usr/bin/env python3
"""run_link.py - what the linker sees: that behaviors are pure, that the libraries export
pawl_* alone, and that pawl.h suits every compiler."""
import re
import shutil
import tempfile

from sentences import BUILD, ROOT, main, need, sh

OBJECTS = BUILD / "libpawl_core.a.p"
BEHAVIORS = ("base", "model", "expr", "calendar", "machine", "flow", "code", "drawing")
REDUCERS = ("model", "expr", "calendar", "machine", "flow", "code")

# What a behavior may ask of the world. Nothing here knows the time, a file or a thread.
PURE = re.compile(r"bcmp|mem(chr|cmp|cpy|mem|move|set)|__mem(cpy|move|set)_chk|str(chr|cmp|len|ncmp|nlen|rchr|str|tod|pbrk)|"
                  r"v?snprintf|__v?snprintf_chk|qsort|bsearch|pow|modf|floor|fabs|isnan|"
                  r"_GLOBAL_OFFSET_TABLE_|__errno_location")
MACHINERY = re.compile(r"__(unnamed_\d+|asan|odr_asan|ubsan|tsan|sanitizer|stack_chk|gcov|llvm|sancov)\w*|__cyg_profile\w*|_?_?dso_handle")
# And what single files of base may, for all others.
DOORS = {
    "src_base_heap.c": r"realloc|free",
    "src_base_sha.c": r"EVP_\w+",
    "src_base_panic.c": r"abort|stderr|fprintf|__fprintf_chk|fwrite|__tls_get_addr",
    "src_base_node_yaml.c": r"yaml_\w+",
    "src_base_planted.c": r"getenv",
    "src_calendar_zone.c": r"zone_row(s|_count)",  # a table that tools/gen-zones makes
    "src_expr_library.c": r"luaL?_\w+",  # Lua's core; none of its libraries (luaopen_...) is opened
    "src_expr_print.c": r"luaL?_\w+",
    "src_expr_sandbox.c": r"luaL?_\w+",
    "src_expr_value.c": r"luaL?_\w+",
}


def objects(layers):
    found = sorted(p for p in OBJECTS.glob("*.o") if p.name.split("_")[1] in layers)
    assert len(found) >= len(layers), "no objects of %s in %s" % (", ".join(layers), OBJECTS)
    return found


def symbols(path, *options):
    """(type, name) of each symbol."""
    for line in sh("nm", *options, path).splitlines():
        words = line.split()
        if len(words) >= 2 and len(words[-2]) == 1:
            yield words[-2], words[-1].split("@")[0]


def test_behaviors_link_without_store_env_clock_or_io():
    paths = objects(BEHAVIORS)
    own = {name for path in paths for _, name in symbols(path, "-g", "--defined-only")}
    for path in paths:
        door = re.compile(DOORS.get(path.name[:-len(".o")], r"(?!)"))
        asked = {name for _, name in symbols(path, "-u")} - own
        strange = sorted(name for name in asked if not PURE.fullmatch(name) and
                         not MACHINERY.fullmatch(name) and not door.fullmatch(name))
        assert not strange, "%s asks for %s" % (path.name, ", ".join(strange))


def test_the_check_of_behaviors_would_see_a_clock():
    """The same look at the env layer, which does read clocks, must find something."""
    asked = {name for path in objects(("env",)) for _, name in symbols(path, "-u")}
    assert "clock_gettime" in asked and not PURE.fullmatch("clock_gettime")


ALLOCATORS = re.compile(r"malloc|calloc|realloc|reallocarray|free|strn?dup|v?asprintf|__v?asprintf_chk|aligned_alloc|"
                        r"posix_memalign|getline|getdelim|open_memstream")


def test_memory_is_asked_for_in_one_place_where_the_hosts_allocator_is_called():
    asking = {path.name: sorted(name for _, name in symbols(path, "-u") if ALLOCATORS.fullmatch(name))
              for path in sorted(OBJECTS.glob("src_*.o"))}
    found = {name: asked for name, asked in asking.items() if asked}
    assert found == {"src_base_heap.c.o": ["free", "realloc"]}, found


def mutable_globals(path):
    """Constant tables with pointers lie in .data.rel.ro: the linker fills them, then they are fixed."""
    for line in sh("objdump", "-t", path).splitlines():
        words = line.split()
        if len(words) < 5 or " O " not in line:
            continue
        section, name = words[-3], words[-1]
        if re.fullmatch(r"\.(data|bss|tdata|tbss)(?!\.rel\.ro).*|\*COM\*", section) and \
                not MACHINERY.match(name) and not name.startswith("."):
            yield "%s: %s in %s" % (path.name, name, section)


def test_reducers_have_no_mutable_globals():
    found = [text for path in objects(REDUCERS) for text in mutable_globals(path)]
    assert not found, "; ".join(found)


def test_the_check_of_globals_would_see_one():
    """The memory store has a registry of the named ones."""
    assert any("registry" in text for path in objects(("store",)) for text in mutable_globals(path))


def exported(path, *options):
    return {name for kind, name in symbols(path, "--defined-only", *options) if kind not in "aAN"}


def expect_public(names):
    assert len([n for n in names if n.startswith("pawl_")]) > 20, "only %s" % sorted(names)
    strange = sorted(n for n in names if not n.startswith("pawl_") and not MACHINERY.match(n))
    assert not strange, "also exports %s" % ", ".join(strange)


def test_the_shared_library_exports_pawl_alone():
    expect_public(exported(BUILD / "libpawl.so", "-D"))


def test_the_static_library_exports_pawl_alone():
    expect_public(exported(BUILD / "libpawl.a", "-g"))


def test_both_libraries_export_what_the_header_declares_and_nothing_more():
    text = re.sub(r"/\*.*?\*/", "", "".join((ROOT / "include" / name).read_text() for name in ("pawl.h", "pawl_turn.h")), flags=re.DOTALL)
    declared = set(re.findall(r"PAWL_API[^;]*?\b(pawl_\w+)\(", text))
    for names in (exported(BUILD / "libpawl.so", "-D"), exported(BUILD / "libpawl.a", "-g")):
        ours = {n for n in names if n.startswith("pawl_")}
        assert ours == declared, "missing: %s; not declared: %s" % (sorted(declared - ours), sorted(ours - declared))


USER = """#include <pawl.h>
struct counter { int64_t left; char word[8]; };
static const pawl_var vars[] = { PAWL_VAR(struct counter, left, PAWL_VAR_INT64),
                                 PAWL_VAR(struct counter, word, PAWL_VAR_TEXT) };
int main(void);
int main(void)
{
    pawl_error error;
    pawl *p = NULL;
    return vars[0].offset == 0 && pawl_open(&p, "memory:", NULL, &error) == PAWL_OK ? 0 : 1;
}
"""


def compile_header(compiler, standard):
    with tempfile.TemporaryDirectory() as folder:
        source = "%s/user.%s" % (folder, "cc" if "++" in compiler else "c")
        with open(source, "w") as out:
            out.write(USER)
        sh(need(compiler), "-std=" + standard, "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
           "-I", ROOT / "include", "-fsyntax-only", source)


def test_the_header_is_c99():
    compile_header("cc", "c99")


def test_the_header_is_c11():
    compile_header("cc", "c11")


def test_the_header_is_c_for_clang():
    compile_header("clang", "c99")
    compile_header("clang", "c11")


def test_the_header_is_cpp():
    compilers = [name for name in ("g++", "clang++") if shutil.which(name)] or ["g++"]
    for compiler in compilers:
        compile_header(compiler, "c++11")
        compile_header(compiler, "c++20")


main(globals())
