"""python3 -m pawl_client game.py: the workflows of a file, for the pawl that started this. With --server URL: as a worker elsewhere."""
import os
import sys

from .turns import load, main

if len(sys.argv) == 2:
    main(sys.argv[1])
elif len(sys.argv) == 4 and sys.argv[2] == "--server":
    import logging

    from . import PawlError
    from .elsewhere import work

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    load(sys.argv[1])
    try:
        work(sys.argv[3], token=os.environ.get("PAWL_TOKEN"))
    except PawlError as error:
        raise SystemExit("pawl_client: %s" % error)
else:
    raise SystemExit("usage: python3 -m pawl_client FILE.py, as `pawl run FILE.py` does, or python3 -m pawl_client FILE.py --server URL")
