from msgspec.structs import replace
from tests.report.conftest import LargeRun

from clean_room_agent.artifacts.model_calls import AnswerReading, CallReading
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.report.budget import budget, call_line, fullest


def test_each_call_has_its_tokens_beside_its_window(large: LargeRun) -> None:
    lines = budget(large.all)
    assert [line.call_id for line in lines] == [call.id for call in large.all.calls]
    assert all(0 < line.tokens.used < line.tokens.window for line in lines)
    assert all(line.tokens.answer_limit == 2048 for line in lines)


def test_the_fullest_prompt_leaves_least_of_its_window_and_probes_do_not_count(large: LargeRun) -> None:
    call = large.all.calls[0]
    calls = [
        replace(
            call,
            cost=replace(call.cost, prompt_tokens=used),
            limits=replace(call.limits, window=window),
            site=replace(call.site, call_type=name),
        )
        for used, window, name in ((50, 100, "x"), (90, 1000, "x"), (999, 10, PROBE_NAME))
    ]
    assert fullest(calls, 8192) == (50, 100)
    assert fullest([], 8192) == (0, 0)


def test_how_a_call_ended_is_said_in_a_few_words(large: LargeRun) -> None:
    entry = large.trace.passes[0]
    call = entry.calls[0]

    def ended(
        finish: str = "stop", error: str = "", reading: AnswerReading | None = None, fault: str = ""
    ) -> str:
        ending = replace(call.ending, finish=finish, error=error)
        read = None if reading is None else CallReading(reading=reading, fault=fault)
        return call_line(replace(call, ending=ending, read=read), entry).ended

    assert ended(reading=AnswerReading.PARSED) == "stop, parsed"
    assert ended(reading=AnswerReading.UNREADABLE, fault="no JSON") == "stop, unreadable: no JSON"
    assert ended("error:ServerFailed", "gone") == "ServerFailed, gone"
