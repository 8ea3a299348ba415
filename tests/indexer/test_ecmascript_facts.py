import json
from pathlib import Path

from clean_room_agent.indexer.extract import FileFacts, extract

ASSETS = Path(__file__).parent.parent / "assets"


def facts_of(language: str, path: str) -> FileFacts:
    facts = extract(ASSETS / language, path, max_bytes=100_000)
    assert isinstance(facts, FileFacts)
    assert facts.parse_error is None
    return facts


def outline(facts: FileFacts) -> list[tuple[str, str, int, int, str]]:
    names = [symbol[1] for symbol in facts.symbols]
    return [
        (name, kind, start, end, names[parent] if parent >= 0 else "")
        for _, name, kind, start, end, _, parent in facts.symbols
    ]


def signatures(facts: FileFacts) -> dict[str, str]:
    return {symbol[1]: symbol[5] for symbol in facts.symbols}


def test_javascript_definitions_stand_with_kind_lines_and_parent() -> None:
    assert outline(facts_of("javascript", "index.js")) == [
        ("helper", "variable", 8, 8, ""),
        ("add", "function", 20, 24, ""),
        ("add.inner", "function", 22, 22, "add"),
        ("LIMIT", "variable", 26, 26, ""),
        ("double", "function", 27, 28, ""),
        ("plain", "variable", 29, 29, ""),
        ("later", "function", 29, 29, ""),
        ("Counter", "class", 32, 42, ""),
        ("Counter.#total", "variable", 33, 33, "Counter"),
        ("Counter.step", "variable", 34, 34, "Counter"),
        ("Counter.onTick", "method", 35, 37, "Counter"),
        ("Counter.constructor", "method", 39, 39, "Counter"),
        ("Counter.total", "method", 40, 40, "Counter"),
        ("Counter.all", "method", 41, 41, "Counter"),
        ("routes", "variable", 44, 49, ""),
        ("routes.list", "method", 45, 45, "routes"),
        ("routes.show", "method", 46, 46, "routes"),
        ("routes.edit", "method", 47, 47, "routes"),
        ("Counter.reset", "method", 51, 51, ""),
        ("later.use", "function", 52, 55, ""),
        ("later.use.nested", "function", 53, 53, "later.use"),
        ("VERSION", "variable", 56, 56, ""),
        ("run", "function", 57, 57, ""),
        ("exports", "variable", 58, 58, ""),
        ("default", "class", 59, 59, ""),
    ]  # fmt: skip


def test_what_a_module_exports_without_a_name_has_one() -> None:
    assert outline(facts_of("javascript", "lib/helper.js")) == [("createHelper", "function", 1, 4, "")]
    assert outline(facts_of("javascript", "lib/index.js")) == [("default", "function", 2, 2, "")]
    assert outline(facts_of("javascript", "lib/other.mjs")) == [
        ("default", "variable", 1, 1, ""),
        ("default.mounted", "method", 1, 1, "default"),
        ("default.data", "method", 1, 1, "default"),
    ]


def test_typescript_definitions_stand_with_kind_lines_and_parent() -> None:
    assert outline(facts_of("typescript", "model.ts")) == [
        ("User", "interface", 7, 10, ""),
        ("User.greet", "method", 9, 9, "User"),
        ("Id", "type_alias", 12, 12, ""),
        ("Wide", "type_alias", 13, 15, ""),
        ("Color", "enum", 16, 16, ""),
        ("BUILD", "variable", 17, 17, ""),
        ("external", "function", 18, 18, ""),
        ("parse", "function", 20, 20, ""),
        ("parse", "function", 21, 21, ""),
        ("parse", "function", 22, 24, ""),
        ("Repo", "class", 26, 37, ""),
        ("Repo.cache", "variable", 29, 29, "Repo"),
        ("Repo.constructor", "method", 31, 31, "Repo"),
        ("Repo.find", "method", 33, 34, "Repo"),
        ("Repo.save", "method", 35, 35, "Repo"),
        ("Repo.handler", "method", 36, 36, "Repo"),
        ("hidden", "function", 40, 40, ""),
        ("Props", "interface", 43, 43, ""),
    ]  # fmt: skip


def test_tsx_is_read_by_its_own_grammar() -> None:
    facts = facts_of("typescript", "view.tsx")
    assert facts.language == "typescript"
    assert outline(facts) == [("View", "function", 4, 6, ""), ("wrapped", "variable", 7, 7, "")]


def test_signatures_are_source_text_up_to_the_body() -> None:
    script = signatures(facts_of("javascript", "index.js"))
    assert script["add"] == "export function add (a, b)"
    assert script["double"] == "const double = async x =>"
    assert script["Counter.all"] == "static async * all ()"
    assert signatures(facts_of("javascript", "lib/helper.js"))["createHelper"].count("\n") == 1
    typed = signatures(facts_of("typescript", "model.ts"))
    assert typed["User"] == "export interface User<T> extends Named"
    assert typed["Repo"] == "export abstract class Repo<T> implements Store"
    assert typed["Repo.find"] == "find(id: Id): T | undefined"
    assert typed["Wide"] == "type Wide = {\n  a: string\n}"


def test_documentation_stands_with_what_it_documents() -> None:
    facts = facts_of("javascript", "index.js")
    names = [symbol[1] for symbol in facts.symbols]
    docs = {
        names[place] if place >= 0 else "": (text, kind, fields)
        for place, text, kind, fields in facts.docstrings
    }
    assert set(docs) == {"", "add", "Counter"}
    assert docs["Counter"] == ("Counts.", "jsdoc", None)
    fields = json.loads(docs["add"][2] or "")
    assert [(one["name"], one["type"], one["description"]) for one in fields["parameters"]] == [
        ("a", "number", "the first"),
        ("b", "number", "the second"),
    ]
    assert fields["raises"] == [{"name": "", "type": "TypeError", "description": "when not numbers"}]


def test_comments_that_document_nothing_know_their_symbol() -> None:
    script, typed = facts_of("javascript", "index.js"), facts_of("typescript", "model.ts")
    assert [(script.symbols[place][1], *rest) for place, *rest in script.comments] == [
        ("add", 21, "FIXME: overflows", "fixme", False)
    ]
    assert [(typed.symbols[place][1], *rest) for place, *rest in typed.comments] == [
        ("Repo", 28, "Kept, because tests replace it.", "rationale", True)
    ]


def test_imports_requires_and_reexports_are_kept_as_written() -> None:
    script, typed = facts_of("javascript", "index.js"), facts_of("typescript", "model.ts")
    assert [raw.target for raw in script.imports] == [
        "./lib/helper",
        "./lib/other.mjs",
        "./lib",
        "./lib/helper.js",
    ]
    assert [(raw.target, raw.kind) for raw in typed.imports] == [
        ("./store", "type_ref"),
        ("./store.js", "import"),
        ("./legacy", "import"),
    ]
