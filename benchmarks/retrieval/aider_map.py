"""The order of files in aider's repository map, for many tasks: run by the interpreter of an environment that has aider.

    python aider_map.py REPOSITORY CACHE < TASKS > ANSWERS

Every line of TASKS is a JSON object with `id` and `text`, of ANSWERS one with `id`, `ranked` (paths, best first),
`wall_ms` and `cpu_ms`. What the text mentions is found by aider's own code; no file is in the chat, all tracked files
are ranked, in the order in which the map comes to them. Tags are kept in CACHE, and in memory from the first task on,
which is quicker than aider's own way; so the first task's time, which reads the repository, is the only slow one.
"""

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


class Chat:
    """What aider's search for mentions asks of a conversation that has no files in it yet."""

    abs_read_only_fnames: frozenset[str] = frozenset()

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def get_all_relative_files(self) -> list[str]:
        """The tracked files."""
        return self.paths

    def get_addable_relative_files(self) -> list[str]:
        """Of them those that are not in the chat."""
        return self.paths

    def get_inchat_relative_files(self) -> list[str]:
        """None."""
        return []


def main() -> None:
    top, cache = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    # aider talks on standard output.
    answers, sys.stdout = sys.stdout, sys.stderr
    talk = importlib.import_module("aider.io").InputOutput(pretty=False, yes=True, fancy_input=False)
    maps = importlib.import_module("aider.repomap")
    coder = importlib.import_module("aider.coders.base_coder").Coder
    maps.RepoMap.TAGS_CACHE_DIR = str(cache)
    made = maps.RepoMap(root=str(top), io=talk)
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached"), cwd=top, capture_output=True, text=True, check=True
    ).stdout
    paths = [path for path in listed.split("\0") if path and (top / path).is_file()]
    made.TAGS_CACHE = remembered(made, top, paths)
    for line in sys.stdin:
        task = json.loads(line)
        began, worked = time.perf_counter(), time.process_time()
        ranked = rank(made, coder, Chat(paths), top, task["text"])
        spent = {
            "wall_ms": (time.perf_counter() - began) * 1000,
            "cpu_ms": (time.process_time() - worked) * 1000,
        }
        print(json.dumps({"id": task["id"], "ranked": ranked, **spent}), file=answers, flush=True)


def remembered(made: Any, top: Path, paths: list[str]) -> dict[str, Any]:
    """The tags of all files, read where the cache does not have them."""
    for path in paths:
        made.get_tags(str(top / path), path)
    return {key: made.TAGS_CACHE[key] for key in made.TAGS_CACHE}


def rank(made: Any, coder: Any, chat: Chat, top: Path, text: str) -> list[str]:
    """All files in the order in which the map would name them; those without a definition stand last."""
    words = coder.get_ident_mentions(chat, text)
    files = coder.get_file_mentions(chat, text) | coder.get_ident_filename_matches(chat, words)
    tags = made.get_ranked_tags([], [str(top / path) for path in chat.paths], files, words)
    return list(dict.fromkeys(tag[0] for tag in tags))


if __name__ == "__main__":
    main()
