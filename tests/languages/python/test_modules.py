import time

import pytest

from clean_room_agent.languages.base import ModuleRef
from clean_room_agent.languages.python.modules import PythonModules


def found(paths: str, source: str, target: str, *names: str) -> str | None:
    """The file that the target, and below it the names, stand for."""
    modules = PythonModules(paths.split())
    ref = modules.find(source, target)
    for name in names:
        ref = None if ref is None else modules.child(ref, name)
    return None if ref is None else ref.file


PACKAGE = "src/shop/__init__.py src/shop/cart.py src/shop/pay/__init__.py src/shop/pay/card.py"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (".", "src/shop/pay/__init__.py"),
        (".card", "src/shop/pay/card.py"),
        ("..", "src/shop/__init__.py"),
        ("..cart", "src/shop/cart.py"),
        ("..pay.card", "src/shop/pay/card.py"),
        ("...shop.cart", "src/shop/cart.py"),
        (".....", None),
        ("..missing", None),
        ("shop", "src/shop/__init__.py"),
        ("shop.pay.card", "src/shop/pay/card.py"),
        ("shop.missing", None),
        ("shop.cart.Cart", None),
        ("requests", None),
    ],
)
def test_names_in_a_package_under_src(target: str, expected: str | None) -> None:
    assert found(PACKAGE, "src/shop/pay/card.py", target) == expected


def test_a_package_is_its_init_file_and_its_folder() -> None:
    modules = PythonModules(PACKAGE.split())
    assert modules.find("x.py", "shop.pay") == ModuleRef("src/shop/pay/__init__.py", "src/shop/pay")
    assert modules.find("x.py", "shop.cart") == ModuleRef("src/shop/cart.py", None)


def test_a_child_is_the_submodule_and_nothing_else() -> None:
    assert found(PACKAGE, "x.py", "shop", "cart") == "src/shop/cart.py"
    assert found(PACKAGE, "x.py", "shop", "Cart") is None
    assert found(PACKAGE, "x.py", "shop.cart", "Cart") is None


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ("a.py a.pyi", "a.py"),
        ("a.pyi", "a.pyi"),
        ("a.py a/__init__.py", "a/__init__.py"),
        ("a.py a/__init__.pyi", "a.py"),
        ("a/__init__.py a/__init__.pyi", "a/__init__.py"),
        ("a/__init__.pyi", "a/__init__.pyi"),
        ("a.py a/b.py", "a.py"),
    ],
)
def test_of_two_files_with_one_name_the_one_that_runs_is_taken(paths: str, expected: str) -> None:
    assert found(f"{paths} main.py", "main.py", "a") == expected


def test_a_folder_without_init_is_a_namespace_package() -> None:
    modules = PythonModules(["space/inner/one.py", "main.py"])
    assert modules.find("main.py", "space") == ModuleRef(None, "space")
    assert modules.find("main.py", "space.inner.one") == ModuleRef("space/inner/one.py", None)


def test_portions_of_a_namespace_package_are_one() -> None:
    paths = "a/pyproject.toml a/src/corp/one.py b/pyproject.toml b/src/corp/two/__init__.py main.py"
    assert found(paths, "a/src/corp/one.py", "corp.two") == "b/src/corp/two/__init__.py"
    assert found(paths, "a/src/corp/one.py", "corp", "two") == "b/src/corp/two/__init__.py"
    assert found(paths, "main.py", "corp.one") == "a/src/corp/one.py"


def test_a_regular_package_comes_before_a_namespace() -> None:
    assert found("corp/one.py lib/corp/__init__.py", "main.py", "corp") == "lib/corp/__init__.py"


def test_a_script_finds_what_stands_beside_it() -> None:
    assert (
        found("tools/helpers.py tools/run.py src/helpers.py", "tools/run.py", "helpers") == "tools/helpers.py"
    )


def test_a_file_in_a_package_does_not_find_its_neighbour_by_a_bare_name() -> None:
    assert found(PACKAGE, "src/shop/cart.py", "pay") is None


def test_a_test_finds_the_helpers_of_the_tests_folder() -> None:
    paths = "tests/conftest.py tests/helpers.py tests/unit/test_a.py"
    assert found(paths, "tests/unit/test_a.py", "helpers") == "tests/helpers.py"
    assert found(paths.replace("conftest", "other"), "tests/unit/test_a.py", "helpers") is None


def test_a_test_package_finds_its_own_modules_from_its_root() -> None:
    paths = "test/__init__.py test/util.py test/orm/__init__.py test/orm/test_a.py lib/db/__init__.py"
    assert found(paths, "test/orm/test_a.py", "test.util") == "test/util.py"
    assert found(paths, "test/orm/test_a.py", "db") == "lib/db/__init__.py"


@pytest.mark.parametrize(
    "path", ["docs/typing.py", "tests/typing.py", "typing.py", "src/typing.py", "src/shop/typing.py"]
)
def test_the_standard_library_is_not_taken_for_a_file_elsewhere(path: str) -> None:
    assert found(f"{PACKAGE} {path}", "src/shop/cart.py", "typing") is None


def test_a_script_takes_its_neighbour_for_the_standard_library_as_python_does() -> None:
    assert found("tools/typing.py tools/run.py", "tools/run.py", "typing") == "tools/typing.py"
    assert found("tools/os.py tools/run.py", "tools/run.py", "os") is None


@pytest.mark.parametrize("path", ["examples/requests.py", "tests/requests.py", "tools/requests.py"])
def test_a_script_elsewhere_is_no_library(path: str) -> None:
    assert found(f"{PACKAGE} {path}", "src/shop/cart.py", "requests") is None


def test_a_script_named_as_a_library_means_the_library() -> None:
    paths = "examples/shop.py src/shop/__init__.py"
    assert found(paths, "examples/shop.py", "shop") == "src/shop/__init__.py"
    assert found(paths, "examples/other.py", "shop") == "examples/shop.py"


def test_a_package_elsewhere_is_found_where_there_is_one_of_its_name() -> None:
    assert found("parts/a/core/__init__.py", "app/main.py", "core") == "parts/a/core/__init__.py"
    assert found("parts/a/core/__init__.py parts/b/core/__init__.py", "app/main.py", "core") is None
    assert found("parts/a/core/__init__.py parts/b/core/__init__.py", "parts/b/x.py", "core") == (
        "parts/b/core/__init__.py"
    )


@pytest.mark.parametrize("package", ["core/core/__init__.py", "core/src/core/__init__.py"])
def test_a_project_folder_named_as_its_package_does_not_hide_it(package: str) -> None:
    assert found(f"{package} core/pyproject.toml app/main.py", "app/main.py", "core") == package


def test_special_modules_and_odd_targets() -> None:
    paths = "tool/__init__.py tool/__main__.py main.py"
    assert found(paths, "main.py", "tool.__main__") == "tool/__main__.py"
    assert found(f"{paths} __main__.py", "main.py", "__main__") is None
    for target in ("", "a..b", "a.", "...."):
        assert found(paths, "main.py", target) is None


def test_a_module_that_is_compiled_is_not_there() -> None:
    assert found("fast/__init__.py fast/core.pyx fast/core.c", "main.py", "fast.core") is None
    assert found("fast/__init__.py fast/core.pyx fast/core.pyi", "main.py", "fast.core") == "fast/core.pyi"


def test_thirty_thousand_paths_are_taken_in_quickly() -> None:
    paths = [f"p{n % 50}/q{n % 700}/m{n}.py" for n in range(30_000)]
    began = time.process_time()
    PythonModules(paths)
    assert time.process_time() - began < 0.5
