"""Names whose characters are the source's bytes, and back."""

from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.languages.latin1 import as_bytes, import_as_bytes, real_name
from clean_room_agent.languages.nesting import nest
from clean_room_agent.languages.parsed import Definition, RawImport


@given(st.text(max_size=20))
def test_every_name_comes_back(name: str) -> None:
    one = RawImport(name, (name,), "import", (name,))
    as_read = import_as_bytes(one)
    assert len(as_read.target) == len(name.encode())
    assert real_name(as_read.target) == name
    assert tuple(map(real_name, as_read.names + as_read.aliases)) == (name, name)


def test_symbols_have_the_offsets_of_bytes() -> None:
    nested = as_bytes(nest([Definition("größe", "function", 0, 9, 1, 1, "def größe()")]))
    assert nested.names == ["größe".encode().decode("latin-1")]
    assert len(nested.definitions[0].signature) == len("def größe()".encode())


def test_what_is_no_utf8_is_replaced() -> None:
    assert real_name("\xff") == "\N{REPLACEMENT CHARACTER}"
