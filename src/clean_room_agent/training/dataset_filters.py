"""Which rows are left out of a dataset, and which split a row belongs to; the same rules for all sources.

Near-duplicates are found by MinHash and confirmed by the exact Jaccard index of their word triples, without the lines
that most rows of a prompt share (its rules). Rows of one group (a task, a commit) are similar by nature, since they
share their question: they are compared only for equality, and are kept in the same split.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence

from clean_room_agent.redaction import Redactor
from clean_room_agent.training.dataset import Split, TrainingRow

Group = Callable[[TrainingRow], Hashable]
TEST_SHARE = 0.1
VALIDATION_SHARE = 0.1
SPLIT_RULE = (
    "By repository and time: of each repository's tasks (or commits) the newest 10 % are test, the newest 10 % of the others "
    "validation. All rows of a task are in the same split."
)
REPOSITORY_RULE = (
    "By repository: 10 % of the repositories, taken by chance, are test, 10 % validation, one each of three; all rows of a "
    "repository are in the same split."
)
FUNCTION_RULE = (
    "By function: functions taken by chance are test, as many as give 300 rows of the prompt that is trained, at most half of its "
    "rows; all rows of a function are in the same split."
)
TEST_ROWS = 300
"""The gate wants 200, and some turn out to be much like others."""
SHINGLE_WORDS = 3
SHARED = 0.5
"""Lines that occur in more than this share of the groups belong to the prompt itself."""
PERMUTATIONS = 128
CANDIDATE_SLACK = 0.3
"""MinHash searches this much below the threshold, so that hardly any pair at the threshold escapes it."""


def own_group(row: TrainingRow) -> Hashable:
    """The task or commit that the row comes from."""
    return row.origin.group


def fault_of(row: TrainingRow, *, max_tokens: int, count: Callable[[str], int], redactor: Redactor) -> str:
    """Why the row must be left out; "" if it can stay."""
    text = "\n".join(message.content for message in row.messages)
    if not all(message.content.strip() for message in row.messages):
        return "an empty message"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "not UTF-8"
    if sum(count(message.content) for message in row.messages) > max_tokens:
        return "longer than the bound"
    return "holds a secret" if redactor.redact(text) != text else ""


def alike(rows: Sequence[TrainingRow], *, threshold: float, group: Group = own_group) -> dict[int, str]:
    """The positions of rows like an earlier one, with the reason: the same, or nearly so in another group. Needs `data`."""
    found: dict[int, str] = {}
    texts: dict[tuple[object, ...], int] = {}
    for place, row in enumerate(rows):
        key = (*row.messages, row.label)
        if texts.setdefault(key, place) != place:
            found[place] = "duplicate"
    left = [place for place in range(len(rows)) if place not in found]
    texts_left = [
        "\n".join(message.content for message in rows[place].messages if message.role != "system")
        for place in left
    ]
    near = near_duplicates(texts_left, [group(rows[place]) for place in left], threshold=threshold)
    return found | {left[place]: "near-duplicate" for place in near}


def near_duplicates(texts: Sequence[str], groups: Sequence[Hashable], *, threshold: float) -> tuple[int, ...]:
    """The positions of texts that nearly duplicate an earlier, kept text of another group."""
    from datasketch import MinHash, MinHashLSH

    shingles = _shingles(texts, groups)
    index = MinHashLSH(threshold=max(threshold - CANDIDATE_SLACK, 0.05), num_perm=PERMUTATIONS)
    empty = MinHash(num_perm=PERMUTATIONS, seed=1)
    dropped = []
    for place, own in enumerate(shingles):
        sketch = empty.copy()
        sketch.update_batch([shingle.encode() for shingle in sorted(own)])
        others = (other for other in index.query(sketch) if groups[other] != groups[place])
        if any(jaccard(own, shingles[other]) >= threshold for other in others):
            dropped.append(place)
        else:
            index.insert(place, sketch)
    return tuple(dropped)


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """The size of the intersection divided by that of the union."""
    return len(one & other) / len(one | other) if one or other else 1.0


def cap(
    rows: Sequence[TrainingRow], *, per_group: int, per_repository: int, group: Group = own_group
) -> dict[int, str]:
    """The positions of rows beyond the limits, with the reason. Which ones stay depends on their ids, and so is random."""
    found: dict[int, str] = {}
    for most, reason, key in (
        (per_group, "more than the plan takes of one task", group),
        (per_repository, "more than the plan takes of one repository", lambda row: row.origin.repo),
    ):
        counts: Counter[Hashable] = Counter()
        for place in sorted(range(len(rows)), key=lambda place: rows[place].id):
            if place in found:
                continue
            counts[key(rows[place])] += 1
            if counts[key(rows[place])] > most:
                found[place] = reason
    return found


def balance(rows: Sequence[TrainingRow], *, max_ratio: float) -> dict[int, str]:
    """The positions of rows whose one-word answer is too frequent compared with the rarest one, with the reason."""
    by_answer: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        answer = "".join(message.content for message in row.completion)
        if len(answer.split()) == 1:
            by_answer[answer].append(place)
    if len(by_answer) < 2 or len(rows) != sum(map(len, by_answer.values())):
        return {}
    most = int(min(map(len, by_answer.values())) * max_ratio)
    found: dict[int, str] = {}
    for places in by_answer.values():
        kept = sorted(places, key=lambda place: rows[place].id)[:most]
        found |= dict.fromkeys(set(places) - set(kept), "more of its answer than the balance takes")
    return found


def split_groups(rows: Sequence[TrainingRow], group: Group = own_group) -> dict[Hashable, Split]:
    """The split of each group (see `SPLIT_RULE`); a repository of three to nine groups has at least one test group."""
    newest: dict[str, dict[Hashable, str]] = defaultdict(dict)
    for row in rows:
        times = newest[row.origin.repo]
        times[group(row)] = max(times.get(group(row), ""), row.origin.timestamp)
    found: dict[Hashable, Split] = {}
    for times in newest.values():
        ordered = sorted(times, key=lambda key: (times[key], str(key)), reverse=True)
        found |= zip(ordered, _ordered_splits(len(ordered)), strict=True)
    return found


def split_repositories(rows: Sequence[TrainingRow]) -> dict[Hashable, Split]:
    """The split of each group: see `REPOSITORY_RULE`. Which repositories are test depends on their names, and so is random."""
    names = {row.origin.repo for row in rows}
    ordered = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    split_of = dict(zip(ordered, _ordered_splits(len(ordered)), strict=True))
    return {row.origin.group: split_of[row.origin.repo] for row in rows}


def split_functions(rows: Sequence[TrainingRow], stage: str) -> dict[Hashable, Split]:
    """The split of each function with rows of this prompt, train that of all others: see `FUNCTION_RULE`. For repositories in
    which the adapter is to work itself.
    """
    counts = Counter(row.origin.group for row in rows if row.origin.stage == stage)
    most = min(TEST_ROWS, counts.total() // 2)
    found: dict[Hashable, Split] = {row.origin.group: "train" for row in rows}
    held = 0
    for group in sorted(counts, key=lambda group: hashlib.sha256(repr(group).encode()).digest()):
        if held < most and held + counts[group] <= counts.total() // 2:
            found[group] = "test"
            held += counts[group]
    return found


def _ordered_splits(count: int) -> list[Split]:
    """The splits of so many, in their order."""
    tests, validations = _share_of(count, TEST_SHARE), _share_of(count, VALIDATION_SHARE)
    rest = count - tests - validations
    parts: tuple[tuple[Split, int], ...] = (("test", tests), ("validation", validations), ("train", rest))
    return [split for split, size in parts for _ in range(size)]


def _share_of(count: int, share: float) -> int:
    return 0 if count < 3 else max(1, round(count * share))


def _shingles(texts: Sequence[str], groups: Sequence[Hashable]) -> list[frozenset[str]]:
    having: dict[str, set[Hashable]] = defaultdict(set)
    for text, group in zip(texts, groups, strict=True):
        for line in text.splitlines():
            having[line].add(group)
    total = len(set(groups))
    shared = {line for line, found in having.items() if total > 2 and len(found) > total * SHARED}
    made = []
    for text in texts:
        words = " ".join(line for line in text.splitlines() if line not in shared).split()
        last = max(len(words) - SHINGLE_WORDS, 0)
        made.append(frozenset(" ".join(words[at : at + SHINGLE_WORDS]) for at in range(last + 1)))
    return made
