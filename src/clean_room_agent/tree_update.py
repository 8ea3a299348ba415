"""Replaces files of the user's tree all at once: after a kill, a power cut or a full disk, all of them are new, or all are
as before.

Each file that changes gets two temporary names beside it: `.new`, what it is to become, and `.old`, a second name of what
it is. These are written and synced before anything else changes; from then on there are only renames and removals, which
need no space.

    journal                 what is to happen to which path
    .new and .old           written and synced; if this fails, they are removed again
    mark of completeness    from here on, a killed update is completed; before, it is undone
    renames                 `.new` becomes the file, each at once; it is then no longer there, which shows that it was done
    (on an error)           the mark becomes that of an undoing, and every `.old` the file again
    removal                 of each `.old`, of the journal, of the mark

Contents are compared before each step, and those of every `.old` after the last one: what the user has changed meanwhile
is never replaced. What he has brought to its new state himself counts as done, and without a mark nothing is touched but
the temporary names.
"""

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from clean_room_agent import safe_open
from clean_room_agent.errors import RepositoryError, UsageError
from clean_room_agent.file_contents import atomic_write, sync_folder
from clean_room_agent.folders import remove_at
from clean_room_agent.json_values import from_plain, to_plain
from clean_room_agent.tree_entries import (
    ABSENT,
    NO_ATTRIBUTES,
    Attributes,
    NewFile,
    entry_state,
    exists_in,
    folders_of,
    name_twice,
    state_of,
    state_of_new,
    sync_handle,
    write_file,
)

