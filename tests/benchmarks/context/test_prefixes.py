from benchmarks.context.prefixes import Share, common_prefix, share_of
from testing.runs.model_calls import model_call

from clean_room_agent.artifacts.model_calls import ModelCall


def asked(prompt: str, *, model: str = "m") -> ModelCall:
    return model_call(prompt=prompt, model=model, system_prompt="")


def test_two_texts_share_what_both_begin_with() -> None:
    assert [common_prefix("abcd", other) for other in ("abxd", "", "abcdef", "xbcd")] == [2, 0, 4, 0]


def test_what_stood_in_any_earlier_prompt_of_the_model_can_be_served() -> None:
    calls = (asked("aabb"), asked("ccdd"), asked("aaxx"), asked("ccdd", model="other"))
    shared = share_of(calls, newest_only=False, one_model=False)
    assert shared == Share(total=20, shared=3 + 1)


def test_one_slot_keeps_the_newest_prompt() -> None:
    calls = (asked("aabb"), asked("ccdd"), asked("aaxx"), asked("aayy"))
    assert share_of(calls, newest_only=True, one_model=False).shared == 1 + 1 + 3


def test_one_model_for_all_roles_shares_more() -> None:
    calls = (asked("aabb"), asked("aacc", model="other"))
    assert share_of(calls, newest_only=False, one_model=False).shared == 0
    assert share_of(calls, newest_only=False, one_model=True).shared == 3
