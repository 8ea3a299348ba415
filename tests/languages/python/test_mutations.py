"""Faults are small, within functions, and of every kind."""

import ast

from clean_room_agent.languages.python.mutations import mutations

SOURCE = '''
def clipped(values, most):
    """Doc < string."""
    kept = []
    for value in values:
        if value < most:
            kept.append(max(value, most - 1))
    return dict(kept=kept, most=most)
'''


def test_mutations_are_single_changes_of_every_kind_but_not_of_docstrings() -> None:
    found = mutations(SOURCE)
    changed = {
        (mutation.kind, line.strip())
        for mutation in found
        for line in set(mutation.applied(SOURCE).splitlines()) - set(SOURCE.splitlines())
    }
    assert ("comparison", "if value <= most:") in changed
    assert ("off by one", "kept.append(max(value, most))") in changed
    assert ("dropped statement", "pass") in changed
    assert ("swapped arguments", "kept.append(max(most - 1, value))") in changed
    assert ("wrong name", "if values < most:") in changed
    assert ("lost key", "return dict(kept=kept)") in changed
    assert all("Doc < string" in mutation.applied(SOURCE) for mutation in found)
    assert found == mutations(SOURCE)
    for mutation in found:
        ast.parse(mutation.applied(SOURCE))
