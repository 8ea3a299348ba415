"""A small fault of a file, as it is planted to find out, or to learn, how it is repaired."""

from msgspec import Struct


class Mutation(Struct, frozen=True, kw_only=True, order=True):
    """The bytes from `start` to `end` are replaced by `new`."""

    kind: str
    start: int
    end: int
    new: str

    def applied(self, text: str) -> str:
        """The file with the fault."""
        raw = text.encode()
        return (raw[: self.start] + self.new.encode() + raw[self.end :]).decode()
