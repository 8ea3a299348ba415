import errno
import sys

from clean_room_agent.command_failures import SHOWN, failed, not_started, unwatched


def test_a_program_that_is_missing_is_named_with_its_remedy() -> None:
    error = not_started(("ctags", "-R"), errno.ENOENT)
    assert error.message == "cannot start ctags: No such file or directory"
    assert error.hint == "install ctags, or put it on PATH"
    assert (error.command, error.returncode) == (("ctags", "-R"), None)


def test_a_failure_has_the_program_s_last_words_and_all_that_it_said() -> None:
    error = failed(("git", "fetch"), "ended with 128", 128, b"out", b"x" * SHOWN + b"fatal: no remote\n")
    assert error.message.startswith("git fetch: ended with 128: xxx")
    assert error.message.endswith("fatal: no remote")
    assert len(error.message) == len("git fetch: ended with 128: ") + SHOWN
    assert (error.returncode, error.stdout, len(error.stderr)) == (128, b"out", SHOWN + 17)


def test_a_program_that_failed_in_silence_is_quoted_with_nothing() -> None:
    assert failed(("false",), "ended with 1", 1, b"", b" \n").message == "false: ended with 1"


def test_words_that_are_no_text_are_shown_all_the_same() -> None:
    assert failed(("a",), "ended with 1", 1, b"", b"\xff!").message == "a: ended with 1: \ufffd!"


def test_a_python_that_does_not_start_is_named_beside_the_command() -> None:
    error = unwatched(("make",), b"libpython3.11.so: cannot open shared object file")
    assert error.message == (
        f"cannot start make: the Python that watches over it ({sys.executable}) does not start: "
        "libpython3.11.so: cannot open shared object file"
    )
    assert "LD_LIBRARY_PATH" in error.hint
