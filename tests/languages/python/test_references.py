"""What annotations mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.languages.python.references import of_annotation


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
def test_any_text_can_be_an_annotation(text: str) -> None:
    of_annotation(text)
