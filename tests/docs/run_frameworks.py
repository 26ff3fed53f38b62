"""The pages about web frameworks, as they stand there, with what pip has of them. With PAWL_TEST_LONG=1: it is fetched."""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / "pip")]
from packages import Unavailable, environment  # noqa: E402
from run_docs import BLOCK, ROOT, harness, play  # noqa: E402


def page(shell, name):
    if not os.environ.get("PAWL_TEST_LONG"):
        raise harness.Skip("with PAWL_TEST_LONG=1: FastAPI and Django are fetched for it")
    try:
        python = pathlib.Path(environment("web"))
    except Unavailable as why:
        raise harness.Skip(why)
    os.environ["PATH"] = "%s:%s" % (python.parent, os.environ["PATH"])
    os.environ["PYTHONPATH"] = str(ROOT / "clients/python")
    play(shell, ROOT / "docs/howto" / name)


def test_what_the_page_about_fastapi_says_to_type_does_what_it_says(shell):
    page(shell, "fastapi.md")


def test_what_the_page_about_django_says_to_type_does_what_it_says(shell):
    page(shell, "django.md")


def test_the_python_of_both_pages_compiles(shell):
    for name in ("fastapi.md", "django.md"):
        blocks = [text for _, kind, text in BLOCK.findall((ROOT / "docs/howto" / name).read_text()) if kind == "python"]
        assert len(blocks) >= 2
        for text in blocks:
            compile(text, name, "exec")


if __name__ == "__main__":
    harness.main(globals())
