"""Which definition stands inside which, and which of them count."""

from clean_room_agent.languages.nesting import nest
from clean_room_agent.languages.parsed import Definition


def definition(name: str, kind: str, start: int, end: int) -> Definition:
    return Definition(name, kind, start, end, 1, 1, name, holds=kind in {"class", "function"})


def outline(*definitions: Definition) -> list[tuple[str, str, int]]:
    nested = nest(definitions)
    return list(zip(nested.names, nested.kinds, nested.parents, strict=True))


def test_what_a_class_holds_are_methods_of_qualified_names() -> None:
    assert outline(
        definition("inner", "function", 30, 40),
        definition("m", "function", 20, 50),
        definition("K", "class", 10, 60),
        definition("f", "function", 60, 70),
    ) == [("K", "class", -1), ("K.m", "method", 0), ("K.m.inner", "function", 1), ("f", "function", -1)]


def test_the_enclosing_comes_first_where_both_begin_together() -> None:
    assert outline(definition("b", "variable", 0, 5), definition("A", "class", 0, 9)) == [
        ("A", "class", -1),
        ("A.b", "variable", 0),
    ]


def test_a_local_variable_is_no_symbol_and_a_repeated_one_counts_once() -> None:
    assert outline(
        definition("f", "function", 0, 10),
        definition("x", "variable", 2, 4),
        definition("y", "variable", 20, 22),
        definition("y", "variable", 30, 32),
    ) == [("f", "function", -1), ("y", "variable", -1)]


def test_a_repeated_function_counts_each_time() -> None:
    assert outline(definition("f", "function", 0, 5), definition("f", "function", 5, 9)) == [
        ("f", "function", -1),
        ("f", "function", -1),
    ]


def test_the_source_may_spell_out_the_owner() -> None:
    assert outline(definition("send", "function", 0, 9)._replace(owner="res")) == [
        ("res.send", "function", -1)
    ]


def test_keys_of_objects_count_where_somebody_holds_the_object() -> None:
    key = definition("key", "function", 3, 5)._replace(needs_holder=True)
    assert outline(key) == []
    held = definition("table", "variable", 0, 9)._replace(holds=True)
    assert outline(held, key) == [("table", "variable", -1), ("table.key", "function", 0)]


def test_a_definition_without_a_name_is_none() -> None:
    assert outline(definition("", "function", 0, 9)) == []
