from benchmarks.real.proxy import Usage
from benchmarks.real.table import Result, page


def result(task: str, arm: str, *, solved: bool, claimed: bool = True) -> Result:
    return Result(
        task=task,
        set="planted-red",
        split="dev",
        arm=arm,
        solved=solved,
        claimed=claimed,
        usage=Usage(read=1000, cached=10, written=100),
        answers=3,
        refused=0,
        seconds=20.0,
        model_seconds=15.0,
        attempts=2,
        applied=1,
        note="",
        lost="place" if arm == "cra" and not solved else "",
    )


def test_arms_are_compared_with_cra_on_the_tasks_that_both_did() -> None:
    results = [result(f"t{number}", "cra", solved=number < 2) for number in range(8)]
    results += [result(f"t{number}", "one-shot", solved=number >= 2, claimed=False) for number in range(7)]
    lines = page(results, "dev").splitlines()
    assert lines[2].startswith(
        "| planted-red, cra | 8 | 2 | 6 of 8 | 1,000 | 10 | 100 | 20 | 15 | 50 % of 16 |"
    )
    assert lines[3].startswith("| planted-red, one-shot | 7 | 5 | 0 of 0 |")
    assert "+43 (" in lines[3], "five more and two fewer of seven"
    assert lines[3].endswith("| 0.453 |")
    assert lines[4:] == ["", "- planted-red, lost: place: 6"]
    assert len(page(results, "test").splitlines()) == 2, "no task of that split"
