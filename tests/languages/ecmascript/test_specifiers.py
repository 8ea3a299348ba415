import json
from collections.abc import Mapping

import pytest

from clean_room_agent.languages.ecmascript.specifiers import EcmaScriptModules

Tree = Mapping[str, object]


def found(paths: str, source: str, specifier: str, configs: Tree | None = None) -> str | None:
    """What the specifier means; `configs` are files with their text, or with what is written as JSON."""
    texts = {
        path: said if isinstance(said, str) else json.dumps(said) for path, said in (configs or {}).items()
    }
    modules = EcmaScriptModules([*paths.split(), *texts], texts.get)
    return modules.file(source, specifier)


@pytest.mark.parametrize(
    ("files", "specifier", "expected"),
    [
        ("a/x.ts", "./x", "a/x.ts"),
        ("a/x.tsx", "./x", "a/x.tsx"),
        ("a/x.d.ts", "./x", "a/x.d.ts"),
        ("a/x.mjs", "./x", "a/x.mjs"),
        ("a/x.ts", "./x.js", "a/x.ts"),
        ("a/x.tsx", "./x.jsx", "a/x.tsx"),
        ("a/x.mts", "./x.mjs", "a/x.mts"),
        ("a/x.cts", "./x.cjs", "a/x.cts"),
        ("a/x.js a/x.ts", "./x.js", "a/x.ts"),
        ("a/x.ts a/x/index.ts", "./x", "a/x.ts"),
        ("a/x/index.ts", "./x", "a/x/index.ts"),
        ("a/x.ts a/x/index.ts", "./x/", "a/x/index.ts"),
        ("x.ts", "../x", "x.ts"),
        ("index.ts", "..", "index.ts"),
        ("a/index.ts", ".", "a/index.ts"),
        ("a/x.vue", "./x.vue", "a/x.vue"),
        ("a/x.vue", "./x", None),
        ("a/x.json", "./x.json", "a/x.json"),
        ("a/x.css", "./x.css?inline", "a/x.css"),
        ("a/x.ts", "./x?raw", "a/x.ts"),
        ("a/x.txt", "raw-loader!./x.txt", "a/x.txt"),
        ("x.ts", "../../x", None),
        ("a/react.ts", "react", None),
        ("a/x.ts", "./y", None),
        ("a/fs.ts", "node:fs", None),
        ("x.ts", "", None),
    ],
)
def test_paths_of_typescript(files: str, specifier: str, expected: str | None) -> None:
    assert found(f"{files} a/main.ts", "a/main.ts", specifier) == expected


def test_a_script_takes_the_file_that_runs() -> None:
    assert found("x.js x.ts", "main.js", "./x.js") == "x.js"
    assert found("x.js x.ts", "main.js", "./x") == "x.js"


def test_a_folder_says_in_package_json_which_file_it_means() -> None:
    configs = {"lib/package.json": {"main": "./start.js", "types": "start.d.ts"}}
    assert found("lib/start.js lib/start.d.ts lib/index.js", "main.js", "./lib", configs) == "lib/start.js"
    assert found("lib/start.js lib/start.d.ts lib/index.js", "main.ts", "./lib", configs) == "lib/start.d.ts"
    assert found("lib/index.js", "main.ts", "./lib", configs) == "lib/index.js"


PATHS = """\
{
  // Where things are.
  "compilerOptions": {
    "paths": {
      "@/*": ["./src/*"], /* all */
      "~": ["src/settings.ts"],
      "@ui/*": ["packages/*/src", "ui/*"],
      "@ui/button": ["src/special.ts"],
    },
  },
}
"""


@pytest.mark.parametrize(
    ("specifier", "expected"),
    [
        ("@/a/b", "src/a/b.ts"),
        ("@/a", "src/a/index.ts"),
        ("~", "src/settings.ts"),
        ("@ui/grid", "packages/grid/src/index.ts"),
        ("@ui/menu", "ui/menu.tsx"),
        ("@ui/button", "src/special.ts"),
        ("@ui/none", None),
        ("src/settings", None),
    ],
)
def test_paths_of_a_tsconfig_with_comments_and_commas(specifier: str, expected: str | None) -> None:
    files = "src/a/b.ts src/a/index.ts src/settings.ts packages/grid/src/index.ts ui/menu.tsx src/special.ts"
    assert found(files, "deep/er/main.ts", specifier, {"tsconfig.json": PATHS}) == expected


def test_base_url_is_a_root_and_the_base_of_paths() -> None:
    configs = {"app/tsconfig.json": {"compilerOptions": {"baseUrl": "./src", "paths": {"#x/*": ["x/*"]}}}}
    assert found("app/src/a.ts app/src/x/b.ts", "app/src/deep/main.ts", "a", configs) == "app/src/a.ts"
    assert found("app/src/a.ts app/src/x/b.ts", "app/src/deep/main.ts", "#x/b", configs) == "app/src/x/b.ts"
    assert found("app/src/a.ts", "other/main.ts", "a", configs) is None


