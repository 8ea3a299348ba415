"""How a repository's tests in JavaScript are run, judging by its package.json files and what its tests import."""

import re
from collections.abc import Mapping

from clean_room_agent.languages.jsonc import as_object, as_text
from clean_room_agent.languages.repository_files import LOOKED_AT, RepositoryFiles
from clean_room_agent.languages.watch_mode import watching

LOCKS = (
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("pnpm-lock.yaml", "pnpm"),
    ("pnpm-workspace.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
)
RUN = {"npm": "npm run {}", "pnpm": "pnpm run {}", "yarn": "yarn run {}", "bun": "bun run {}"}
"""How a package manager runs a script."""
RUN_TEST = {"npm": "npm test", "pnpm": "pnpm test", "yarn": "yarn test", "bun": "bun run test"}
RUN_BELOW = {
    "npm": "npm --prefix {} test",
    "pnpm": "pnpm --dir {} test",
    "yarn": "yarn --cwd {} test",
    "bun": "bun run --cwd {} test",
}
RUN_IN_EACH = {
    "npm": "npm test --workspaces --if-present",
    "pnpm": "pnpm -r test",
    "yarn": "yarn workspaces run test",
    "bun": "bun run --filter '*' test",
}
BERRY = "yarn workspaces foreach -A run test"
"""The same for yarn from 2 on."""
EXECUTE = {"npm": "npx {}", "pnpm": "pnpm exec {}", "yarn": "yarn {}", "bun": "bunx {}"}
SCRIPTS = ("test", "tests", "test:ci", "test:run", "test:once", "test:unit", "unit", "ci")
"""Scripts of a package.json, the likeliest first."""
SCRIPT_TEST = re.compile(r"(?:^|/)(?:[^/]+[._]test\.|test\.|tests?/(?:[^/]+/)*[^/]+\.)[cm]?[jt]sx?\Z")


def command_of(files: RepositoryFiles, package: str, start: str) -> str:
    """The script of a package.json, at the top or of workspaces, whatever it runs; else the command `start` of a runner, where the
    repository uses its `package`, or one of its members has a script; "" otherwise.
    """
    top = files.package("package.json")
    manager = _package_manager(files, top)
    name = _test_script(top)
    if name:
        return RUN_TEST[manager] if name == "test" else RUN[manager].format(name)
    members = [path for path in files.nearest("package.json") if "/" in path]
    tested = [path.rpartition("/")[0] for path in members if _test_script(files.package(path)) == "test"]
    if tested and ("workspaces" in top or "pnpm-workspace.yaml" in files.paths):
        is_berry = manager == "yarn" and _is_berry(files, top)
        return BERRY if is_berry else RUN_IN_EACH[manager]
    if start and _uses_runner(files, top, package):
        return EXECUTE[manager].format(start)
    if tested and "lerna.json" in files.paths:
        return EXECUTE[manager].format("lerna run test")
    return RUN_BELOW[manager].format(tested[0]) if tested else ""


def mentions_in_tests(files: RepositoryFiles, *texts: str) -> bool:
    """Whether tests have one of the texts, such as the module of a runner in its quotes."""
    tests = sorted(filter(SCRIPT_TEST.search, files.paths))[:LOOKED_AT]
    return any(text in files.text(path) for path in tests for text in texts)


def _uses_runner(files: RepositoryFiles, top: Mapping[str, object], package: str) -> bool:
    """Whether the repository depends on the runner, has settings of it, or tests that import it."""
    settings = (f"{package}.config.", f".{package}rc")
    return (
        package in {*as_object(top.get("devDependencies")), *as_object(top.get("dependencies"))}
        or any(path.startswith(settings) for path in files.paths)
        or mentions_in_tests(files, f"'{package}'", f'"{package}"')
    )


def _test_script(package: Mapping[str, object]) -> str:
    """The name of the script that runs tests; "" if there is none but npm's placeholder, or those that wait for changes."""
    scripts = as_object(package.get("scripts"))
    texts = ((name, as_text(scripts.get(name)).strip()) for name in SCRIPTS)
    usable = (
        name
        for name, text in texts
        if text and "no test specified" not in text and not watching(text, scripts)
    )
    return next(usable, "")


def _package_manager(files: RepositoryFiles, package: Mapping[str, object]) -> str:
    named = as_text(package.get("packageManager")).partition("@")[0]
    return named if named in RUN else next((tool for name, tool in LOCKS if name in files.paths), "npm")


def _is_berry(files: RepositoryFiles, package: Mapping[str, object]) -> bool:
    version = as_text(package.get("packageManager")).partition("@")[2]
    return not version.startswith(("0.", "1.")) if version else ".yarnrc.yml" in files.paths
