import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testing.runs.solving import Project
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app.config_values import ConfiguredValue, render_config
from clean_room_agent.app.settings import TABLES, Overrides, load_settings, user_config_file
from clean_room_agent.cli.config import as_object, show, toml
from clean_room_agent.cli.main import run as cra
from clean_room_agent.errors import ConfigError
from clean_room_agent.workspace import Workspace


def value(key: str, given: Any, source: Any, *, required: bool = False) -> ConfiguredValue:
    return ConfiguredValue(key=key, value=given, source=source, required=required, description="")


VALUES = (
    value("models.coding", "qwen", "repository"),
    value("solve.samples", 1, "default"),
    value("testing.test_command", None, "not set", required=True),
)


def test_each_value_with_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(VALUES, as_json=False, described=True) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()][1:]
    assert lines == [
        'models.coding = "qwen"  repository',
        "solve.samples = 1  default",
        "testing.test_command =   not set, and required",
    ]


def test_json_keeps_types(capsys: pytest.CaptureFixture[str]) -> None:
    show(VALUES, as_json=True, described=False)
    told = json.loads(capsys.readouterr().out)
    assert told == as_object(VALUES)
    assert told["solve.samples"] == {"value": 1, "source": "default"}


@pytest.mark.parametrize(
    ("given", "text"), [("a b", '"a b"'), (True, "true"), ([1, 2], "[1, 2]"), (0.5, "0.5")]
)
def test_values_are_written_as_toml(given: object, text: str) -> None:
    assert toml(given) == text


URL = "http://127.0.0.1:9"


@pytest.fixture
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = user_config_file()
    path.parent.mkdir(parents=True)
    return path


def config(project: Project) -> str:
    return Workspace(repo=project.top).config.read_text()


def sources(project: Project) -> dict[str, tuple[object, str]]:
    code, out, err = project.run_here("config", "--json")
    assert code == 0, err
    return {key: (each["value"], each["source"]) for key, each in json.loads(out).items()}


def test_one_line_changes_and_every_comment_stays(till: Project) -> None:
    till.configure(URL)
    before = config(till).splitlines()
    code, out, err = till.run_here("config", "set", "models.coding", "better:7b")
    assert (code, err) == (0, "")
    assert 'models.coding = "better:7b"' in out
    after = config(till).splitlines()
    (changed,) = [place for place, line in enumerate(after) if line != before[place]]
    assert len(after) == len(before)
    assert after[changed].startswith('coding = "better:7b"')
    assert after[changed].endswith(before[changed].partition("#")[2])
    assert till.run_here("config", "get", "models.coding")[1] == "better:7b\n"


