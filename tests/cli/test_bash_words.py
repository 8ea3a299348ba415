"""Words as bash reads them while they are typed, and as it is given them: bash itself judges."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clean_room_agent.cli.bash_words import Typed, read_line, write_word, write_words

BREAKS = " \t\n\"'@><=;|&(:"
CLOSES = {"": "", '"': '"', "'": "'", "$'": "'"}
NAMES = st.text("$`\\'\"!*?[]{}~=:#;|&<>() -@%^,aé.x24", min_size=1, max_size=20)


def words_of(line: str) -> tuple[str, ...]:
    return read_line(line, BREAKS).words


@pytest.mark.parametrize(
    ("line", "words", "quote"),
    [
        ("cra", ("",), ""),
        ("cra show ", ("show", ""), ""),
        ("cra show 'my fi", ("show", "my fi"), "'"),
        ("cra show my\\ fi", ("show", "my fi"), ""),
        ('cra show "a b" c', ("show", "a b", "c"), ""),
        ("cra solve it's", ("solve", "its"), "'"),
        ("cra solve '# no", ("solve", "# no"), "'"),
        ('cra show "a\\$\\`\\"\\\\\\b', ("show", 'a$`"\\\\b'), '"'),
        ("cra show $'a\\x27\\\\b", ("show", "a'\\b"), "$'"),
        ('cra show $"a', ("show", "a"), '"'),
        ("cra show 'a'\\''b", ("show", "a'b"), "'"),
        ("cra show ''", ("show", ""), ""),
    ],
)
def test_a_line_that_is_not_whole_is_split_as_the_shell_does(
    line: str, words: tuple[str, ...], quote: str
) -> None:
    typed = read_line(line, BREAKS)
    assert (typed.words, typed.quote, typed.followed) == (words, quote, True)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("cra show a:b", "a:"),
        ("cra show a\\:b", ""),
        ("cra show 'a:b", ""),
        ("cra show --why='a:b", "--why="),
        ("cra show 'a':b\"c", "a:b"),
        ('cra show "a"b', ""),
        ("cra show a@b", "a"),
    ],
)
def test_bash_keeps_what_stands_before_the_last_break_or_open_quote(line: str, kept: str) -> None:
    assert read_line(line, BREAKS).kept == kept


@pytest.mark.parametrize(
    "line", ['cra show "$(echo "', "cra `", "cra <(x 'a", "cra ${x:-'", "cra $'a\\'b", "cra a\\"]
)
def test_where_the_quote_is_not_certain_only_plain_words_are_offered(line: str) -> None:
    typed = read_line(line, BREAKS)
    assert not typed.followed
    assert write_words(["plain.py", "a;b"], typed)[0] == ["plain.py"[len(typed.kept) :]]


@settings(max_examples=30)
@given(names=st.lists(NAMES, min_size=20, max_size=20))
def test_bash_reads_each_name_back_whatever_quote_is_open(names: list[str]) -> None:
    asked = [(name, quote) for name in names for quote in CLOSES]
    script = "set -H\nprintf '%s\\0'"
    for name, quote in asked:
        written = write_word(name, quote)
        closes = "" if quote and written.endswith(CLOSES[quote]) else CLOSES[quote]
        script += f" {quote}{written}{closes}"
        assert words_of(f"cra {quote}{written}{closes} ")[0] == name
    read = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    assert read.decode().split("\0")[:-1] == [name for name, _ in asked]


@pytest.mark.parametrize("quote", CLOSES)
def test_what_several_names_have_in_common_ends_in_no_escape(quote: str) -> None:
    def written(word: str, *names: str) -> tuple[list[str], bool]:
        return write_words(names, Typed(words=(word,), kept="", quote=quote, followed=True))

    assert written("a", "a b$x", "a b`x") == ([write_word("a b", quote)], True)
    assert written("a b", "a b$x", "a b`x")[0][0] == ""
    assert written("a", "ab", "abc") == (["ab", "abc"], False)