def test_what_a_config_inherits_stays_relative_to_where_it_is_said() -> None:
    configs: Tree = {
        "config/base.json": {
            "compilerOptions": {"paths": {"@/*": ["../src/*"], "$/*": ["${configDir}/own/*"]}}
        },
        "config/tsconfig.mid.json": {"extends": "./base"},
        "app/tsconfig.json": {"extends": ["../config/tsconfig.mid.json"]},
    }
    assert found("src/a.ts app/own/b.ts", "app/main.ts", "@/a", configs) == "src/a.ts"


def test_a_config_may_name_its_own_folder_in_what_others_inherit() -> None:
    configs: Tree = {
        "tsconfig.base.json": {"compilerOptions": {"paths": {"$/*": ["${configDir}/own/*"]}}},
        "app/tsconfig.json": {"extends": "../tsconfig.base.json"},
    }
    assert found("own/b.ts app/own/b.ts", "app/main.ts", "$/b", configs) == "app/own/b.ts"


def test_configs_that_extend_one_another_come_to_an_end() -> None:
    configs: Tree = {
        "tsconfig.json": {"extends": "./tsconfig.b.json"},
        "tsconfig.b.json": {"extends": "./tsconfig.json", "compilerOptions": {"paths": {"a": ["./x.ts"]}}},
    }
    assert found("x.ts", "main.ts", "a", configs) == "x.ts"


def test_a_config_is_inherited_from_a_package_of_the_workspace() -> None:
    configs: Tree = {
        "package.json": {"workspaces": ["packages/*"]},
        "packages/cfg/package.json": {"name": "@acme/tsconfig"},
        "packages/cfg/tsconfig.base.json": {"compilerOptions": {"paths": {"@/*": ["${configDir}/src/*"]}}},
        "packages/app/package.json": {"name": "app"},
        "packages/app/tsconfig.json": {"extends": "@acme/tsconfig/tsconfig.base.json"},
    }
    assert found("packages/app/src/a.ts", "packages/app/src/m.ts", "@/a", configs) == "packages/app/src/a.ts"


def test_of_referred_projects_the_one_that_holds_the_file_counts() -> None:
    configs: Tree = {
        "tsconfig.json": {
            "files": [],
            "references": [
                {"path": "./tsconfig.node.json"},
                {"path": "./tsconfig.app.json"},
                {"path": "./sub"},
            ],
        },
        "tsconfig.node.json": {"include": ["*.ts"], "compilerOptions": {"paths": {"@": ["./node.ts"]}}},
        "tsconfig.app.json": {
            "include": ["src"],
            "exclude": ["src/**/*.spec.ts"],
            "compilerOptions": {"paths": {"@": ["./src/app.ts"]}},
        },
        "sub/tsconfig.json": {"compilerOptions": {"paths": {"@": ["./sub.ts"]}}},
    }
    files = "node.ts src/app.ts sub/sub.ts"
    assert found(files, "vite.config.ts", "@", configs) == "node.ts"
    assert found(files, "src/deep/main.ts", "@", configs) == "src/app.ts"
    assert found(files, "sub/x.ts", "@", configs) == "sub/sub.ts"
    assert found(files, "other/x.spec.ts", "@", configs) == "node.ts"


def test_root_dirs_lie_upon_one_another() -> None:
    configs = {"tsconfig.json": {"compilerOptions": {"rootDirs": ["src", "generated"]}}}
    files = "src/a/main.ts generated/a/messages.ts generated/b/index.ts"
    assert found(files, "src/a/main.ts", "./messages", configs) == "generated/a/messages.ts"
    assert found(files, "src/a/main.ts", "../b", configs) == "generated/b/index.ts"


WORKSPACES: Mapping[str, Tree] = {
    "array": {"package.json": {"workspaces": ["packages/*", "!packages/hidden"]}},
    "object": {"package.json": {"workspaces": {"packages": ["./packages/*/", "!packages/hidden"]}}},
    "pnpm": {
        "package.json": {},
        "pnpm-workspace.yaml": "# All.\npackages:\n  # ours\n  - 'packages/*'\n  - \"!packages/hidden\"\ncatalog:\n  a: 1\n",
    },
    "pnpm in a row": {"pnpm-workspace.yaml": 'packages: ["packages/**", "!packages/hidden"]\n'},
    "lerna": {"lerna.json": {"packages": ["packages/{ui,hidden}", "!packages/hidden"]}},
}


@pytest.mark.parametrize("kind", WORKSPACES)
def test_packages_of_a_workspace_are_known_by_name(kind: str) -> None:
    configs = {
        **WORKSPACES[kind],
        "packages/ui/package.json": {"name": "@acme/ui", "main": "dist/index.js"},
        "packages/hidden/package.json": {"name": "@acme/hidden"},
        "examples/x/package.json": {"name": "@acme/example"},
    }
    files = "packages/ui/src/index.ts packages/ui/src/grid.ts packages/hidden/index.js examples/x/index.js"
    assert found(files, "packages/app/main.ts", "@acme/ui", configs) == "packages/ui/src/index.ts"
    assert found(files, "packages/app/main.ts", "@acme/ui/src/grid", configs) == "packages/ui/src/grid.ts"
    assert found(files, "packages/app/main.ts", "@acme/ui/grid", configs) == "packages/ui/src/grid.ts"
    assert found(files, "packages/app/main.ts", "@acme/hidden", configs) is None
    assert found(files, "packages/app/main.ts", "@acme/example", configs) is None


