"""What each test of a value lets through; whole texts are `test_redaction.py`'s."""

import pytest

from clean_room_agent.secret_patterns import (
    entropy,
    has_all_kinds,
    is_basic,
    is_credential,
    is_login,
    is_password,
    is_random,
    is_varied,
    shapes_in,
)

RANDOM = "aB3dE5fG7h" + "J9kL1m"
UUID = "3f6c1c52-9d0b-4a77-8a53-6b1f0e2d9c41"
PLACEHOLDERS = (
    "changeme",
    "tiger",
    "test123",
    "$TOKEN",
    "<your-key>",
    "xxxxxxxxxxxx",
    "your_password",
    "%(token)s",
)


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_what_stands_for_a_secret_is_none(value: str) -> None:
    judges = (is_varied, is_random, is_password, is_credential, is_login)
    assert [judge(value) for judge in judges] == [False] * len(judges)


@pytest.mark.parametrize("judge", [is_random, is_password, is_credential])
def test_a_secret_that_is_hidden_already_is_none(judge: object) -> None:
    assert callable(judge)
    assert not judge("[secret:1a2b3c4d]")


@pytest.mark.parametrize("value", [RANDOM, UUID, "qwrtpsdfghjkbcdf", "hunter2!", "Tr0ub4dor&3"])
def test_what_nobody_can_guess_is_random(value: str) -> None:
    assert is_random(value)


@pytest.mark.parametrize(
    "value",
    [
        "src/clean_room_agent/cli.py",
        "getUserById2Factor",
        "correct-horse-battery",
        "12345678901234567890",
        "f(x)[0]",
    ],
)
def test_names_words_paths_and_numbers_are_not(value: str) -> None:
    assert not is_random(value)


def test_a_password_may_be_simpler_than_a_random_value() -> None:
    assert [is_password(value) for value in ("blue-horse-42", "winter!", "bluehorse", "/run/password1")] == [
        True,
        True,
        False,
        False,
    ]
    assert not is_random("blue-horse-42")


def test_a_login_s_password_has_letters_and_a_digit_or_a_sign() -> None:
    assert [is_login(value) for value in ("hunter2", "wheel@", "staff", "1000")] == [True, True, False, False]


def test_basic_credentials_are_a_name_and_a_password_in_base64() -> None:
    assert is_basic("YWRhOmVuZ2luZQ==")  # ada:engine
    assert not is_basic("YWRhIGVuZ2luZQ==")  # ada engine


def test_characters_that_repeat_say_little() -> None:
    assert entropy("aaaa") == 0
    assert entropy("abcd") == 2
    assert entropy("aabb") == 1


def test_all_kinds_are_small_letters_capitals_and_digits() -> None:
    assert [has_all_kinds(value) for value in ("aB3", "ab3", "AB3", "aBc")] == [True, False, False, False]


def test_the_place_of_a_secret_is_that_of_its_value_alone() -> None:
    text = f"x = 1\ntoken = '{RANDOM}'\n"
    assert {text[start:end] for start, end in shapes_in(text)} == {RANDOM}


@pytest.mark.parametrize(
    "name", ["passwd", "PASSWORD", "Api_Key", "acce\u017fs-\u212aey", "\u017fecret", "to\u212aen", "cred"]
)
def test_a_value_is_found_by_its_name_in_any_case_that_unicode_has(name: str) -> None:
    text = f"{name} = '{RANDOM}'"
    assert [text[start:end] for start, end in shapes_in(text)] == [RANDOM]


@pytest.mark.parametrize("indent", [0, 80])
def test_a_line_of_a_private_key_is_found_with_the_widest_margin(indent: int) -> None:
    line = (RANDOM * 4)[:64]
    text = f"+{' ' * indent}{line}{' ' * indent}"
    assert [text[start:end] for start, end in shapes_in(text)] == [line]
