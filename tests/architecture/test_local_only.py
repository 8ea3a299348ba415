"""A run on this machine speaks with this machine's model server and with nobody else."""

import ast
import re

from tests.architecture.watched_run import Watched


def test_a_run_connects_to_the_configured_server_and_asks_for_no_other_address(watched: Watched) -> None:
    assert watched.returncode == 0, watched.stderr
    connected = {tuple(ast.literal_eval(entry.target)) for entry in watched.connections()}
    assert len(connected) == 1, "one server"
    assert connected.pop()[0] == "127.0.0.1"
    others = [entry for entry in watched.network() if entry.event != "socket.connect"]
    asked = {entry.target for entry in others if entry.event == "socket.getaddrinfo"}
    assert asked <= {"127.0.0.1"}
    assert [entry for entry in others if entry.event != "socket.getaddrinfo"] == []


def test_the_first_lines_of_a_run_say_that_it_is_local(watched: Watched) -> None:
    assert re.search(r"^\s*local only; models: ", watched.stderr, re.MULTILINE), watched.stderr[:500]