EXPORTS: Tree = {
    ".": {"types": "./dist/types/index.d.ts", "import": "./dist/index.mjs", "require": "./dist/index.cjs"},
    "./button": {"browser": "./src/button.browser.ts", "import": {"default": "./dist/esm/button.js"}},
    "./icons/*": "./dist/icons/*.js",
    "./icons/private/*": None,
    "./raw/*.css": ["./missing/*.css", "./styles/*.css"],
    "./old/": "./src/old/",
    "./package.json": "./package.json",
}


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("", "ui/src/index.ts"),
        ("/button", "ui/src/button.ts"),
        ("/icons/a/b", "ui/src/icons/a/b.tsx"),
        ("/icons/private/c", None),
        ("/raw/main.css", "ui/styles/main.css"),
        ("/old/thing", "ui/src/old/thing.ts"),
        ("/package.json", "ui/package.json"),
        ("/src/index", None),
    ],
)
def test_what_a_package_exports(inside: str, expected: str | None) -> None:
    configs: Tree = {
        "package.json": {"workspaces": ["*"]},
        "ui/package.json": {"name": "ui", "exports": EXPORTS},
    }
    files = (
        "ui/src/index.ts ui/src/button.ts ui/src/button.browser.ts ui/src/icons/a/b.tsx ui/src/icons/private/c.ts "
        "ui/styles/main.css ui/src/old/thing.ts"
    )
    assert found(files, "app/main.ts", f"ui{inside}", configs) == expected


def test_types_are_for_typescript_only() -> None:
    exports = {"types": "./ui.d.ts", "default": "./ui.js"}
    configs: Tree = {"package.json": {"name": "ui", "exports": exports}}
    assert found("ui.d.ts ui.js", "test/a.ts", "ui", configs) == "ui.d.ts"
    assert found("ui.d.ts ui.js", "test/a.js", "ui", configs) == "ui.js"


def test_a_package_knows_itself_by_name() -> None:
    configs = {"a/package.json": {"name": "lib", "exports": "./src/main.ts"}}
    assert found("a/src/main.ts", "a/test/x.ts", "lib", configs) == "a/src/main.ts"
    assert found("a/src/main.ts", "b/x.ts", "lib", configs) is None


def test_internal_imports_of_a_package() -> None:
    configs = {
        "package.json": {
            "name": "lib",
            "exports": "./src/main.ts",
            "imports": {
                "#internal/*": "./src/internal/*.js",
                "#self": "lib",
                "#db": {"node": "./src/db.js", "default": "./x"},
                "#loop": "#loop",
            },
        }
    }
    files = "src/main.ts src/internal/a.ts src/db.ts"
    assert found(files, "test/x.ts", "#internal/a", configs) == "src/internal/a.ts"
    assert found(files, "test/x.ts", "#self", configs) == "src/main.ts"
    assert found(files, "test/x.ts", "#db", configs) == "src/db.ts"
    assert found(files, "test/x.ts", "#loop", configs) is None
    assert found(files, "test/x.ts", "#none", configs) is None


def test_the_package_at_the_top_of_a_workspace_is_known_to_all() -> None:
    configs: Tree = {
        "package.json": {"name": "lib", "main": "dist/index.js"},
        "pnpm-workspace.yaml": "packages:\n  - .\n",
        "examples/a/package.json": {"name": "example"},
    }
    assert found("src/index.ts", "examples/a/main.js", "lib", configs) == "src/index.ts"


def test_a_package_linked_by_its_path_is_known() -> None:
    configs: Tree = {
        "app/package.json": {"dependencies": {"core": "file:../core", "gone": "link:../gone"}},
        "core/package.json": {"name": "core", "main": "lib/index.js"},
    }
    assert found("core/lib/index.js", "app/main.js", "core", configs) == "core/lib/index.js"
    assert found("core/lib/index.js", "app/main.js", "gone", configs) is None


def test_modules_of_node_are_not_packages() -> None:
    configs: Tree = {"package.json": {"workspaces": ["*"]}, "util/package.json": {"name": "util"}}
    assert found("util/index.js", "main.js", "util", configs) is None


def test_a_path_from_the_top_is_that_of_the_package() -> None:
    configs: Tree = {"app/package.json": {}}
    assert found("app/src/main.ts src/main.ts", "app/a/b.ts", "/src/main.ts", configs) == "app/src/main.ts"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"workspaces": 1}', "[" * 100_000, '{"exports": {".": 3}}']
)
def test_a_broken_config_says_nothing(text: str) -> None:
    configs = {"package.json": text, "tsconfig.json": text, "pnpm-workspace.yaml": text, "lerna.json": text}
    assert found("x.ts", "main.ts", "./x", configs) == "x.ts"
    assert found("x.ts", "main.ts", "other", configs) is None
