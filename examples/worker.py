"""worker.py - serves the tool knowledge_search: python3 examples/worker.py [URL]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients/python"))
from pawl_client import Pawl, Worker  # noqa: E402

worker = Worker(Pawl(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7295"))


@worker.tool("knowledge_search")
def search(args, step):
    return {"query": args["query"], "hits": len(args["query"])}


worker.run()
