"""python3 -m pawl_client game.py: the workflows of a file, for the pawl that started this."""
import sys

from .turns import main

if len(sys.argv) != 2:
    raise SystemExit("usage: python3 -m pawl_client FILE.py, as `pawl run FILE.py` does")
main(sys.argv[1])
