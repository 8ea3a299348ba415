"""Shell completion at TAB. Imports little and runs no git: a person is waiting, and did not ask to run a program.

The scripts in `completion_scripts/` send the words of the line, the one under the cursor last (bash: the line as it
stands, and the characters at which bash begins a new word). The answer's first line says how to go on:

    words   a line for each: the whole word, a tab, what it means (bash: what it inserts, already escaped)
    open    the same, and the word goes on: no blank after it
    files   names of files; `folders`: of folders alone
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from clean_room_agent.artifacts.names import NEWEST_RUN, RUN_BY_AGE, SHORT_LENGTH, short_id, split_place
from clean_room_agent.cli.bash_words import Typed, read_line, write_words

TABLE = Path(__file__).with_name("completion.json")
MAX_RUNS = 30
"""Runs that are offered before an id is typed."""
SHOWN = 72
"""Characters of a description."""

Named = Sequence[tuple[str, str]]


class Offer(Struct, frozen=True, kw_only=True):
    """Completions for the word under the cursor."""

    how: str = "words"
    words: Named = ()


class Line(Struct):
    """The words before the cursor, parsed as a command line."""

    command: Any
    arguments: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    """Values by an option's last name; "" for a flag."""
    awaits: Any = None
    """The option whose value comes next."""
    only_arguments: bool = False


def tell_shell(shell: str, words: Sequence[str]) -> None:
    """Print the completions for the shell; nothing for an unknown shell, or for bash without its two words."""
    if shell == "bash" and len(words) == 2:
        typed = read_line(*words)
        write_offer(_for_bash(complete(typed.words), typed))
    elif shell in {"zsh", "fish"}:
        write_offer(complete(words))


def write_offer(offer: Offer) -> None:
    """Print one line per word; words that a terminal could not show unchanged are not offered."""
    lines = [f"{word}\t{told}" if told else word for word, told in offer.words]
    sys.stdout.write("\n".join([offer.how, *lines]) + "\n")


