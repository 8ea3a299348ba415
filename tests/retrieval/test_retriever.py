import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.retrieval.shop import CART, IMPORTS, SHOP, choose, large_module, relevant
from tests.retrieval.world import TASK, World, context_request, numbers_of

from clean_room_agent.artifacts.context import BudgetAccount, ContextPackage, TaskQuery
from clean_room_agent.artifacts.evidence import Evidence, FailingTest, StackFrame
from clean_room_agent.db.session import Session
from clean_room_agent.errors import ConfigError, RepositoryError, UsageError
from clean_room_agent.retrieval import retriever
from clean_room_agent.retrieval.retrieval_config import JudgmentsConfig
from clean_room_agent.retrieval.retriever import definitions_mentioned, definitions_named, stages_named
from clean_room_agent.retrieval.stage import Candidate, Selection, StageContext

Make = Callable[..., World]
STEP = f"{TASK}:impl:p1:s1"
FILE = Candidate(path="a.py", file_id=1, tier=0, score=1.0, reasons=("named",))
SELECTION = Selection(
    path="a.py", symbol=None, start_line=1, end_line=2, detail="primary", tier=0, score=1.0, reason="named"
)
QUERY = TaskQuery(symbols=("f",), keywords=("cart",))


def test_a_file_named_by_the_plan_is_shown_whole(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    package = (
        world.retriever()
        .retrieve(context_request(task="Fix the total price of the cart", files=("shop/cart.py",)))
        .package
    )
    item = package.items[0]
    assert (item.path, item.symbol, item.detail, item.tier) == ("shop/cart.py", None, "primary", 0)
    assert item.text == CART
    assert package.budget.used_tokens <= package.budget.context_window - package.budget.reserved_tokens


def test_a_plan_that_names_files_that_exist_is_followed_without_a_question(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    request = context_request(
        task="Fix the total price of the cart", files=("shop/cart.py",), symbols=("Cart.total_price",)
    )
    package = world.retriever().retrieve(request).package
    assert world.transport.requests == []
    assert [item.path for item in package.primary()] == ["shop/cart.py"]
    scope = {row.subject.path: row for row in world.decisions(request.pass_id) if row.stage == "scope"}
    assert scope["shop/cart.py"].reason.startswith("in without asking: named by the plan")
    assert scope[""].reason.startswith("the plan names its files: ")


def test_code_of_files_that_no_plan_names_is_shown_as_judged(make: Make) -> None:
    answers = {
        "scope_batch": relevant("big.py"),
        "precision_batch": lambda request: json.dumps(
            {
                "change": numbers_of(request, ":: task_1 "),
                "read": numbers_of(request, ":: task_2 "),
            }
        ),
    }
    world = make({"big.py": large_module(6, lines=40)}, answers)
    package = world.retriever().retrieve(context_request(task="A number is wrong")).package
    shown = {item.symbol: (item.detail, item.text) for item in package.items}
    assert set(shown) == {"task_1", "task_2"}
    assert shown["task_1"][0] == "primary"
    assert shown["task_1"][1].startswith("def task_1(value):\n")
    assert shown["task_2"] == ("supporting", "def task_2(value):\n    Do number 2.\n")


def test_the_ranking_decides_where_judgments_are_not_asked(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    request = context_request(task="Fix the total price of the cart")
    package = world.retriever(route="rank").retrieve(request).package
    assert {call.identity.prompt for call in world.transport.requests} == {"task_analysis"}
    assert "shop/cart.py" in {item.path for item in package.items}
    judged = [row for row in world.decisions(request.pass_id) if row.reason.startswith("no model asked")]
    assert judged


def test_every_candidate_has_a_decision_that_names_the_call(make: Make) -> None:
    world = make(SHOP, {"scope_batch": relevant("shop/money.py")}, imports=IMPORTS)
    request = context_request(task="Fix the total price in shop/cart.py")
    world.retriever().retrieve(request)
    scope = {row.subject.path: row for row in world.decisions(request.pass_id) if row.stage == "scope"}
    assert scope["shop/cart.py"].included
    assert scope["shop/cart.py"].judgment.call_id is None
    assert scope["shop/money.py"].included
    assert scope["shop/money.py"].judgment.call_id is not None
    assert not scope["README.md"].included
    assert "imported by shop/cart.py" in scope["shop/money.py"].reason


def test_without_a_readable_verdict_the_best_are_taken_and_the_record_says_so(make: Make) -> None:
    world = make(SHOP, {"scope_batch": "I cannot say"}, imports=IMPORTS)
    request = context_request(task="Fix the total price of the cart")
    world.retriever().retrieve(request)
    judged = [
        row for row in world.decisions(request.pass_id) if row.stage == "scope" and row.subject.tier > 1
    ]
    assert all("unreadable" in row.reason for row in judged)
    taken = [row.subject.path for row in judged if "; all judged no: taken by rank" in row.reason]
    assert taken == [row.subject.path for row in judged if row.included]
    assert taken[0] == "shop/cart.py"
    assert len(taken) < len(judged)


def test_the_first_question_shows_what_search_found_and_the_failing_tests(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    evidence = Evidence(
        tests=(FailingTest(name="tests/test_cart.py::test_total_price_counts", expected="0", actual="1"),)
    )
    world.retriever().retrieve(context_request(task="The price is wrong", mode="plan", evidence=evidence))
    prompt = world.asked("task_analysis")[0].prompt
    assert "## Files found\n- shop/cart.py\n" in prompt
    assert "- Cart.total_price (shop/cart.py)\n" in prompt or "- Cart (shop/cart.py)\n" in prompt
    assert "test: tests/test_cart.py :: test_total_price_counts (lines 4-6)\n" in prompt
    assert "    assert cart.total_price() == 0\n" in prompt
    assert "expected: 0\n" in prompt


def test_an_unreadable_task_analysis_is_noted_and_the_rest_goes_on(make: Make) -> None:
    world = make(SHOP, {"task_analysis": "hm"}, imports=IMPORTS)
    request = context_request(task="Fix `total_price` in shop/cart.py")
    package = world.retriever().retrieve(request).package
    notes = [row.reason for row in world.decisions(request.pass_id) if row.stage == "task_analysis"]
    assert any("could not be read" in reason for reason in notes)
    assert package.budget.used_tokens >= 0


def test_what_the_model_invents_is_dropped_and_noted(make: Make) -> None:
    invented = {
        "intent": "x",
        "areas": ["shop", "nowhere"],
        "keywords": [],
        "symbols": ["Cart.add_item", "invented"],
    }
    world = make(SHOP, {"task_analysis": json.dumps(invented)}, imports=IMPORTS)
    request = context_request(task="Fix it")
    world.retriever().retrieve(request)
    query = world.session.for_pass(request.pass_id).get_state("task_query")
    assert isinstance(query, dict)
    assert query["symbols"] == ["Cart.add_item"]
    assert query["areas"] == ["shop"]
    dropped = {row.subject.path for row in world.decisions(request.pass_id) if row.stage == "task_analysis"}
    assert dropped == {"nowhere", "invented"}


def test_each_route_asks_once_for_every_candidate(make: Make) -> None:
    answers = {"scope_judgment": lambda request: "yes" if request.identity.item == "shop/money.py" else "no"}
    world = make(SHOP, answers, imports=IMPORTS)
    request = context_request(task="Fix the total price of the cart")
    world.retriever(route="each", each_share=0).retrieve(request)
    judged = [
        row for row in world.decisions(request.pass_id) if row.stage == "scope" and row.subject.tier > 1
    ]
    assert len(world.asked("scope_judgment")) == len(judged)
    assert [row.subject.path for row in judged if row.included] == ["shop/money.py"]


def test_without_a_model_nothing_is_asked_and_the_record_says_so(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    request = context_request(task="Fix total_price of the cart", mode="plan", role="reasoning")
    package = world.retriever(use_model=False).retrieve(request).package
    assert world.transport.requests == []
    assert "shop/cart.py" in {item.path for item in package.items}
    assert any("no model asked" in row.reason for row in world.decisions(request.pass_id))


def test_a_large_target_file_shows_the_named_code_its_imports_and_the_names_of_the_rest(make: Make) -> None:
    text = large_module(60)
    world = make({"big.py": text}, window=4096, reserved=1024)
    package = (
        world.retriever()
        .retrieve(context_request(task="task_41 adds wrongly", files=("big.py",), symbols=("task_41",)))
        .package
    )
    assert world.transport.requests == []
    outline, imports, changed = package.items
    assert (outline.symbol, outline.detail) == (None, "type_context")
    assert (imports.symbol, imports.text) == ("(imports)", "import os\nimport sys\n")
    start = text.split("\n").index("def task_41(value):") + 1
    assert (changed.symbol, changed.start_line, changed.end_line) == ("task_41", start, start + 14)
    assert changed.text == "".join(f"{line}\n" for line in text.split("\n")[start - 1 : start + 14])
    named = outline.text.splitlines()
    assert f"{start}-{start + 14} task_41" in named
    assert len(named) == 41
    assert named[-1] == "(20 more definitions)"
    assert package.budget.used_tokens < 1500


def test_a_stack_frame_in_a_large_target_is_in_without_asking(make: Make) -> None:
    text = large_module(60)
    line = text.split("\n").index("def task_33(value):") + 3
    world = make({"big.py": text}, window=4096, reserved=1024)
    evidence = Evidence(frames=(StackFrame(path="big.py", line=line, function="task_33"),))
    package = world.retriever().retrieve(context_request(files=("big.py",), evidence=evidence)).package
    shown = next(item for item in package.items if item.symbol == "task_33")
    assert shown.reason == "in a stack trace"


def test_too_much_primary_code_is_refiltered_and_what_goes_is_recorded(make: Make) -> None:
    answers = {
        "precision_batch": choose("change", "big.py"),
        "refilter": lambda request: json.dumps({"keep": numbers_of(request, "task_7 ")}),
    }
    world = make({"big.py": large_module(60)}, answers, window=4096, reserved=1024)
    request = context_request(task="All of it, also task_7", files=("big.py",))
    package = world.retriever().retrieve(request).package
    assert "task_7" in [item.symbol for item in package.primary()]
    assert any("refilter let it go" in dropped.reason for dropped in package.dropped)
    assert "tokens can stay." in world.asked("refilter")[0].prompt


def test_a_failing_test_is_shown_to_be_read(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    evidence = Evidence(
        tests=(FailingTest(name="tests/test_cart.py::test_total_price_counts"),),
        messages=("assert 1 == 0",),
    )
    package = world.retriever().retrieve(context_request(files=("shop/cart.py",), evidence=evidence)).package
    test = next(item for item in package.items if item.path == "tests/test_cart.py")
    assert (test.detail, test.symbol) == ("supporting", "test_total_price_counts")
    assert "cart.total_price() == 0" in test.text
    assert "test_unrelated" not in package.to_prompt_text()


def test_a_changed_file_asks_for_a_refresh(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    (world.root / "shop/cart.py").write_text(CART + "\n# more\n")
    with pytest.raises(RepositoryError, match=r"shop/cart\.py changed after it was indexed") as caught:
        world.retriever().retrieve(context_request(files=("shop/cart.py",)))
    assert "cra index" in caught.value.hint


def test_an_empty_index_is_an_error(make: Make) -> None:
    world = make({})
    with pytest.raises(UsageError, match="not indexed"):
        world.retriever().retrieve(context_request())


@pytest.mark.parametrize("stages", [("scope", "precison"), (), ("scope", "scope")])
def test_unusable_stages_are_errors_before_anything_runs(make: Make, stages: tuple[str, ...]) -> None:
    world = make(SHOP)
    with pytest.raises(ConfigError):
        world.retriever(stages=stages)


def test_the_session_keeps_what_a_refinement_needs(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    request = context_request(files=("shop/cart.py",))
    world.retriever().retrieve(request)
    keys = world.session.for_pass(request.pass_id).list_keys()
    assert keys == ("final_context", "stage_outputs", "task_query", "to_change")


def test_what_a_planner_was_shown_to_change_is_shown_to_who_does_it(make: Make) -> None:
    world = make(
        {"big.py": large_module(40)},
        {"scope_batch": relevant("big.py"), "precision_batch": choose("change", ":: task_3 ")},
    )
    world.retriever().retrieve(
        context_request(pass_id=f"{TASK}:meta_plan", mode="plan", task="A number is wrong")
    )
    asked = len(world.transport.requests)
    package = world.retriever().retrieve(context_request(task="A number is wrong", files=("big.py",))).package
    (changed,) = [item for item in package.primary() if item.symbol != "(imports)"]
    assert (changed.symbol, changed.reason) == ("task_3", "judged to be changed when the task was planned")
    assert len(world.transport.requests) == asked


def test_two_runs_of_one_request_are_the_same(make: Make) -> None:
    answers = {"scope_batch": relevant("shop/"), "precision_batch": choose("change", "round_amount")}
    world = make(SHOP, answers, imports=IMPORTS)
    packages = [
        world.retriever().retrieve(
            context_request(pass_id=f"{TASK}:impl:p1:s{number}", task="Fix the cart's total price")
        )
        for number in (1, 2)
    ]
    assert packages[0].package.items == packages[1].package.items


def test_a_second_pass_with_the_same_question_asks_for_no_verdict_again(make: Make) -> None:
    world = make(SHOP, {"scope_batch": relevant("shop/")}, imports=IMPORTS)
    for number in (1, 2):
        world.retriever().retrieve(
            context_request(pass_id=f"{TASK}:impl:p1:s{number}", task="Fix the cart's total price")
        )
    passes = [
        {request.identity.prompt for request in world.transport.requests if step in request.identity.pass_id}
        for step in ("s1", "s2")
    ]
    assert passes == [{"task_analysis", "scope_batch", "precision_batch"}, {"task_analysis"}]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session.open(tmp_path, TASK, clock=lambda: "2026-01-01T00:00:00Z") as opened:
        yield opened


def remember(session: Session, pass_id: str, query: TaskQuery = QUERY) -> ContextPackage:
    package = ContextPackage(
        pass_id=pass_id,
        task="Fix it",
        items=(),
        budget=BudgetAccount(context_window=10, reserved_tokens=2, used_tokens=0),
    )
    states = session.for_pass(pass_id)
    context = StageContext(
        request=context_request(),
        available_tokens=8,
        candidates=(FILE,),
        files=(FILE,),
        selections=(SELECTION,),
    )
    retriever.remember(states, query, context, package)
    return package


def test_an_attempt_goes_on_from_the_newest_before_it(session: Session) -> None:
    remember(session, STEP)
    remember(session, f"{STEP}:retry_1")
    assert retriever.recall(session, f"{STEP}:retry_3").package.pass_id == f"{STEP}:retry_1"


def test_changes_of_all_planning_passes_of_the_task_come_together(session: Session) -> None:
    session.for_pass(f"{TASK}:meta_plan").set_state(retriever.CHANGES, [["a.py", "f"]])
    session.for_pass(f"{TASK}:part_plan:p1").set_state(retriever.CHANGES, [["b.py", "g"], ["a.py", "f"]])
    assert retriever.recall_changes(session, TASK) == {("a.py", "f"), ("b.py", "g")}


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'scope'"):
        stages_named(("scop",), JudgmentsConfig())


@pytest.mark.parametrize(
    ("mode", "role", "detail"), [("implement", "coding", "supporting"), ("plan", "reasoning", "primary")]
)
def test_the_definition_that_a_task_names_is_shown_whatever_a_plan_names(
    make: Make, mode: str, role: str, detail: str
) -> None:
    world = make(SHOP)
    request = context_request(
        task="round_amount() rounds half cents down", mode=mode, role=role, files=("shop/users.py",)
    )
    package = world.retriever().retrieve(request).package
    items = [(item.path, item.symbol, item.detail) for item in package.items if item.path == "shop/money.py"]
    assert items == [("shop/money.py", "round_amount", detail)]
    assert not world.asked("precision_batch"), "nobody is asked about what surrounds it"


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ("The total price of the cart is wrong", False),
        ("Translate the total price of the cart", True),
        ("Fix the total price of the cart in locale/de/cart.po", True),
    ],
)
def test_translations_and_data_are_candidates_only_where_they_are_asked_for(
    make: Make, task: str, shown: bool
) -> None:
    world = make({**SHOP, "locale/de/cart.po": 'msgid "total price of the cart"\nmsgstr "Summe"\n'})
    found = world.retriever().retrieve(context_request(task=task, mode="plan", role="reasoning"))
    assert ("locale/de/cart.po" in [entry.path for entry in found.candidates]) is shown


FILES = {
    "pkg/text.py": 'def slugify(text):\n    """Slugs.\n\n    >>> slugify("a b")\n    \'a-b\'\n    """\n    return text\n\n\n'
    "class Stack:\n    def pop(self):\n        pass\n",
    "tests/test_text.py": "from pkg.text import slugify\n\n\ndef test_slugify():\n    assert slugify('a')\n\n\ndef slugify_all():\n    pass\n",
}


def test_a_definition_is_found_with_its_place_documentation_and_tests(make: Make) -> None:
    source = make(FILES, imports={"tests/test_text.py": ("pkg/text.py",)}).source()
    (found,) = definitions_named(("slugify",), source)
    assert (found.path, found.kind, found.first_line, found.last_line) == ("pkg/text.py", "function", 1, 7)
    assert found.doc.startswith("Slugs.")
    assert found.test_files == ("tests/test_text.py",)


def test_definitions_of_tests_are_none_and_members_have_their_owner(make: Make) -> None:
    source = make(FILES).source()
    assert definitions_named(("slugify_all", "test_slugify", "nothing"), source) == ()
    assert [one.name for one in definitions_named(("Stack", "Stack.pop", "pop"), source)] == [
        "Stack",
        "Stack.pop",
    ]


def test_words_mention_what_looks_like_a_name_of_a_definition(make: Make) -> None:
    source = make(FILES).source()
    assert [one.name for one in definitions_mentioned("`slugify` and Stack.pop are slow", source)] == [
        "slugify",
        "Stack.pop",
    ]
    assert definitions_mentioned("the text is slow", source) == ()
