"""Keeps a bounded part of a stream of bytes: both ends of it, or its lines."""

from collections.abc import Callable

SLACK = 1 << 16
"""Bytes that the tail may grow by before it is cut back."""


class Capture:
    """The first and the last half of `bound` bytes of a stream of any length."""

    def __init__(self, bound: int, heard: Callable[[bytes], None] | None = None) -> None:
        """`heard` is given each chunk as it comes."""
        self._heard = heard
        self.half = max(1, bound // 2)
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """The next chunk of the stream has come."""
        if self._heard is not None:
            self._heard(chunk)
        self.total += len(chunk)
        package = self.half - len(self.head)
        if package > 0:
            self.head += chunk[:package]
            chunk = chunk[package:]
        self.tail += chunk
        if len(self.tail) > 2 * self.half + SLACK:
            del self.tail[: -self.half]

    def data(self) -> bytes:
        """The head and the tail, joined."""
        return bytes(self.head + self.tail[-self.half :])

    def cut(self) -> int:
        """How many bytes stood between them."""
        return self.total - len(self.data())


def marked(data: bytes, cut: int) -> bytes:
    """A bounded stream with a line where `cut` bytes were left out."""
    if cut == 0:
        return data
    middle = len(data) // 2
    return data[:middle] + b"\n[... %d bytes left out ...]\n" % cut + data[middle:]


class Pieces:
    """A stream of bytes cut at a separator; the last piece is what follows the last separator, if anything."""

    def __init__(self, separator: bytes) -> None:
        self.separator = separator
        self.whole: list[bytes] = []
        self.open = b""

    def feed(self, chunk: bytes) -> None:
        """The next chunk of the stream has come."""
        *whole, self.open = (self.open + chunk).split(self.separator)
        self.whole.extend(whole)

    def take(self) -> list[bytes]:
        """The pieces that are whole and were not taken yet."""
        whole, self.whole = self.whole, []
        return whole

    def rest(self) -> list[bytes]:
        """All that was not taken, once the stream has ended."""
        return [*self.take(), *([self.open] if self.open else [])]
