"""References of the index against another tool's answers: pure, so that it can be tested."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from clean_room_agent.indexer.references.resolve import Resolved
from clean_room_agent.languages.nesting import Nested

Name = tuple[str, str]
"""A symbol by path and qualified name: several definitions of one name count as one."""
Answer = tuple[int, str, bool, Sequence[tuple[str, int, str, str]]]
"""Line, name, whether it is an attribute, and the definitions: path ("" outside), line, name, kind."""
SURE = 0.8
NO_SYMBOLS = frozenset({"param", "module", "namespace"})
VALUES = frozenset({"variable", "type_alias"})


class Compared(Struct):
    """Counts for one repository."""

    groups: int = 0
    """Uses of one name in one symbol which the other tool traces to symbols of the repository."""
    found: int = 0
    found_sure: int = 0
    right: int = 0
    wrong: int = 0
    right_sure: int = 0
    wrong_sure: int = 0
    unknown: int = 0
    """Our pairs on whose name the other tool has no answer in that symbol."""
    unknown_sure: int = 0
    by_confidence: Counter[tuple[float, str]] = field(default_factory=Counter)
    wrong_pairs: list[tuple[Name, Name, str, float]] = field(default_factory=list)
    unknown_pairs: list[tuple[Name, Name, str, float]] = field(default_factory=list)
    missed: list[tuple[Name, tuple[Name, ...], int]] = field(default_factory=list)


class Symbols:
    """The symbols of all files, asked for by line."""

    def __init__(self, files: Mapping[str, Nested]) -> None:
        self._files = files
        self._by_line: dict[str, dict[int, int]] = {}

    def around(self, path: str, line: int) -> int:
        """The place of the innermost symbol on the line; -1 where there is none."""
        return self._lines(path).get(line, -1)

    def called(self, path: str, place: int) -> Name:
        """The symbol by name."""
        return path, self._files[path].names[place]

    def defined(self, target: tuple[str, int, str, str], *, is_attribute: bool) -> Name | None:
        """The symbol that a definition is; None for parameters, locals and attributes that only methods assign.

        Where a method assigns an attribute that its class's body declares, the two are one.
        """
        path, line, name, kind = target
        if path not in self._files or kind in NO_SYMBOLS:
            return None
        nested = self._files[path]
        place = self.around(path, line)
        while place >= 0:
            one = nested.definitions[place]
            is_value = nested.kinds[place] in VALUES
            if one.name == name and (is_value or kind != "statement"):
                return self.called(path, place)
            if not is_value:
                break
            place = nested.parents[place]
        if is_attribute and place >= 0 and nested.kinds[place] == "method":
            place = nested.parents[place]
        return self._again(path, place, name)

    def _again(self, path: str, scope: int, name: str) -> Name | None:
        """A variable that is assigned once more in its scope."""
        nested = self._files[path]
        if scope >= 0 and nested.kinds[scope] != "class":
            return None
        wanted = f"{nested.names[scope]}.{name}" if scope >= 0 else name
        return (path, wanted) if wanted in nested.names else None

    def _lines(self, path: str) -> dict[int, int]:
        known = self._by_line.get(path)
        if known is None:
            known = {}
            for place, one in enumerate(self._files[path].definitions):
                for line in range(one.start_line, one.end_line + 1):
                    known[line] = place
            self._by_line[path] = known
        return known


def compare(
    files: Mapping[str, Nested], ours: Mapping[str, Resolved], answers: Iterable[tuple[str, Sequence[Answer]]]
) -> Compared:
    """Ours beside the other tool's, for the files that it was asked about."""
    symbols = Symbols(files)
    result = Compared()
    for path, said in answers:
        if path in files:
            _compare_file(path, said, symbols, ours[path], result)
    return result


def _compare_file(
    path: str, said: Sequence[Answer], symbols: Symbols, ours: Resolved, result: Compared
) -> None:
    groups: dict[tuple[Name, frozenset[Name]], int] = {}
    possible: dict[Name, set[Name]] = defaultdict(set)
    answered: dict[Name, set[str]] = defaultdict(set)
    silent: dict[Name, set[str]] = defaultdict(set)
    for line, name, is_attribute, targets in said:
        place = symbols.around(path, line)
        if place < 0:
            continue
        caller = symbols.called(path, place)
        (answered if targets else silent)[caller].add(name)
        known = {
            one
            for target in targets
            if (one := symbols.defined(target, is_attribute=is_attribute)) is not None
        }
        possible[caller] |= known
        if known and any(one != caller for one in known):
            groups.setdefault((caller, frozenset(known)), line)
    pairs: dict[tuple[Name, Name], tuple[float, str]] = {}
    for caller_place, callee_path, callee_place, kind, confidence in ours.references:
        pair = symbols.called(path, caller_place), symbols.called(callee_path, callee_place)
        pairs[pair] = max(pairs.get(pair, (0.0, "")), (confidence, kind))
    _recall(groups, pairs, result)
    for (caller, callee), (confidence, kind) in sorted(pairs.items()):
        simple = callee[1].rpartition(".")[2]
        if callee in possible[caller]:
            verdict = "right"
        elif simple in silent[caller] or simple not in answered[caller]:
            verdict = "unknown"
            result.unknown_pairs.append((caller, callee, kind, confidence))
        else:
            verdict = "wrong"
            result.wrong_pairs.append((caller, callee, kind, confidence))
        result.by_confidence[confidence, verdict] += 1
        for suffix in ("", "_sure") if confidence >= SURE else ("",):
            counted = f"{verdict}{suffix}"
            setattr(result, counted, getattr(result, counted) + 1)


def _recall(
    groups: Mapping[tuple[Name, frozenset[Name]], int],
    pairs: Mapping[tuple[Name, Name], tuple[float, str]],
    result: Compared,
) -> None:
    for (caller, targets), line in groups.items():
        best = max((pairs[caller, one][0] for one in targets if (caller, one) in pairs), default=0.0)
        result.groups += 1
        result.found += best > 0
        result.found_sure += best >= SURE
        if not best:
            result.missed.append((caller, tuple(sorted(targets)), line))
