"""Reading newline-delimited JSON as it arrives: in pieces that end anywhere, also inside a character."""

MAX_LINE_BYTES = 8_000_000


class LineTooLongError(ValueError):
    """A line grew beyond `MAX_LINE_BYTES`."""


class LineSplitter:
    """Puts lines together. Lines come without their end; blank ones are left out."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes.

        Raises:
            LineTooLongError: the line under way has no end in sight.
        """
        first, *others = data.split(b"\n")
        self._hold(first)
        if not others:
            return []
        lines = [self._take(), *others[:-1]]
        self._hold(others[-1])
        return [line for line in lines if line.strip()]

    def end(self) -> list[bytes]:
        """The last line, where its end did not come."""
        last = self._take()
        return [last] if last.strip() else []

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > MAX_LINE_BYTES:
            raise LineTooLongError(f"a line of more than {MAX_LINE_BYTES} bytes")
        self._parts.append(part)

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        return line
