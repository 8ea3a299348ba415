"""Check, or extend, the list of real commits: `python -m benchmarks.commits --help` from the repository."""

import argparse
import sys
from pathlib import Path

from benchmarks.commits.checkouts import BenchmarkError
from benchmarks.commits.checks import Measured, measure
from benchmarks.commits.commit_list import CommitEntry, CommitList, SearchEntry, read_list, write_commits
from benchmarks.commits.search import Quota, Size, find

LIST = Path(__file__).with_name("real_commits.toml")
ROW = "{:<22} {:>5} {:>5} {:>6} {:>6} {:>7}  {}"


def show(entry: CommitEntry, measured: Measured) -> None:
    print(
        ROW.format(
            entry.id,
            len(entry.sources),
            entry.changed_lines,
            measured.tests,
            len(measured.turned),
            f"{measured.seconds:.1f}",
            measured.fault or "ok",
        ),
        flush=True,
    )


def check(work: Path, mirror: str, listed: CommitList, only: str, *, loud: bool) -> tuple[CommitEntry, ...]:
    """Every commit in whose id `only` stands has been run; those that are not as the list says are returned."""
    wrong = []
    for entry in listed.commits:
        if only not in entry.id:
            continue
        measured = measure(work, mirror, listed, entry)
        if not measured.fault and measured.turned != entry.must_pass:
            missing, new = (
                set(entry.must_pass) - set(measured.turned),
                set(measured.turned) - set(entry.must_pass),
            )
            words = f"turned green, unlike the list: {len(missing)} missing, {len(new)} more"
            measured = Measured(
                turned=measured.turned, seconds=measured.seconds, tests=measured.tests, fault=words
            )
        show(entry, measured)
        if measured.fault:
            wrong.append(entry)
            if loud:
                print(measured.output)
    return tuple(wrong)


def search(arguments: argparse.Namespace, listed: CommitList) -> None:
    """What was found is printed; with `--add` the list holds it in place of the repository's former commits."""

    def tell(entry: CommitEntry, measured: Measured) -> None:
        show(entry, measured)
        if arguments.loud:
            print(measured.output)

    quota = Quota(newest=arguments.take, wide=arguments.wide, creating=arguments.creating)
    found = find(
        arguments.work,
        arguments.mirror,
        listed,
        arguments.find,
        newest=arguments.newest,
        quota=quota,
        size=Size(sources=arguments.files, lines=arguments.lines),
        repairs=not arguments.any_kind,
        tell=tell,
    )
    print(f"{arguments.find}: {len(found.commits)} taken, {found.excluded.total()} left out")
    for reason, count in sorted(found.excluded.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count:>6}  {reason}")
    if arguments.add:
        search = SearchEntry(
            looked_at=found.looked_at, taken=len(found.commits), left_out=dict(found.excluded.most_common())
        )
        others = [entry for entry in listed.commits if entry.repository != arguments.find]
        searches = {**listed.searches, arguments.find: search}
        write_commits(arguments.list, (*others, *found.commits), searches)


def span(text: str) -> tuple[int, int]:
    """Two numbers, like 2-5."""
    low, _, high = text.partition("-")
    return int(low), int(high)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "work", type=Path, help="folder for checkouts and environments, outside this repository"
    )
    parser.add_argument("--mirror", required=True, help="where the repositories are, with {owner} and {name}")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--only", default="", help="check the commits in whose id this stands")
    parser.add_argument("--loud", action="store_true", help="print the end of the test output at a fault")
    parser.add_argument("--find", metavar="OWNER/NAME", help="look for commits instead, by the list's rule")
    parser.add_argument("--newest", type=int, default=300, help="how many commits to look at")
    parser.add_argument("--take", type=int, default=2)
    parser.add_argument("--wide", type=int, default=1)
    parser.add_argument("--creating", type=int, default=0)
    parser.add_argument(
        "--files",
        type=span,
        default=Size().sources,
        metavar="LOW-HIGH",
        help="source files that a commit changes",
    )
    parser.add_argument(
        "--lines", type=span, default=Size().lines, metavar="LOW-HIGH", help="lines that it changes in them"
    )
    parser.add_argument("--any-kind", action="store_true", help="changes of every kind, not only repairs")
    parser.add_argument("--add", action="store_true", help="write what was found into the list")
    arguments = parser.parse_args()
    arguments.work = arguments.work.resolve()
    arguments.work.mkdir(parents=True, exist_ok=True)
    listed = read_list(arguments.list)
    print(ROW.format("commit", "files", "lines", "tests", "turned", "seconds", ""))
    try:
        if arguments.find:
            search(arguments, listed)
            return 0
        wrong = check(arguments.work, arguments.mirror, listed, arguments.only, loud=arguments.loud)
    except BenchmarkError as exc:
        print(exc, file=sys.stderr)
        return 1
    checked = sum(arguments.only in entry.id for entry in listed.commits)
    print(f"{len(wrong)} of {checked} are not as the list says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
