from msgspec.structs import replace
from rich.console import Console

from clean_room_agent.json_values import to_shown
from clean_room_agent.llm.token_estimator import InitialEstimator
from clean_room_agent.report.page.run_page import RunSources
from clean_room_agent.report.prompt_lines import BEFORE_SPANS
from clean_room_agent.report.windows import (
    PromptShares,
    estimator_lines,
    render_accounts,
)


def test_a_prompt_is_rules_task_code_and_the_rest(sources: RunSources) -> None:
    for account in sources.accounts:
        assert account.shares.rules
        assert account.slack + account.call.tokens.estimated + 2048 == account.call.tokens.window
    implementing = [one for one in sources.accounts if one.call.call_type == "implement"]
    assert all((one.shares.code or 0) > (one.shares.rules or 0) > 0 for one in implementing)
    # A retry shows the attempt before it.
    assert len({one.shares.rest for one in implementing}) == 2


def test_an_account_is_flat_in_json(sources: RunSources) -> None:
    account = sources.accounts[0]
    assert to_shown(account).keys() >= {
        "call_id",
        "estimated",
        "answer_limit",
        "window",
        "rules",
        "code",
        "slack",
    }


def test_of_calls_of_an_old_record_the_shares_are_not_guessed(sources: RunSources) -> None:
    account = replace(sources.accounts[0], shares=PromptShares())
    console = Console(width=120)
    with console.capture() as told:
        console.print(render_accounts((account,)))
    assert BEFORE_SPANS in told.get()
    assert account.shares.known == 0


def test_a_model_of_few_calls_is_measured_by_a_factor() -> None:
    (line,) = estimator_lines({"coder:3b": InitialEstimator(factor=1.3)})
    assert (line.model, line.pairs, line.margin) == ("coder:3b", 0, 1.3)