JOURNAL = "apply.journal"
COMPLETE = "apply.complete"
"""The mark: exists if everything that the journal needs has been written and synced."""
UNDOING = "apply.undoing"
"""The same mark while what was renamed is being restored."""
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors that mean that a folder is no longer there, or that a link is in its place."""
EXECUTABLE = (":-", ":x")
"""Ends of the states of a file of which only the mode changes."""


class PathUpdate(Struct, frozen=True, kw_only=True):
    """A path that changes, with its state (`state_of`) before and after."""

    path: str
    number: int
    old: str
    new: str

    def state(self, folder: int, name: str) -> str:
        """The state of `name`, as it is compared with `old` and `new`: if only the mode changes, with the mode."""
        state = entry_state(folder, name)
        if not self.old.endswith(EXECUTABLE) or not state.startswith("file:"):
            return state
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        return state + EXECUTABLE[bool(mode & stat.S_IXUSR)]


class UpdateJournal(Struct, frozen=True, kw_only=True):
    """An update that has begun."""

    mark: Annotated[str, Meta(pattern=r"^[0-9a-f]{8}\Z")]
    """In the names of its temporary files."""
    what: str
    """Such as `applying run 3f0c8a52`."""
    units: tuple[PathUpdate, ...]
    made: tuple[str, ...]
    """Folders that are created for it, outer ones first."""
    left: tuple[str, ...]
    """Folders from which something is removed; those that are empty then are removed, too. Inner ones first."""

    def names(self, unit: PathUpdate) -> tuple[str, str]:
        """The temporary names of what the unit was and of what it becomes."""
        return f".cra-{self.mark}-{unit.number}.old", f".cra-{self.mark}-{unit.number}.new"


class Kept(Struct, frozen=True, kw_only=True):
    """What undoing an update found: paths that were restored, and what the user had changed meanwhile."""

    restored: tuple[str, ...]
    changed: tuple[str, ...]
    """In words: the path, and where its old content is."""


class _ChangedError(Exception):
    """Paths that are neither as before nor as after the update."""

    def __init__(self, *paths: str) -> None:
        super().__init__(", ".join(paths))
        self.paths = paths


def update_tree(
    top: Path,
    folder: Path,
    files: Mapping[str, NewFile | None],
    seen: Mapping[str, str],
    *,
    what: str,
    folders: Mapping[str, Attributes] = NO_ATTRIBUTES,
) -> None:
    """Give each path of `files` its new content, or remove it (None): all, or none.

    A file that replaces another keeps its mode, owner and extended attributes. Missing folders are created, and folders
    that become empty are removed.

    Args:
        top: the folder that the paths are relative to.
        folder: an existing folder for the journal; its user holds a lock, so that there is one update at a time.
        files: what each path is to become.
        seen: the state of each path (`state_of`) on which the new content is based.
        what: for messages, such as `applying run 3f0c8a52`.
        folders: attributes of folders, if they are created.

    Raises:
        RepositoryError: a path has changed since it was seen, cannot be written, or cannot keep its owner or attributes;
            nothing was changed. If restoring failed as well, the message says so, and `complete_update` goes on with it.
    """
    units = _units(files, seen)
    journal = UpdateJournal(
        mark=os.urandom(4).hex(),
        what=what,
        units=units,
        made=_missing_folders(top, units),
        left=_folders_left(files),
    )
    try:
        _remove(folder, COMPLETE)
        _remove(folder, UNDOING)
        atomic_write(folder / JOURNAL, json.dumps(to_plain(journal)), private=True)
        _prepare(top, journal, files, folders)
        atomic_write(folder / COMPLETE, b"", private=True)
        _go_forward(top, journal)
    except BaseException as error:
        _undo_after(top, folder, journal, error)
        raise
    _end(top, folder, journal)


def complete_update(top: Path, folder: Path) -> str:
    """Complete an update that a killed process left, or undo it if it was not yet written completely; returns what was
    done in words, "" if there was none.

    Raises:
        RepositoryError: it could not be completed, since the user has changed a file meanwhile: then it was undone, the
            user's content is kept, and this is said once. Or something failed, and it is still to be done.
    """
    journal = _read_journal(folder)
    if journal is None:
        return ""
    paths = _sorted_list(unit.path for unit in journal.units)
    if not (folder / COMPLETE).exists():
        with _reporting_failure(f"{journal.what} was interrupted, and undoing it failed"):
            kept = _go_back(top, folder, journal)
        _raise_if_changed(journal, kept, ())
        return f"{journal.what} was interrupted; it was undone: {paths}"
    try:
        _go_forward(top, journal)
    except BaseException as error:
        _undo_after(top, folder, journal, error)
        raise
    _end(top, folder, journal)
    return f"{journal.what} was interrupted; it was completed: {paths}"


def _units(files: Mapping[str, NewFile | None], seen: Mapping[str, str]) -> tuple[PathUpdate, ...]:
    """The units, removals first."""
    found = []
    for path, file in files.items():
        old, new = seen[path], ABSENT if file is None else state_of_new(file)
        if old == new and file is not None:  # its mode changes
            old, new = old + EXECUTABLE[not file.executable], new + EXECUTABLE[bool(file.executable)]
        found.append((new != ABSENT, path, old, new))
    return tuple(
        PathUpdate(path=path, number=number, old=old, new=new)
        for number, (_, path, old, new) in enumerate(sorted(found))
    )


def _missing_folders(top: Path, units: tuple[PathUpdate, ...]) -> tuple[str, ...]:
    wanted = {folder for unit in units if unit.new for folder in folders_of(unit.path)}
    return tuple(sorted(path for path in wanted if state_of(top, path) == ABSENT))


def _folders_left(files: Mapping[str, NewFile | None]) -> tuple[str, ...]:
    left = {folder for path, new in files.items() if new is None for folder in folders_of(path)}
    return tuple(sorted(left - files.keys(), reverse=True))


def _prepare(
    top: Path, journal: UpdateJournal, files: Mapping[str, NewFile | None], folders: Mapping[str, Attributes]
) -> None:
    """Write and sync everything that the update needs."""
    for path in journal.made:
        _make_folder(top, path, folders.get(path))
    for unit in journal.units:
        old, new = journal.names(unit)
        with _at(top, unit) as (folder, name):
            if unit.state(folder, name) != unit.old:
                raise _ChangedError(unit.path)
            if (file := files[unit.path]) is not None:
                write_file(folder, new, file, like=name if unit.old.startswith("file:") else None)
            if unit.old:
                name_twice(folder, name, old)
                if unit.state(folder, old) != unit.old:
                    raise _ChangedError(unit.path)
    _sync_folders(top, journal)


@contextlib.contextmanager
def _at(top: Path, unit: PathUpdate) -> Iterator[tuple[int, str]]:
    """The folder and the name of the unit. Errors name its path, not a temporary one."""
    try:
        with safe_open.open_parent(top, unit.path) as (folder, name):
            yield folder, name
    except OSError as error:
        error.filename, error.filename2 = unit.path, None
        raise


def _sync_folders(top: Path, journal: UpdateJournal) -> None:
    """Make sure that the names of the units stay as they are; folders that are gone are left out."""
    for unit in {unit.path.rpartition("/")[0]: unit for unit in journal.units}.values():
        try:
            with _at(top, unit) as (folder, _):
                sync_handle(folder)
        except OSError as error:
            if error.errno not in GONE:
                raise


def _make_folder(top: Path, path: str, attributes: Attributes | None) -> None:
    with safe_open.open_parent(top, path) as (folder, name):
        os.mkdir(name, 0o777 if attributes is None else 0o700, dir_fd=folder)
        if attributes is not None:
            with safe_open.open_parent(top, f"{path}/any") as (made, _):
                attributes.give(made)
        sync_handle(folder)


def _go_forward(top: Path, journal: UpdateJournal) -> None:
    """Rename, or remove, all that is not yet as it should become. Needs no space.

    Raises:
        _ChangedError: the user has changed what is still to be replaced.
        OSError: something cannot be renamed.
    """
    blocked = [unit.path for unit in journal.units if not _can_go(top, journal, unit)]
    if blocked:
        raise _ChangedError(*blocked)
    for unit in journal.units:
        try:
            with _at(top, unit) as (folder, name):
                _replace(folder, name, unit, journal.names(unit)[1])
        except OSError as error:
            if unit.new or error.errno not in GONE:
                raise  # else the user removed it with its folder
    late = [unit.path for unit in journal.units if _was_written_to(top, journal, unit)]
    if late:
        raise _ChangedError(*late)
    _sync_folders(top, journal)


def _was_written_to(top: Path, journal: UpdateJournal, unit: PathUpdate) -> bool:
    """Whether the old file was written to since it was compared, by a program that had it open."""
    old, _ = journal.names(unit)
    try:
        with _at(top, unit) as (folder, _):
            return exists_in(folder, old) and unit.state(folder, old) != unit.old
    except OSError as error:
        if error.errno not in GONE:
            raise
        return False


def _replace(folder: int, name: str, unit: PathUpdate, new: str) -> None:
    present = unit.state(folder, name)
    if unit.new == ABSENT:
        if present == unit.old:
            os.unlink(name, dir_fd=folder)
        elif present != ABSENT:
            raise _ChangedError(unit.path)
        return
    if not exists_in(folder, new) or present == unit.new:
        return
    if present != unit.old:
        raise _ChangedError(unit.path)
    os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def _can_go(top: Path, journal: UpdateJournal, unit: PathUpdate) -> bool:
    """Whether the unit is already what it should become, or still can be. What the user did with it then is theirs."""
    _, new = journal.names(unit)
    try:
        with _at(top, unit) as (folder, name):
            present = unit.state(folder, name)
            if unit.new == ABSENT:
                return present in (ABSENT, unit.old)
            if not exists_in(folder, new):
                return present != unit.old
            return present == unit.new or (present == unit.old and unit.state(folder, new) == unit.new)
    except OSError as error:
        if error.errno not in GONE:
            raise
        return unit.new == ABSENT


def _go_back(top: Path, folder: Path, journal: UpdateJournal) -> Kept:
    """Restore what the update has changed, and remove all that it made. Needs no space."""
    if (folder / COMPLETE).exists():
        (folder / COMPLETE).rename(folder / UNDOING)
        sync_folder(folder)
    begun = (folder / UNDOING).exists()
    restored: list[str] = []
    changed: list[str] = []
    for unit in reversed(journal.units):
        try:
            with _at(top, unit) as (parent, name):
                if begun:
                    words = _restore(parent, name, unit, *journal.names(unit))
                else:
                    words = None
                    for temporary in journal.names(unit):
                        remove_at(parent, temporary)
        except OSError as error:
            if error.errno not in GONE:
                raise
            was_made = not {*folders_of(unit.path)}.isdisjoint(journal.made)
            words = None if was_made or not begun else f"{unit.path} (its folder is no longer there)"
        if words == "":
            restored.append(unit.path)
        elif words is not None:
            changed.append(words)
    _sync_folders(top, journal)
    for path in reversed(journal.made):
        _remove_empty(top, path)
    _remove(folder, JOURNAL)
    _remove(folder, UNDOING)
    return Kept(restored=tuple(sorted(restored)), changed=tuple(sorted(changed)))


def _restore(folder: int, name: str, unit: PathUpdate, old: str, new: str) -> str | None:
    """Restore one path: "" if that changed it, None if there was nothing to do, else why it was left alone."""
    present, has_old = unit.state(folder, name), exists_in(folder, old)
    if present == unit.old:  # not begun, or restored already
        remove_at(folder, old)
        remove_at(folder, new)
        return None
    if exists_in(folder, new):  # it has not become this yet, or no longer is
        remove_at(folder, old)
        remove_at(folder, new)
        return unit.path
    if present != unit.new:
        return f"{unit.path} (what it was is beside it, as {old})" if has_old else unit.path
    if unit.old and not has_old:
        return f"{unit.path} (what it was is no longer beside it)"
    if has_old:
        os.rename(old, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)
    return ""


def _end(top: Path, folder: Path, journal: UpdateJournal) -> None:
    """Remove what a complete update no longer needs, the journal last."""
    with _reporting_failure(f"{journal.what} is done, but its temporary files cannot be removed"):
        for unit in journal.units:
            try:
                with _at(top, unit) as (parent, _):
                    for name in journal.names(unit):
                        remove_at(parent, name)
            except OSError as error:
                if error.errno not in GONE:
                    raise
        _sync_folders(top, journal)
        for path in journal.left:
            _remove_empty(top, path)
        # In this order: a journal without the mark would be undone.
        _remove(folder, JOURNAL)
        _remove(folder, COMPLETE)


def _undo_after(top: Path, folder: Path, journal: UpdateJournal, error: BaseException) -> None:
    """Undo the update because of the error, and raise it in words if it is one of files; else return.

    Raises:
        RepositoryError: see `update_tree`.
    """
    with _reporting_failure(f"{journal.what} failed ({_reason(error)}), and so did undoing it"):
        kept = _go_back(top, folder, journal)
    match error:
        case _ChangedError():
            _raise_if_changed(journal, kept, error.paths)
        case OSError() | UsageError():
            raise RepositoryError(
                f"{journal.what} failed: {_reason(error)}; nothing was changed", hint=_remedy(error)
            ) from error
        case _:
            pass


def _raise_if_changed(journal: UpdateJournal, kept: Kept, blocked: tuple[str, ...]) -> None:
    """Say what could not be done because the user had changed it meanwhile, if anything.

    Raises:
        RepositoryError: there is something.
    """
    if not blocked and not kept.changed:
        return
    words = f"{journal.what} was undone: changed here meanwhile, and left as they are: "
    known = {*blocked} - {each.partition(" (")[0] for each in kept.changed}
    words += ", ".join(sorted({*kept.changed, *known}))
    if kept.restored:
        words += f"; restored: {_sorted_list(kept.restored)}"
    raise RepositoryError(words, hint="look at these files; then run the command again")


@contextlib.contextmanager
def _reporting_failure(words: str) -> Iterator[None]:
    """Say in these words that a file could not be written, and that it is still to be done."""
    try:
        yield
    except OSError as error:
        raise RepositoryError(
            f"{words}: {_reason(error)}", hint=f"{_remedy(error)}; then: cra check --repair"
        ) from error


def _reason(error: BaseException) -> str:
    if not isinstance(error, OSError):
        return str(error) or type(error).__name__
    names = (name for name in (error.filename, error.filename2) if isinstance(name, str | bytes))
    return ": ".join((*dict.fromkeys(os.fsdecode(name) for name in names), error.strerror or str(error)))


def _remedy(error: OSError | UsageError) -> str:
    if isinstance(error, UsageError):
        return error.hint
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return "free some space"
        case errno.EACCES | errno.EROFS:
            return "make the files and their folders writable"
        case errno.EPERM | errno.EOPNOTSUPP:
            return (
                "the new file must be able to keep the old one's owner and attributes: do this as their owner"
            )
        case errno.EBUSY | errno.EXDEV:
            return "something is mounted there: unmount it"
        case _:
            return "remove the cause"


def _read_journal(folder: Path) -> UpdateJournal | None:
    try:
        return from_plain(json.loads(safe_open.read_bytes(folder, JOURNAL)), UpdateJournal)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise RepositoryError(
            f"{folder / JOURNAL} cannot be read: {error}",
            hint="an update of your files was interrupted: look at `git status`, then remove this file and every .cra-*",
        ) from error


def _remove(folder: Path, name: str) -> None:
    """Remove the file, and make sure that it stays removed."""
    path = folder / name
    if os.path.lexists(path):
        path.unlink()
        sync_folder(folder)


def _remove_empty(top: Path, path: str) -> None:
    with contextlib.suppress(OSError), safe_open.open_parent(top, path) as (folder, name):
        os.rmdir(name, dir_fd=folder)
        sync_handle(folder)


def _sorted_list(paths: Iterable[str]) -> str:
    return ", ".join(sorted(paths))
