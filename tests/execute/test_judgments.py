import math

from testing.client.memory_sink import MemorySink
from testing.client.model_client import RELEVANT, WINDOW, Note, model_client
from testing.client.scripted_transport import Scripted, ScriptedTransport

from clean_room_agent.execute.judgments import YesNo
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.transport import ChatRequest, RawAnswer


def yes_no(
    transport: ScriptedTransport, *, unreadable: bool = False, no_is_final: bool = False
) -> YesNo[Note]:
    return YesNo(
        model_client(transport, MemorySink()),
        RELEVANT,
        pass_id="t:p",
        nothing=Note(text="N/A"),
        unreadable=unreadable,
        rule="as the rule says",
        no_is_final=no_is_final,
    )


def leaning(text: str, yes: float) -> RawAnswer:
    top = (("yes", math.log(yes)), ("no", math.log(1 - yes)))
    return RawAnswer(
        request_body="{}",
        text=text,
        prompt_tokens=9,
        completion_tokens=1,
        tokens=(TokenChoice(token=text, top=top),),
    )


def test_each_item_gets_its_verdict_with_the_call_that_gave_it() -> None:
    found = yes_no(ScriptedTransport(["yes", "no"])).ask([("a", [Note(text="1")]), ("b", [Note(text="2")])])
    assert [(one.question, one.item, one.yes, one.reason) for one in found] == [
        ("relevant", "a", True, "judged yes"),
        ("relevant", "b", False, "judged no"),
    ]
    assert sorted(one.call_id or 0 for one in found) == [1, 2]


def test_nothing_is_asked_twice_of_a_pass_unless_the_words_differ() -> None:
    transport = ScriptedTransport(["yes", "no"])
    question = yes_no(transport)
    (first,) = question.ask([("a", [Note(text="1")])])
    assert question.ask([("a", [Note(text="1")])]) == (first,)
    (other,) = question.ask([("a", [Note(text="2")])])
    assert (first.yes, other.yes, len(transport.requests)) == (True, False, 2)


def test_what_cannot_be_read_follows_the_rule() -> None:
    (kept,) = yes_no(ScriptedTransport(["Hm."] * 2), unreadable=True).ask([("a", [Note(text="1")])])
    assert (kept.yes, kept.readable) == (True, False)
    assert kept.reason.endswith(": as the rule says")


def test_a_verdict_is_weighed_against_the_leaning() -> None:
    def script(request: ChatRequest) -> Scripted:
        return leaning("no", 0.31 if "N/A" in request.prompt else 0.42 if "warm" in request.prompt else 0.2)

    found = yes_no(ScriptedTransport(script)).ask([("a", [Note(text="warm")]), ("b", [Note(text="cold")])])
    assert [one.yes for one in found] == [True, False]
    assert found[0].reason == "judged no (0.58), but yes has 0.42 here and 0.31 about nothing"
    assert (found[0].probability, found[0].neutral) == (0.42, 0.31)


def test_of_inputs_that_say_less_and_less_the_first_that_fit_are_sent() -> None:
    transport = ScriptedTransport(["yes"])
    yes_no(transport).ask([("a", [Note(text="long " * WINDOW), Note(text="short")])])
    assert "short" in transport.requests[0].prompt


def test_where_a_wrong_yes_costs_more_a_plain_no_counts_whatever_the_leaning() -> None:
    def script(request: ChatRequest) -> Scripted:
        return leaning("no", 0.31 if "N/A" in request.prompt else 0.42)

    question = yes_no(ScriptedTransport(script), no_is_final=True)
    (verdict,) = question.ask([("a", [Note(text="warm")])])
    assert (verdict.yes, verdict.reason, verdict.probability) == (False, "judged no (0.58)", 0.42)
