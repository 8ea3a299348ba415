"""Signatures and annotations as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.languages.python.expressions import of_annotation, split
from clean_room_agent.languages.python.parameters import arguments, read_parameters, read_signature


@pytest.mark.parametrize(
    ("text", "parameters", "returns"),
    [
        ("def f():", [], ""),
        ("def f(self, a, b=1):", [("self", ""), ("a", ""), ("b", "")], ""),
        (
            "async def f(a: A, *args: B, c: C = 1, **kw) -> D:",
            [("a", "A"), ("args", ""), ("c", "C"), ("kw", "")],
            "D",
        ),
        ("def f(a: dict[str, int] = {'x': 1}, /, b=(1, 2)):", [("a", "dict[str, int]"), ("b", "")], ""),
        ("def f[T: (int, str)](x: T) -> 'list[T]':", [("x", "T")], "'list[T]'"),
        ("def f(\n    a,  # first, (\n    b: 'X' = ')',\n) -> None:", [("a", ""), ("b", "'X'")], "None"),
        (
            "def f(a: Callable[[int], str] = lambda x: x, *, b):",
            [("a", "Callable[[int], str]"), ("b", "")],
            "",
        ),
    ],
)
def test_what_a_signature_says(text: str, parameters: list[tuple[str, str]], returns: str) -> None:
    assert read_signature(text) == (parameters, returns)


def test_parameters_of_a_lambda() -> None:
    assert read_parameters("a, b=c, *d") == [("a", ""), ("b", ""), ("d", "")]


@pytest.mark.parametrize(
    ("head", "inside"),
    [
        ("class A:", ""),
        ("class A(B, metaclass=C):", "B, metaclass=C"),
        ("class A[T](B[T]):", "B[T]"),
        ("class A(\n    B,  # )\n    C,\n):", "\n    B,  \n    C,\n"),
    ],
)
def test_what_stands_in_a_class_head(head: str, inside: str) -> None:
    assert arguments(head) == inside


@pytest.mark.parametrize(
    ("annotation", "expression"),
    [
        ("int", ""),
        ("A", "A:"),
        ("m.A", "m.A:"),
        ("'A'", "A:"),
        ("Optional[A]", "A:"),
        ("typing.Optional['A']", "A:"),
        ("A | None", "A:"),
        ("None | 'A'", "A:"),
        ("A | B", ""),
        ("Union[A, None]", "A:"),
        ("Union[A, B]", ""),
        ("A[int]", "A:"),
        ("list[A]", ""),
        ("type[A]", "A"),
        ("ClassVar[A]", "A:"),
        ("Annotated[A, f('|')]", "A:"),
        ("Self", "~"),
        ("Callable[[A | None], B]", "Callable:"),
        ("", ""),
    ],
)
def test_what_an_annotation_means(annotation: str, expression: str) -> None:
    assert of_annotation(annotation) == expression


@given(st.text(alphabet="a,|=()[]'\" :-#", max_size=40))
def test_any_text_is_split_into_parts_that_make_it_up(text: str) -> None:
    assert ",".join(split(text, ",")) == text
    read_signature(f"def f({text}):")
    of_annotation(text)
