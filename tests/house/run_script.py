#!/usr/bin/env python3
"""run_script.py - script/test and script/run-tests: the words they take and the tests they choose."""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import tempfile
from sentences import BUILD, ROOT, main

LOADER = importlib.machinery.SourceFileLoader("run_tests", str(ROOT / "script/run-tests"))
RUN_TESTS = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", LOADER))
LOADER.exec_module(RUN_TESTS)


def script_test(*words):
    done = subprocess.run([ROOT / "script/test", *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def chosen(word=None):
    tests, words = RUN_TESTS.choose_quick(BUILD, RUN_TESTS.sources_of(BUILD), word)
    return {test.name for test in tests}, words


def test_help_names_every_way_to_call_it():
    code, out, _ = script_test("--help")
    assert code == 0 and all(word in out for word in ("quick [WORD]", "--all", "--help")), out


def test_a_word_that_is_not_known_is_refused_with_what_was_expected():
    for words in (["fast"], ["--all", "now"], ["quick", "a", "b"]):
        code, _, err = script_test(*words)
        assert code == 2 and "expected" in err and "'%s'" % " ".join(words) in err, (code, err)


def test_without_a_word_the_quick_tests_are_those_of_seconds():
    tests, _ = chosen()
    assert {"test_base", "test_flow", "test_reads", "run_tidy.py"} <= tests, tests
    assert not tests & {"test_engine", "test_fault_io", "test_code_kit", "run_link.py", "run_cli.py"}, tests


def test_a_word_chooses_files_by_name_or_else_single_tests():
    assert chosen("reads") == ({"test_reads"}, ())
    tests, words = chosen("no_operation_reads_more")
    assert tests == {"test_reads"} and words == ("no_operation_reads_more",), (tests, words)
    assert chosen("a_word_that_no_test_has")[0] == set()


def test_each_test_that_begins_first_exists():
    programs, scripts = RUN_TESTS.sources_of(BUILD), {path.name for path in (ROOT / "tests").rglob("run_*")}
    missing = [name for name in RUN_TESTS.LONGEST if name not in programs and name not in scripts]
    assert not missing, missing


def test_the_thread_sanitizer_runs_what_has_threads_and_says_what_it_leaves_out():
    RUN_TESTS.SKIPPED.clear()
    names = {path.name for path in RUN_TESTS.with_threads(RUN_TESTS.discover(BUILD), BUILD)}
    assert {"run_claims.py", "run_race.py", "run_watch.py"} <= names, names
    assert not names & {"run_tidy.py", "run_flip.py", "run_flow_model.py"}, names
    assert all((ROOT / "tests" / name).is_dir() for name in RUN_TESTS.ONE_THREAD)
    assert len(RUN_TESTS.SKIPPED) == len(RUN_TESTS.ONE_THREAD), RUN_TESTS.SKIPPED


def result_of(text):
    """What run-tests makes of a test with this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "run_it.py")
        path.write_text("import os, tempfile\n%s\nprint('1 passed, 0 failed')\n" % text)
        return RUN_TESTS.run(path, BUILD, False)


def test_what_a_test_leaves_in_its_temporary_folder_is_named_and_a_failure():
    passed, failed, _, _, output = result_of("open(os.path.join(tempfile.gettempdir(), 'rest'), 'w')")
    assert (passed, failed) == (1, 1) and "left in the temporary folder: rest" in output, output
    assert result_of("tempfile.TemporaryDirectory().cleanup()")[:2] == (1, 0)


if __name__ == "__main__":
    main(globals())
