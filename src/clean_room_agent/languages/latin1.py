"""Sources decoded as Latin-1, so that string indexes are byte offsets, and names converted back to UTF-8."""

from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.parsed import RawImport


def as_bytes(nested: Nested) -> Nested:
    """Convert names and signatures from UTF-8 to the latin-1 reading of the same bytes."""
    definitions = [
        one
        if one.signature.isascii()
        else one._replace(name=as_latin1(one.name), signature=as_latin1(one.signature))
        for one in nested.definitions
    ]
    return nested._replace(definitions=definitions, names=[as_latin1(name) for name in nested.names])


def import_as_bytes(one: RawImport) -> RawImport:
    """Convert the names of an import in the same way."""
    return one._replace(
        target=as_latin1(one.target),
        names=tuple(map(as_latin1, one.names)),
        aliases=tuple(map(as_latin1, one.aliases)),
    )


def real_name(text: str) -> str:
    """Convert a name that was read as latin-1 back to what its UTF-8 bytes say."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def as_latin1(text: str) -> str:
    """Convert a name to the latin-1 reading of its UTF-8 bytes."""
    return text if text.isascii() else text.encode().decode("latin-1")
