"""What keeps a row out of a dataset, and which split it goes to."""

import random
from itertools import combinations

import pytest
from msgspec.structs import replace
from tests.training.test_dataset import ORIGIN, row

from clean_room_agent.redaction import Redactor
from clean_room_agent.training.dataset import Message, TrainingRow
from clean_room_agent.training.dataset_filters import (
    alike,
    balance,
    cap,
    fault_of,
    jaccard,
    near_duplicates,
    split_functions,
    split_groups,
    split_repositories,
)

WORDS = [f"word{number}" for number in range(60)]


def asked(
    text: str, task: str, *, answer: str = "yes", repo: str = "/r", time: str = "2026-01-01"
) -> TrainingRow:
    return TrainingRow(
        prompt=(Message(role="user", content=text),),
        completion=(Message(role="assistant", content=answer),),
        origin=replace(ORIGIN, task_id=task, repo=repo, timestamp=time),
    )


def sentence(seed: int, length: int = 60) -> list[str]:
    return random.Random(seed).choices(WORDS, k=length)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("fine", ""),
        ("x " * 40, "longer than the bound"),
        ("key ghp_" + "a1B2c3D4e5" * 4, "holds a secret"),
        (" \n", "an empty message"),
        ("half \ud800", "not UTF-8"),
    ],
)
def test_each_fault_has_its_name(text: str, fault: str) -> None:
    redactor = Redactor(lambda: b"k" * 32)
    found = fault_of(asked(text, "t"), max_tokens=30, count=lambda one: len(one.split()), redactor=redactor)
    assert found == fault


def test_the_same_content_is_a_duplicate_in_any_group_and_another_answer_is_none() -> None:
    rows = [asked("what is it", "a"), asked("what is it", "b"), asked("what is it", "a", answer="no")]
    assert alike(rows, threshold=0.7) == {1: "duplicate"}


def test_rows_of_one_task_may_share_their_question_and_those_of_two_tasks_may_not() -> None:
    text = " ".join(sentence(1))
    rows = [asked(f"{text} {end}", task) for end, task in (("one", "a"), ("two", "a"), ("three", "b"))]
    assert alike(rows, threshold=0.7) == {2: "near-duplicate"}


def test_a_prompts_own_lines_do_not_make_rows_alike() -> None:
    rules = "\n".join(f"- rule {number} says what to do and what not to do" for number in range(30))
    rows = [asked(f"{rules}\n{' '.join(sentence(number, 12))}", f"t{number}") for number in range(6)]
    assert alike(rows, threshold=0.7) == {}


def test_minhash_finds_what_comparing_all_pairs_finds() -> None:
    rng = random.Random(3)
    texts = []
    for number in range(40):
        words = sentence(number)
        texts.append(" ".join(words))
        for _ in range(rng.randrange(2)):
            changed = list(words)
            for place in rng.sample(range(len(words)), rng.randrange(1, 6)):
                changed[place] = "other"
            texts.append(" ".join(changed))
    dropped = set(near_duplicates(texts, range(len(texts)), threshold=0.7))

    def triples(text: str) -> frozenset[str]:
        words = text.split()
        return frozenset(" ".join(words[at : at + 3]) for at in range(len(words) - 2))

    kept = [triples(text) for place, text in enumerate(texts) if place not in dropped]
    assert dropped
    assert all(jaccard(one, other) < 0.7 for one, other in combinations(kept, 2))


def test_of_each_repository_the_newest_tenth_of_tasks_is_test() -> None:
    rows = [asked(f"q{n}", f"t{n}", time=f"2026-01-{n + 1:02d}") for n in range(20)]
    rows += [asked(f"p{n}", f"s{n}", repo="/other", time=f"2020-01-{n + 1:02d}") for n in range(10)]
    splits = split_groups(rows)
    assert [split for _, split in sorted((r.origin.timestamp, splits[r.origin.group]) for r in rows[:20])][
        -4:
    ] == [*("validation", "validation", "test", "test")]
    assert splits[rows[29].origin.group] == "test"
    assert splits[rows[28].origin.group] == "validation"
    assert sum(splits[each.origin.group] == "train" for each in rows) == 16 + 8


def test_all_rows_of_a_task_stand_in_one_split_whenever_they_were_asked() -> None:
    rows = [asked(f"q{n}", f"t{n % 5}", time=f"2026-01-{n + 1:02d}") for n in range(25)]
    assert len(split_groups(rows)) == 5


def test_too_few_tasks_are_all_for_training() -> None:
    assert set(split_groups([asked("a", "1"), asked("b", "2")]).values()) == {"train"}


def test_caps_hold_by_task_and_repository() -> None:
    rows = [asked(f"q{n}", f"t{n % 3}") for n in range(12)]
    assert len(rows) - len(cap(rows, per_group=2, per_repository=100)) == 6
    assert len(rows) - len(cap(rows, per_group=9, per_repository=5)) == 5


def test_the_commonest_answer_is_cut_to_the_ratio_and_long_answers_are_left_alone() -> None:
    rows = [asked(f"q{n}", "t", answer="yes" if n < 2 else "no") for n in range(12)]
    out = balance(rows, max_ratio=3)
    assert len(out) == 4
    assert all(rows[place].completion[0].content == "no" for place in out)
    assert balance([row("a long answer"), row("yes")], max_ratio=1) == {}


def test_where_all_tasks_are_of_one_time_a_repository_is_in_one_split() -> None:
    rows = [asked("a", f"{repo} {task}", repo=f"/r{repo}") for repo in range(20) for task in range(3)]
    splits = split_repositories(rows)
    of_repository = {row.origin.repo: {splits[row.origin.group]} for row in rows}
    assert all(len(found) == 1 for found in of_repository.values())
    assert sorted(split for found in of_repository.values() for split in found) == [
        *["test"] * 2,
        *["train"] * 16,
        *["validation"] * 2,
    ]
    assert split_repositories(rows[::-1]) == splits
    assert set(split_repositories(rows[:6]).values()) == {"train"}


def test_of_ones_own_repositories_some_functions_are_held_out_as_far_as_half_of_the_rows_go() -> None:
    def rows_of(functions: int) -> list[TrainingRow]:
        return [asked(f"q{row}", f"t{number}") for number in range(functions) for row in range(4)]

    few, many = rows_of(20), rows_of(400)
    stage = few[0].origin.stage
    for rows, held in ((few, 40), (many, 300)):
        splits = split_functions(rows, stage)
        assert sum(splits[row.origin.group] == "test" for row in rows) == held
        assert split_functions(rows[::-1], stage) == splits
    assert set(split_functions(rows_of(1), stage).values()) == {"train"}
    assert set(split_functions(few, "another").values()) == {"train"}
