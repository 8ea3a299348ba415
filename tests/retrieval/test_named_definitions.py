"""The definitions behind names, and the tests that use them."""

from collections.abc import Callable

from tests.retrieval.world import World

from clean_room_agent.retrieval.retriever import definitions_mentioned, definitions_named

Make = Callable[..., World]
FILES = {
    "pkg/text.py": 'def slugify(text):\n    """Slugs.\n\n    >>> slugify("a b")\n    \'a-b\'\n    """\n    return text\n\n\n'
    "class Stack:\n    def pop(self):\n        pass\n",
    "tests/test_text.py": "from pkg.text import slugify\n\n\ndef test_slugify():\n    assert slugify('a')\n\n\ndef slugify_all():\n    pass\n",
}


def test_a_definition_is_found_with_its_place_documentation_and_tests(make: Make) -> None:
    source = make(FILES, imports={"tests/test_text.py": ("pkg/text.py",)}).source()
    (found,) = definitions_named(("slugify",), source)
    assert (found.path, found.kind, found.first_line, found.last_line) == ("pkg/text.py", "function", 1, 7)
    assert found.doc.startswith("Slugs.")
    assert found.test_files == ("tests/test_text.py",)


def test_definitions_of_tests_are_none_and_members_have_their_owner(make: Make) -> None:
    source = make(FILES).source()
    assert definitions_named(("slugify_all", "test_slugify", "nothing"), source) == ()
    assert [one.name for one in definitions_named(("Stack", "Stack.pop", "pop"), source)] == [
        "Stack",
        "Stack.pop",
    ]


def test_words_mention_what_looks_like_a_name_of_a_definition(make: Make) -> None:
    source = make(FILES).source()
    assert [one.name for one in definitions_mentioned("`slugify` and Stack.pop are slow", source)] == [
        "slugify",
        "Stack.pop",
    ]
    assert definitions_mentioned("the text is slow", source) == ()
