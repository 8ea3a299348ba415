"""What an accepted diff says that a task needed."""

from clean_room_agent.training.gold import gold_of


def diff(path: str, *hunks: str, old: str | None = None) -> str:
    before = f"a/{path}" if old is None else old
    return f"diff --git a/{path} b/{path}\n--- {before}\n+++ b/{path}\n" + "".join(hunks)


def test_a_changed_line_belongs_to_the_definition_above_it_that_is_indented_less() -> None:
    gold = gold_of(
        [
            diff(
                "a.py",
                "@@ -1,5 +1,5 @@ class Ledger:\n     def pay(self):\n         pass\n"
                "     def charge(self):\n-        return 1\n+        return 2\n",
            )
        ]
    )
    (file,) = gold.files
    assert file.names == {"charge"}
    assert file.touches("Ledger.charge")
    assert not file.touches("Ledger.pay")


def test_the_header_names_the_definition_where_the_hunk_shows_none() -> None:
    gold = gold_of([diff("a.py", "@@ -40,2 +40,2 @@ def far(x):\n-    return 1\n+    return 2\n")])
    assert gold.files[0].names == {"far"}


def test_a_line_at_the_top_of_a_module_belongs_to_no_definition() -> None:
    gold = gold_of([diff("a.py", "@@ -1,3 +1,4 @@\n import a\n+import b\n \n def f():\n")])
    assert gold.files[0].names == frozenset()


def test_hunks_that_only_move_white_space_are_left_out() -> None:
    wrapped = "@@ -1,2 +1,3 @@\n-f(a, b)\n+f(\n+    a, b)\n"
    assert gold_of([diff("a.py", wrapped)]).files == ()
    real = "@@ -9,1 +9,1 @@ def g():\n-    return 1\n+    return 2\n"
    assert gold_of([diff("a.py", wrapped, real)]).files[0].names == {"g"}


def test_python_that_is_indented_anew_is_a_change_and_javascript_is_none() -> None:
    hunk = "@@ -1,2 +1,2 @@\n-        total()\n+    total()\n"
    assert gold_of([diff("a.py", hunk)]).files
    assert not gold_of([diff("a.js", hunk)]).files


def test_created_files_had_not_to_be_found() -> None:
    gold = gold_of(
        [diff("new.py", "@@ -0,0 +1 @@\n+x = 1\n", old="/dev/null"), diff("b.py", "@@ -1 +1 @@\n-x\n+y\n")]
    )
    assert [file.path for file in gold.files] == ["b.py", "new.py"]
    assert [file.path for file in gold.required] == ["b.py"]


def test_a_file_created_by_one_step_and_changed_by_the_next_is_created() -> None:
    created = diff("new.py", "@@ -0,0 +1 @@\n+x = 1\n", old="/dev/null")
    changed = diff("new.py", "@@ -1 +1 @@\n-x = 1\n+x = 2\n")
    assert gold_of([created, changed]).required == ()


def test_a_path_with_blanks_and_a_deleted_line_that_looks_like_a_header_are_read() -> None:
    text = "diff --git a/a b.py b/a b.py\n--- a/a b.py\t\n+++ b/a b.py\t\n@@ -1,2 +1 @@\n--- old\n keep\n"
    assert [file.path for file in gold_of([text]).files] == ["a b.py"]
