"""Reads and writes text files byte for byte: encoding, byte-order mark, line endings and final newline survive."""

import re

from msgspec import Struct

MAX_TEXT_BYTES = 2_000_000
BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
DECLARED = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)
POINTER = b"version https://git-lfs.github.com/spec/"


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
    declared = DECLARED.search(b"\n".join(body.split(b"\n")[:2]))
    fallback = declared.group(1).decode("ascii", "replace") if declared else "latin-1"
    control = sum(byte < 9 or 13 < byte < 32 for byte in body[:8192])
    if control > 0.02 * min(len(body), 8192):
        raise NotTextError("binary (too many control bytes)")
    try:
        return body.decode(fallback), fallback
    except (UnicodeDecodeError, LookupError) as exc:
        raise NotTextError(f"neither UTF-8 nor {fallback}") from exc
