"""Contents of files: text, decoded so that encoding, byte-order mark, line endings and final newline survive; and writing
that leaves the old content or the new, never half of it, after a crash or a power cut.
"""

import contextlib
import errno
import hashlib
import os
import re
import stat
from pathlib import Path

from msgspec import Struct

from clean_room_agent.errors import UsageError, remedy_for
from clean_room_agent.safe_open import open_named

MAX_TEXT_BYTES = 2_000_000
BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
DECLARED = rb"(?m)^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)"
POINTER = b"version https://git-lfs.github.com/spec/"
NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF})
IDENT = re.compile(rb"\$Id:[^$\r\n]*\$")
"""What git writes for `$Id$` in files with the attribute `ident`."""
MAX_GIVEN_BYTES = 64_000_000
"""The largest file named by the user that is read: a plan, a manifest."""


class NotTextError(ValueError):
    """The bytes are not text that survives a round trip; the message says why."""


class TextFile(Struct, frozen=True, kw_only=True):
    """A decoded file. `text` has LF line endings, unless the file mixes them; then it keeps them as they are."""

    text: str
    encoding: str
    bom: bytes
    crlf: bool

    def encode(self, text: str) -> bytes:
        """`text` in this file's encoding and with its line endings.

        Raises:
            NotTextError: `text` contains a character that the file's encoding lacks.
        """
        body = text.replace("\n", "\r\n") if self.crlf else text
        try:
            return self.bom + body.encode(self.encoding)
        except UnicodeEncodeError as exc:
            raise NotTextError(
                f"{exc.object[exc.start]!r} does not exist in the file's encoding {self.encoding}"
            ) from exc


def content_hash(data: bytes) -> str:
    """The hex SHA-256 of what git would store of a text: line ends and expanded `$Id$`s, which a checkout may change but no line
    of code depends on, do not count. Other conversions (filters, encodings) do.
    """
    return hashlib.sha256(IDENT.sub(b"$Id$", data.replace(b"\r\n", b"\n"))).hexdigest()


def is_pointer(data: bytes) -> bool:
    """Whether the bytes are a git-lfs pointer (specification, version 1)."""
    return data.startswith(POINTER)


def decode(data: bytes, *, max_bytes: int = MAX_TEXT_BYTES) -> TextFile:
    """The file's text and encoding, such that `decode(data).encode(text) == data`.

    Raises:
        NotTextError: the file is too large, binary, a git-lfs pointer, or does not survive a round trip.
    """
    if is_pointer(data):
        raise NotTextError("it is an LFS pointer, not the file itself")
    if len(data) > max_bytes:
        raise NotTextError(f"{len(data)} bytes are more than the limit of {max_bytes}")
    bom, encoding = next(((mark, name) for mark, name in BOMS if data.startswith(mark)), (b"", "utf-8"))
    body = data[len(bom) :]
    if encoding == "utf-8" and b"\0" in body:
        raise NotTextError("binary (it holds NUL bytes)")
    text, encoding = _decode_body(body, encoding, marked=bool(bom))
    crlf = "\r\n" in text and text.count("\r\n") == text.count("\n") == text.count("\r")
    file = TextFile(text=text.replace("\r\n", "\n") if crlf else text, encoding=encoding, bom=bom, crlf=crlf)
    if file.encode(file.text) != data:
        raise NotTextError(f"no exact round trip through {encoding}")
    return file


def _decode_body(body: bytes, encoding: str, *, marked: bool) -> tuple[str, str]:
    try:
        return body.decode(encoding), encoding
    except UnicodeDecodeError as exc:
        if marked:
            raise NotTextError(f"its byte-order mark says {encoding}, its bytes do not") from exc
    declared = re.search(DECLARED, b"\n".join(body.split(b"\n")[:2]))
    fallback = declared.group(1).decode("ascii", "replace") if declared else "latin-1"
    control = sum(byte < 9 or 13 < byte < 32 for byte in body[:8192])
    if control > 0.02 * min(len(body), 8192):
        raise NotTextError("binary (too many control bytes)")
    try:
        return body.decode(fallback), fallback
    except (UnicodeDecodeError, LookupError) as exc:
        raise NotTextError(f"neither UTF-8 nor {fallback}") from exc


