import msgspec

from clean_room_agent.retrieval.retrieval_config import JudgmentsConfig


def judgments(**values: object) -> JudgmentsConfig:
    return msgspec.convert(values, JudgmentsConfig)


def test_in_one_question_the_first_are_judged_whatever_their_scores() -> None:
    bound = judgments(route="batch", top_k=2, max_symbols=1).files_to_judge([1.0, 0.1, 0.0])
    assert bound == (2, "ranks below the first 2")


def test_one_by_one_what_is_far_below_the_best_is_not_asked_about() -> None:
    config = judgments(each_files=3, each_symbols=3, each_share=0.5)
    near = config.files_to_judge([1.0, 0.6, 0.2])
    assert near == (2, "has less than 50% of the best score")
    full = config.symbols_to_judge([1.0, 0.9, 0.8, 0.7])
    assert full == (3, "ranks below the first 3")
