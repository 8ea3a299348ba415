"""aider's repository map, without a model: run by the interpreter of an environment that has aider.

    python aider_map.py REPOSITORY FILE_LIST

The map is made as aider makes it, of the files listed (separated by NUL), and the seconds of that alone are printed.
Tokens are estimated by length, which is quicker than aider's own count.
"""

import importlib
import sys
import time
from pathlib import Path

MAP_TOKENS = 1024
"""aider's default."""


class Model:
    """What the map asks of a model."""

    def token_count(self, text: str) -> int:
        """About four characters are a token."""
        return len(text) // 4


def main() -> None:
    top, listed = Path(sys.argv[1]), Path(sys.argv[2])
    paths = [str(top / path) for path in listed.read_text(encoding="utf-8").split("\0")]
    talk = importlib.import_module("aider.io").InputOutput(pretty=False, yes=True, fancy_input=False)
    maps = importlib.import_module("aider.repomap")
    began = time.perf_counter()
    made = maps.RepoMap(map_tokens=MAP_TOKENS, root=str(top), main_model=Model(), io=talk)
    text = made.get_repo_map([], paths)
    if not text:
        sys.exit("aider made no map")
    print(f"\n{time.perf_counter() - began}")


if __name__ == "__main__":
    main()
