"""The commits of a result without the goal tests that were added for it, for a branch that is not to have them.

snapshot --- goal tests --- step --- step     what was made and tested, kept under the run's refs
snapshot ------------------ step'--- step'    what is put on the branch
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from clean_room_agent.git.commits import FileChange
from clean_room_agent.orchestrator.commits import RunCommits, Tree

IMPORT = re.compile(rb"\s*(?:import\b|from\s+\S+\s+import\b|(?:const|let|var)\b.*\brequire\()")
"""A line that later tests of the file may need, too."""


def without_goal_tests(commits: RunCommits, goals: str, accepted: Sequence[str]) -> str:
    """The last of the `accepted` commits, oldest first, made anew on the snapshot without what the commit `goals` adds to it;
    it is kept under the run's refs.
    """
    base, added = commits.tree(commits.base), commits.tree(goals)
    paths = {one.path for one in commits.changed(commits.base, goals)}
    before, tip = goals, commits.base
    for commit in accepted:
        now = commits.tree(commit)
        changes = {one.path: now.change(one.path) for one in commits.changed(before, commit)}
        for path in paths & changes.keys():
            changes[path] = _without(path, base, added, now)
        before = commit
        if changes:
            tip = commits.remake(commit, changes, tip)
    return commits.keep(tip, "without-goals") if tip != commits.base else tip


def _without(path: str, base: Tree, added: Tree, now: Tree) -> FileChange | None:
    change = now.change(path)
    if change is None or change == added.change(path):
        return base.change(path)
    data = unmerged(base.data(path) or b"", added.data(path) or b"", change.data)
    if not data.strip() and base.data(path) is None:
        return None
    return FileChange(data=data, mode=change.mode)


def unmerged(base: bytes, added: bytes, now: bytes) -> bytes:
    """`now`, which was made from `added`, without what `added` has beyond `base`. What `now` changes inside of that goes with
    it; imports stay, since what `now` has of its own may need them.

        base   added   now      unmerged
        a      a       a        a
               b       b
                       c        c
    """
    old, middle, new = (text.splitlines(keepends=True) for text in (base, added, now))
    gone: set[int] = set()  # lines of `added`
    back: dict[int, list[bytes]] = {}  # lines of `base`, by the line of `added` that they come before
    for tag, i1, i2, j1, j2 in _differences(old, middle):
        imports = j1 < j2 and all(IMPORT.match(line) for line in middle[j1:j2])
        if tag != "equal" and not imports:
            gone.update(range(j1, j2))
            back[j1] = old[i1:i2]
    lines: list[bytes] = []
    for _, i1, i2, j1, j2 in _differences(middle, new):
        count = max(i2 - i1, j2 - j1)
        for offset in range(count):
            line = i1 + offset if i1 + offset < i2 else None
            lines += back.pop(line, []) if line is not None else []
            if j1 + offset < j2 and (line is None or line not in gone or IMPORT.match(middle[line])):
                lines.append(new[j1 + offset])
    return b"".join([*lines, *back.get(len(middle), [])])


def _differences(before: Sequence[bytes], after: Sequence[bytes]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