def test_a_key_that_stands_as_a_comment_is_written_there(till: Project) -> None:
    till.configure(URL)
    file = Workspace(repo=till.top).config
    file.write_text(
        file.read_text().replace("[models]\n", "[models]\n# classifier =       # yes/no judgments\n")
    )
    count = len(config(till).splitlines())
    assert till.run_here("config", "set", "models.classifier", "tiny:1b")[0] == 0
    (line,) = [line for line in config(till).splitlines() if line.startswith('classifier = "tiny:1b"')]
    assert "# yes/no judgments" in line
    assert len(config(till).splitlines()) == count


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("budget.context_window", "8192", 8192),
        ("testing.test_command", "pytest -q", "pytest -q"),
        ("testing.test_command", "123", "123"),
        ("models.escalation.coding", '["a:7b", "b:32b"]', ["a:7b", "b:32b"]),
        ("models.overrides.scope_judgment", "scope:v1", "scope:v1"),
        ("models.coding", '"quoted"', "quoted"),
    ],
)
def test_a_value_is_read_as_toml_or_as_plain_words(till: Project, key: str, text: str, value: object) -> None:
    till.configure(URL)
    assert till.run_here("config", "set", key, text)[0] == 0
    code, out, _ = till.run_here("config", "get", "--json", key)
    assert code == 0
    assert json.loads(out)[key] == {"value": value, "source": "repository"}
    load_settings(Workspace(repo=till.top).config, Overrides()).require(*TABLES)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("models.codign", "x", "did you mean models.coding?"),
        ("coding", "x", "models.coding"),
        ("models", "x", "there is no key"),
        ("budget.context_window", "many", "context_window"),
        ("models.base_url", "http://example.com", "is not this machine"),
        ("solve.max_attempts", "-1", "max_attempts"),
        ("models.api_key_env", "sk-123 456", "not the name of an environment variable"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(
    till: Project, key: str, value: str, said: str
) -> None:
    till.configure(URL)
    before = config(till)
    code, _, err = till.run_here("config", "set", key, value)
    assert code == 2
    assert said in err
    assert "sk-123" not in err
    assert config(till) == before


def test_the_users_file_is_below_the_repositorys(till: Project, user_file: Path) -> None:
    till.configure(URL)
    assert till.run_here("config", "set", "--user", "models.classifier", "tiny:1b")[0] == 0
    assert user_file.stat().st_mode & 0o777 == 0o600
    code, out, _ = till.run_here("config", "set", "--user", "models.coding", "mine:3b")
    assert code == 0
    assert "cra config unset models.coding" in out, "the repository's own value goes before it"
    seen = sources(till)
    assert seen["models.classifier"] == ("tiny:1b", "user")
    assert seen["models.coding"] == ("coder:3b", "repository")
    assert seen["models.parallel"] == (2, "default")
    assert seen["testing.lint_command"][1] == "not set"
    settings = load_settings(Workspace(repo=till.top).config, Overrides())
    assert (settings.models.classifier, settings.models.coding) == ("tiny:1b", "coder:3b")
    assert till.run_here("config", "unset", "models.coding")[0] == 0
    assert sources(till)["models.coding"] == ("mine:3b", "user")
    assert load_settings(Workspace(repo=till.top).config, Overrides()).models.coding == "mine:3b"
    assert till.run_here("config", "unset", "models.coding")[0] == 2


def test_a_users_file_that_others_can_write_is_refused(till: Project, user_file: Path) -> None:
    till.configure(URL)
    user_file.write_text('[models]\nclassifier = "theirs"\n')
    user_file.chmod(0o666)
    code, _, err = till.run_here("config", "get", "models.classifier")
    assert code == 2
    assert "chmod go-w" in err
    with pytest.raises(ConfigError, match="can be written by others"):
        load_settings(Workspace(repo=till.top).config, Overrides())


def make_writable(file: Path) -> None:
    file.chmod(0o666)


def open_the_folder(file: Path) -> None:
    file.parent.chmod(0o777)


def link_into_an_open_folder(file: Path) -> None:
    (folder := file.parent / "theirs").mkdir()
    folder.chmod(0o777)
    file.rename(folder / "config.toml")
    file.symlink_to(folder / "config.toml")


def link_in_a_circle(file: Path) -> None:
    file.unlink()
    file.symlink_to(file)


def make_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


NOT_SAFE: dict[Callable[[Path], None], str] = {
    make_writable: "can be written by others",
    open_the_folder: "can be written by others",
    link_into_an_open_folder: "theirs can be written by others",
    link_in_a_circle: "Too many levels of symbolic links",
    make_fifo: "is not a regular file",
}


@pytest.mark.parametrize("spoil", NOT_SAFE)
def test_a_users_file_that_is_not_read_is_not_written_either(
    till: Project, user_file: Path, spoil: Callable[[Path], None]
) -> None:
    till.configure(URL)
    user_file.write_text('[models]\nclassifier = "mine"\n')
    spoil(user_file)
    before = (user_file.lstat(), user_file.read_text() if user_file.is_file() else None)
    reading = till.run_here("config", "get", "models.classifier")
    assert reading[0] == 2
    assert NOT_SAFE[spoil] in reading[2]
    for words in (["set", "--user", "models.coding", "x"], ["unset", "--user", "models.classifier"]):
        assert till.run_here("config", *words) == reading
    assert till.run_here("init", "--force", "--yes") == reading
    assert before == (user_file.lstat(), user_file.read_text() if user_file.is_file() else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("folder", [False, True])
def test_what_belongs_to_another_user_is_neither_read_nor_written(
    till: Project, user_file: Path, *, folder: bool
) -> None:
    till.configure(URL)
    user_file.write_text("")
    os.chown(user_file.parent if folder else user_file, 12345, -1)
    reading = till.run_here("config", "get", "models.coding")
    assert (reading[0], "chown it to yourself" in reading[2]) == (2, True)
    assert till.run_here("config", "set", "--user", "models.coding", "x") == reading
    assert user_file.read_text() == ""


NO_TOML = {
    b"[models": "is not valid TOML",
    b'[models]\ncoding = "\0"': "is not valid TOML",
    b'coding = "\xff"': "is not UTF-8",
    b"\xff\xfe[\0": "is not UTF-8",
    b'[models]\ncoding = "a"\ncoding = "b"\n': "is not valid TOML",
    b"[budget]\ncontext_window = 99999999999999999999": "the number at budget.context_window has more than 64 bits",
    b"[testing]\ntimeout = inf": "the number at testing.timeout is not finite",
    b"models = 3\n": "[models] must be a table",
    b"[[models]]\n": "[models] must be a table",
}


@pytest.mark.parametrize("content", NO_TOML)
def test_a_file_that_cannot_be_read_is_not_changed(till: Project, user_file: Path, content: bytes) -> None:
    user_file.write_bytes(content)
    for words in (["set", "--user", "models.coding", "x"], ["unset", "--user", "models.coding"]):
        code, out, err = till.run_here("config", *words)
        assert (code, out, NO_TOML[content] in err) == (2, "", True), err
    assert user_file.read_bytes() == content


def test_a_key_with_a_free_name_can_be_removed(till: Project, user_file: Path) -> None:
    till.configure(URL)
    assert till.run_here("config", "set", "--user", "models.overrides.implement", "x")[0] == 0
    assert till.run_here("config", "unset", "--user", "models.overrides.implement")[0] == 0
    assert "implement" not in user_file.read_text()


def test_a_wrong_value_in_the_users_file_names_that_file(till: Project, user_file: Path) -> None:
    till.configure(URL)
    user_file.write_text("[budget]\ncontext_window = 0\n")
    code, _, err = till.run_here("config")
    assert code == 2
    assert str(user_file) in err.replace("\n", "")


def test_init_leaves_what_the_user_configured_to_the_users_file(till: Project, user_file: Path) -> None:
    with OllamaServer([], models=("mine:3b", "thinker:4b")) as server:
        user_file.write_text(
            f'[models]\nbase_url = "{server.base_url}"\ncoding = "mine:3b"\nparallel = 4\n[budget]\ncontext_window = 8192\n'
        )
        code, out, err = till.run_here("init", "--yes", "--reasoning", "thinker:4b", "--test-command", "true")
    assert code == 0, err
    assert str(user_file) in out
    written = tomllib.loads(config(till))
    assert "coding" not in written["models"]
    assert "parallel" not in written["models"]
    assert written["models"]["reasoning"] == "thinker:4b"
    assert '# coding = "mine:3b"' in config(till)
    seen = sources(till)
    assert seen["models.coding"] == ("mine:3b", "user")
    assert seen["models.parallel"] == (4, "user")
    assert seen["budget.context_window"] == (8192, "user")


def test_outside_of_a_repository_the_users_values_are_shown(
    tmp_path: Path, user_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user_file.write_text('[models]\ncoding = "mine:3b"\n')
    assert cra(("config", "get", "models.coding", "--repo", str(tmp_path))) == 0
    assert capsys.readouterr().out == "mine:3b\n"


def test_every_key_is_listed(till: Project) -> None:
    till.configure(URL)
    keys = set(sources(till))
    for table, values in tomllib.loads(render_config(None)).items():
        for key, value in values.items():
            if not isinstance(value, dict):
                assert f"{table}.{key}" in keys


def test_what_only_a_table_of_its_own_would_require_is_not_called_required(till: Project) -> None:
    till.configure(URL)
    assert "required" not in till.run_here("config")[1]
    with Workspace(repo=till.top).config.open("a") as file:
        file.write("\n[budget.coding]\ncontext_window = 9000\n")
    assert "budget.coding.reserved_tokens =   not set, and required" in till.run_here("config")[1]


ODD_FORMS = {
    "CRLF, a mark and no final newline": b'\xef\xbb\xbf[models]\r\n# mine\r\ncoding = "a" # b\r\n\r\n[budget]\r\ncontext_window = 9000',
    "mixed line ends": b'[models]\r\n# mine\ncoding = "a" # b\r\n\n[budget]\ncontext_window = 9000\r\n',
    "a comment in place of the key": b'[models]\r\n# mine\r\n# coding = "?" # b\r\n\r\n[budget]\r\ncontext_window = 9000\r\n',
    "separators within a comment": '[models]\n# a\u2028[budget]\u0085\ncoding = "a" # b\n'.encode(),
}


@pytest.mark.parametrize("form", ODD_FORMS)
def test_only_the_value_changes_in_a_file_of_any_form(till: Project, user_file: Path, form: str) -> None:
    before = ODD_FORMS[form]
    user_file.write_bytes(before)
    assert till.run_here("config", "set", "--user", "models.coding", "z")[0] == 0
    in_place = b'coding = "z"'.ljust(43) + b" # b"
    assert user_file.read_bytes() == before.replace(b'"a"', b'"z"').replace(b'# coding = "?" # b', in_place)
    assert till.run_here("config", "get", "models.coding")[1] == "z\n"