def complete(words: Sequence[str]) -> Offer:
    """Completions for the last of `words`, which follow the program's name."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    *before, word = words or [""]
    line = _read(table, before)
    if line is None:
        return Offer()
    if line.awaits is not None:
        return _values(table, line, line.awaits["kind"], word)
    if word.startswith("-") and not line.only_arguments:
        return _value_of_flag(table, line, word) if "=" in word else _flags(line, word)
    return _arguments(table, line, word)


def _arguments(table: Any, line: Line, word: str) -> Offer:
    """Completions for commands or arguments; for flags if nothing is known about the argument."""
    if "commands" in line.command:
        inner = line.command["commands"]
        return Offer(words=[(each, inner[each]["help"]) for each in inner if each.startswith(word)])
    offer = _values(table, line, _kind_of_next(line), word)
    return offer if word or offer.words or offer.how in {"files", "folders"} else _flags(line, word)


def _value_of_flag(table: Any, line: Line, word: str) -> Offer:
    """Completions for what follows the equals sign."""
    name, _, value = word.partition("=")
    option = _find(line.command, name)
    if option is None or option["kind"] is None:
        return Offer()
    offer = _values(table, line, option["kind"], value)
    return Offer(how=offer.how, words=[(f"{name}={each}", told) for each, told in offer.words])


def _read(table: Any, words: Sequence[str]) -> Line | None:
    """The line so far; None if it names no command."""
    line = Line(command=table)
    if words[:1] == ["help"]:
        words = words[1:]
    for word in words:
        if line.awaits is not None:
            line.given[line.awaits["names"][-1]] = word
            line.awaits = None
        elif word == "--":
            line.only_arguments = True
        elif word.startswith("-") and word != "-" and not line.only_arguments:
            name, equals, value = word.partition("=")
            option = _find(line.command, name)
            if option is None:
                continue
            line.given[option["names"][-1]] = value
            if option["kind"] is not None and not equals:
                line.awaits = option
        elif "commands" in line.command:
            line.command = line.command["commands"].get(word)
            if line.command is None:
                return None
        else:
            line.arguments.append(word)
    return line


def _find(command: Any, name: str) -> Any:
    return next((each for each in command.get("options", ()) if name in each["names"]), None)


def _flags(line: Line, word: str) -> Offer:
    offered = [
        each
        for each in line.command.get("options", ())
        if each["again"] or each["names"][-1] not in line.given
    ]
    return Offer(
        words=[(name, each["help"]) for each in offered for name in each["names"] if name.startswith(word)]
    )


def _kind_of_next(line: Line) -> str | list[str]:
    known = line.command["arguments"]
    place = len(line.arguments)
    if place < len(known):
        return known[place]["kind"]  # type: ignore[no-any-return]
    return known[-1]["kind"] if known and known[-1]["again"] else ""


def _values(table: Any, line: Line, kind: str | list[str], word: str) -> Offer:
    """Values of this kind that begin with `word`."""
    if isinstance(kind, list):
        return Offer(words=[(each, "") for each in kind if each.startswith(word)])
    match kind:
        case "file" | "folder":
            return Offer(how=f"{kind}s")
        case "stages":
            done, comma, last = word.rpartition(",")
            left = [each for each, _ in table["words"]["stages"] if each not in done.split(",")]
            words = [(f"{done}{comma}{each}", "") for each in left if each.startswith(last)]
            return Offer(how="open", words=words)
        case "stage" | "prompt" | "key":
            return Offer(
                words=[(each, _short(told)) for each, told in table["words"][kind] if each.startswith(word)]
            )
        case "run" | "place" | "path" | "adapter":
            return _recorded(line, kind, word)
        case _:
            return Offer()


def _recorded(line: Line, kind: str, word: str) -> Offer:
    """Names from the record; none if the user has no record here, or it cannot be read."""
    from clean_room_agent.errors import CraError

    given = line.given.get("--repo")
    try:
        with _open_record(Path(given).expanduser() if given else Path.cwd()) as (conn, safe):
            offer = _from_record(conn, line, kind, word)
    except (CraError, OSError):
        return Offer()
    # A word that had to be changed to be shown would not be the word; shells end it at a tab or line feed.
    shown = [
        (name, _short(safe(told)))
        for name, told in offer.words
        if safe(name) == name and not {"\t", "\n"} & set(name)
    ]
    return Offer(how=offer.how, words=shown)


def _from_record(conn: Any, line: Line, kind: str, word: str) -> Offer:
    from clean_room_agent.db.raw.completion_names import name_adapters, name_paths, name_places

    if kind == "adapter":
        return Offer(words=[entry for entry in name_adapters(conn) if entry[0].startswith(word)])
    if kind == "path":
        run = _task(conn, split_place((line.arguments or [NEWEST_RUN])[0])[0])
        return (
            Offer(words=[entry for entry in name_paths(conn, run) if entry[0].startswith(word)])
            if run
            else Offer()
        )
    run, slash, place = word.partition("/")
    if kind == "place" and slash:
        task_id = _task(conn, run)
        known = name_places(conn, task_id) if task_id else ()
        return Offer(words=[(f"{run}/{name}", told) for name, told in known if name.startswith(place)])
    # `RUN` may be all, or `/PLACE` may follow.
    return Offer(
        how="open" if kind == "place" and re.fullmatch(RUN_BY_AGE, word) else "words", words=_runs(conn, word)
    )


def _runs(conn: Any, word: str) -> Named:
    """Runs by age if the word begins with `@`, otherwise by id; the newest first."""
    from clean_room_agent.db.raw.completion_names import name_runs

    if word.startswith(NEWEST_RUN):
        counted = [
            (f"@~{number}" if number else NEWEST_RUN, told) for number, (_, told) in enumerate(_newest(conn))
        ]
        return [entry for entry in counted if entry[0].startswith(word)]
    found = name_runs(conn, word, limit=MAX_RUNS)
    names = [(task_id if len(word) > SHORT_LENGTH else short_id(task_id), told) for task_id, told in found]
    newest = [] if word else [(NEWEST_RUN, told) for _, told in _newest(conn)[:1]]
    return [*newest, *names]


def _newest(conn: Any) -> Named:
    from clean_room_agent.db.raw.completion_names import name_runs

    return name_runs(conn, "", limit=MAX_RUNS, replays=False)


def _task(conn: Any, run: str) -> str | None:
    """The whole id of the run that the user named."""
    from clean_room_agent.db.raw.runs import find_task
    from clean_room_agent.errors import UsageError

    try:
        return find_task(conn, run)
    except UsageError:
        return None


@contextlib.contextmanager
def _open_record(place: Path) -> Iterator[tuple[Any, Any]]:
    """A connection to the record of the repository around `place`, and a function that makes its texts safe to show.

    Raises:
        CraError: there is none, or it is not the user's own, or of another version, since completion does not migrate
            it.
    """
    from clean_room_agent.cli.output import Display
    from clean_room_agent.db.connection import connect_file
    from clean_room_agent.errors import UsageError
    from clean_room_agent.trust import is_ours
    from clean_room_agent.workspace import FOLDER, Workspace

    above = place.absolute()
    top = next((each for each in (above, *above.parents) if (each / FOLDER).is_dir()), above)
    workspace = Workspace(repo=top)
    if not is_ours(workspace.folder):
        raise UsageError(f"{workspace.folder} is not known to be yours")
    display = Display(os.environ)
    display.repo = top
    with contextlib.closing(connect_file("raw", workspace.raw, read_only=True)) as conn:
        yield conn, display.safe


def _short(told: str) -> str:
    """The first line of a description."""
    line = " ".join(told.split("\n", 1)[0].split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


def _for_bash(offer: Offer, typed: Typed) -> Offer:
    """The words as bash inserts them, without descriptions, which it does not show."""
    written, is_beginning = write_words([word for word, _ in offer.words], typed)
    return Offer(how="open" if is_beginning else offer.how, words=[(word, "") for word in written])
