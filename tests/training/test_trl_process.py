"""How rows become tokens, with a tokenizer of words."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from clean_room_agent.training.trl_process import ROW_CANNOT, Rendering, kept, tokenised

MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|endoftext|>")
WIDE = (*MARKS, "<|repo_name|>", "<|file_sep|>")
ROW = {
    "id": "r1",
    "stage": "fill",
    "prompt": [{"role": "user", "content": "total = 0\n <<GAP>>\nreturn total\n"}],
    "completion": [{"role": "assistant", "content": " total += 1"}],
}
PAIR = {
    **ROW,
    "chosen": ROW["completion"],
    "rejected": [{"role": "assistant", "content": " total -= 1"}],
    "label": True,
}
JOB = {"kind": "sft", "max_length": 99}


class Words:
    """Its tokens are words and blanks, numbered as they come."""

    eos_token = "<|im_end|>"

    def __init__(self, *marks: str) -> None:
        self.known = dict.fromkeys(marks, 0)
        self.known = {word: number for number, word in enumerate(self.known)}

    def get_vocab(self) -> Mapping[str, int]:
        return self.known

    def __call__(self, text: str, *, add_special_tokens: bool) -> Mapping[str, list[int]]:
        assert not add_special_tokens
        return {"input_ids": [self.known.setdefault(w, len(self.known)) for w in re.findall(r"\w+|\W", text)]}

    def shown(self, ids: list[int]) -> str:
        words = {number: word for word, number in self.known.items()}
        return "".join(words[number] for number in ids)


def rendered(tokenizer: Words, row: Mapping[str, Any] = ROW, job: Mapping[str, Any] = JOB) -> tuple[str, str]:
    """The prompt and the answer, as text with the model's marks."""
    (one,) = tokenised([dict(row)], Rendering(tokenizer, {}), dict(job))
    asked = sum(label == -100 for label in one["labels"])
    return tokenizer.shown(one["input_ids"][:asked]), tokenizer.shown(one["input_ids"][asked:])


def test_a_gap_is_rendered_with_the_marks_of_its_model_as_servers_do() -> None:
    asked = "<|fim_prefix|>total = 0\n <|fim_suffix|>\nreturn total\n<|fim_middle|>"
    assert rendered(Words(*MARKS)) == (asked, " total += 1<|endoftext|>")
    front = "<|repo_name|>myproject\n<|file_sep|>filename\n"
    assert rendered(Words(*WIDE)) == (front + asked, " total += 1<|endoftext|>")


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("dpo", {"chosen": " total += 1<|endoftext|>", "rejected": " total -= 1<|endoftext|>"}),
        ("kto", {"completion": " total += 1<|endoftext|>", "label": True}),
    ],
)
def test_pairs_and_labelled_answers_of_gaps_are_told_with_the_same_marks(
    kind: str, row: Mapping[str, Any]
) -> None:
    words, job = Words(*MARKS), {**JOB, "kind": kind}
    assert tokenised([dict(PAIR)], Rendering(words, {}), job)
    asked = "<|fim_prefix|>total = 0\n <|fim_suffix|>\nreturn total\n<|fim_middle|>"
    assert kept([dict(PAIR)], Rendering(words, {}), job) == [{"prompt": asked, **row}]


def test_gaps_for_which_a_base_has_no_marks_cannot_be_trained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        rendered(Words())
    assert ended.value.code == ROW_CANNOT
    assert "no marks for gaps" in capsys.readouterr().err


def test_a_pair_in_whose_text_a_mark_stands_cannot_be_trained(capsys: pytest.CaptureFixture[str]) -> None:
    row = {**PAIR, "rejected": [{"role": "assistant", "content": " <|endoftext|>"}]}
    with pytest.raises(SystemExit) as ended:
        tokenised([row], Rendering(Words(*MARKS), {}), {**JOB, "kind": "dpo"})
    assert ended.value.code == ROW_CANNOT
    assert "row r1 of train has a mark of the base in its own text" in capsys.readouterr().err