def atomic_write(path: Path, data: str | bytes, *, private: bool = False) -> None:
    """Replace the file's content by `data`, synced with its name; until then it has its old content.

    Anything but a regular file (a terminal, a pipe) is written to directly; a pipe that nobody reads is refused. A link
    stays, and its target is replaced.

    Args:
        path: its folder must exist.
        data: text is written as UTF-8.
        private: only the user may read it (0600); otherwise a new file gets its mode from the umask, and an old one
            keeps its own.

    Raises:
        UsageError: it cannot be written; nothing is left of the attempt.
    """
    content = data.encode() if isinstance(data, str) else data
    try:
        old_mode = _mode_of(path)
        if old_mode is not None and not stat.S_ISREG(old_mode):
            _write_to(path, content)
            return
        place = Path(os.path.realpath(path))
        kept = None if old_mode is None else old_mode & 0o777
        _replace_file(place, content, mode=0o600 if private else kept, wanted=0o600 if private else 0o666)
    except OSError as exc:
        raise UsageError(
            f"cannot write {path}: {exc.strerror or exc}",
            hint=remedy_for(exc, "name another place"),
        ) from exc


def _write_to(path: Path, content: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as exc:
        if exc.errno == errno.ENXIO:
            raise OSError(exc.errno, "nobody reads it") from exc
        raise
    os.set_blocking(handle, True)
    with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
        file.write(content)


def _mode_of(path: Path) -> int | None:
    """The mode of what is there, behind links; None if nothing is. Raises OSError if links lead in a circle."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def sync_file(path: Path) -> None:
    """Sync the file to disk, so that it survives a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> bool:
    """Sync the folder to disk, so that the names in it survive a power cut; False if its file system cannot do that.

    Some network and FUSE file systems sync files only. A disk that fails is an error there, too.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as exc:
        if exc.errno not in NO_FOLDER_SYNC:
            raise
        return False
    finally:
        os.close(handle)
    return True


def _replace_file(place: Path, content: bytes, *, mode: int | None, wanted: int) -> None:
    temporary = place.with_name(f".{place.name[:100]}.{os.urandom(4).hex()}.part")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, wanted)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a handle, not a path
            if mode is not None:
                os.fchmod(handle, mode)
            file.write(content)
            file.flush()
            os.fsync(handle)
        temporary.replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(place.parent)


def read_given(path: Path) -> str:
    """The text of a file that the user named.

    Raises:
        UsageError: it cannot be read, is too large, or is not text in UTF-8, or in what its byte-order mark says.
    """
    try:
        with open_named(path) as file:
            data = file.read(MAX_GIVEN_BYTES + 1)
    except OSError as exc:
        raise UsageError(
            f"cannot read {path}: {exc.strerror or exc}", hint="name a text file that you can read"
        ) from exc
    if len(data) > MAX_GIVEN_BYTES:
        raise UsageError(f"cannot read {path}: it has more than {MAX_GIVEN_BYTES:,} bytes")
    mark, encoding = next((known for known in BOMS if data.startswith(known[0])), (b"", "utf-8"))
    try:
        return data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise UsageError(
            f"cannot read {path}: line {line} is not {encoding.upper()}: byte {exc.object[exc.start]:#04x}",
            hint="save it as UTF-8",
        ) from exc


def require_text(words: str, what: str) -> None:
    """Check that words from a command line or from JSON are text, which can be recorded and sent.

    Raises:
        UsageError: they contain a byte that is not UTF-8, or half a character.
    """
    try:
        words.encode()
    except UnicodeEncodeError as exc:
        raise UsageError(
            f"{what} is not text in UTF-8: character {exc.start + 1} is {words[exc.start]!a}",
            hint="write it in UTF-8, for example in a file: --issue FILE",
        ) from exc
