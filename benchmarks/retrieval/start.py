"""One process that ranks, from its first import on.

    python -m benchmarks.retrieval.start REPOSITORY TEXTS COUNT

ranks the files of an indexed repository for the first COUNT of the texts (a JSON array), and prints one JSON object:
pairs of milliseconds by the clock and of processor time, for the imports, for the first ranking with the opening of
the index before it, and for each further ranking.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any


def main() -> None:
    top, texts = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    imports, ours = timed(lambda: importlib.import_module("benchmarks.retrieval.ours"))

    def first() -> Any:
        kb = ours.open_index(top)
        ours.candidates(kb, top, texts[0])
        return kb

    opened, kb = timed(first)
    further = []
    for text in texts[1 : int(sys.argv[3])]:
        spent, _ = timed(partial(ours.candidates, kb, top, text))
        further.append(spent)
    print(json.dumps({"imports": imports, "first": opened, "further": further}))


def timed(what: Callable[[], Any]) -> tuple[tuple[float, float], Any]:
    """What it took, and what it gave."""
    began, worked = time.perf_counter(), time.process_time()
    given = what()
    return ((time.perf_counter() - began) * 1000, (time.process_time() - worked) * 1000), given


if __name__ == "__main__":
    main()
