"""Who opens files by a path put together from a folder and a name: `safe_open`, and few others with names of their own."""

import ast
from pathlib import Path

from tests.architecture.syntax_trees import nodes, sources_with

SOURCE = Path(__file__).parents[2] / "src/clean_room_agent"
OPENS = frozenset(
    {"open", "read_bytes", "read_text", "write_bytes", "write_text", "symlink_to", "hardlink_to"}
)
COPIES = frozenset({"copy", "copy2", "copyfile", "copytree", "move"})
NO_PATHS = frozenset({"safe_open", "Record", "Session", "os"})
"""`safe_open` itself, and what is opened by something else than a path; `os.open` is looked at by name below."""

OWN_NAMES = {
    # what the user named on the command line, or the program's own configuration and files
    "config.py": "config.toml, by its whole path",
    "app/clock.py": "what the kernel says of this process",
    "app/demo.py": "files of the package, and of the demo, in its own folder",
    "app/fit/fit_file.py": "its own files in the user's state folder",
    "app/fit/made_up_tasks.py": "a file of the package",
    "app/self_check.py": "opens worktrees, no file",
    "orchestrator/setup.py": "opens worktrees, no file",
    "cli/adapters.py": "opens worktrees, no file",
    "cli/report.py": "opens a browser, no file",
    "app/discovery.py": "opens a way to a server, no file",
    "file_contents.py": "what its caller names: own files, and what the user named",
    "workspace.py": "the workspace's own keys, and notes in the user's state folder",
    "sandbox/policy.py": "the kernel's list of sockets, and the first bytes of an interpreter",
    "db/migrations.py": "files of the package",
    "db/session.py": "the session's own file",
    "indexer/index_run.py": "config.toml",
    "app/config_values.py": "config.toml",
    "report/page/html.py": "templates of the package, and the beginning of what -o names",
    "training/dataset.py": "a folder that it has just made",
    # adapters: files that the user names, and folders of their own
    "llm/prompt.py": "a template of the package",
    "llm/transports/http.py": "a model that the user has uploaded",
    "llm/transports/lora.py": "a model that the user has uploaded",
    "app/tonight.py": "a folder of its own, and an adapter's",
    "report/page/night.py": "an adapter's own folder",
    "training/training_time.py": "a base that the user named",
    "training/evaluation.py": "the held-out rows of a dataset",
    "training/convert.py": "an adapter's own folder",
    "training/deployment.py": "config.toml",
    "training/train.py": "an adapter's own folder, a base that the user named, /proc",
    "training/trl_process.py": "what `cra train` wrote for it",
    # git's own files, and folders that this program has just made
    "git/log.py": "git's own folder",
    "git/commits.py": "the user's index, and folders of its own",
    "git/worktree.py": "the worktree's .git file, which it may find swapped, and a repository of its own",
    # the sandbox and its attempts to get out, in folders of their own
    "sandbox/escapes.py": "a scene of its own",
    "sandbox/bubblewrap.py": "/proc",
    "sandbox/escape_attempts.py": "runs inside the sandbox, to get out",
    # training
    "app/planting.py": "what it has written itself, in the work folder",
    "training/gold_edits.py": "a temporary folder, a name of its own",
    # the system's
    "supervisor.py": "/proc",
    "orchestrator/test_runs/guard/cra_failures.py": "runs with the tests, in the folder that is theirs",
    "orchestrator/test_runs/guard/cra_identity.py": "runs with the tests, modules that they loaded",
    "orchestrator/test_runs/guard/sitecustomize.py": "runs with the tests, in the folder that is theirs",
    "orchestrator/test_runs/ignored_folders.py": "a folder held by `safe_open`, where there is no `cp`",
}


def opened(path: Path) -> list[str]:
    """The calls in a module that open a file by a path of their own."""
    found: list[str] = []
    for node in nodes(path):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id="open" | "open_named" as name):
                found.append(name)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if name in COPIES and owner == "shutil":
                found.append(f"shutil.{name}")
            case ast.Attribute(value=value, attr=name) if name in OPENS:
                if not (isinstance(value, ast.Name) and value.id in NO_PATHS):
                    found.append(f".{name}")
            case _:
                pass
    return found


def test_files_that_others_named_are_opened_beneath_their_folder() -> None:
    words = "|".join(sorted(OPENS | COPIES | {"open_named"}))
    modules = {
        path.relative_to(SOURCE).as_posix(): path for path in sources_with(SOURCE, rf"\b(?:{words})\b")
    }
    found = {name: calls for name, path in modules.items() if (calls := opened(path))}
    assert {name: calls for name, calls in found.items() if name not in OWN_NAMES} == {}
    assert sorted(OWN_NAMES.keys() - found.keys()) == [], "no longer opens anything: take it off the list"


def test_the_check_finds_what_it_is_for(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("(root / path).read_bytes()\nopen(f'{root}/{path}')\nshutil.copy2(a, b)\nfile.open()\n")
    assert opened(module) == [".read_bytes", "open", "shutil.copy2", ".open"]
    module = tmp_path / "other.py"
    module.write_text(
        "safe_open.read_bytes(root, path)\nread_bytes(root, path)\nRecord.open(x)\nos.open(x)\n"
    )
    assert opened(module) == []
