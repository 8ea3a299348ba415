"""How much space our refs keep in git's object store, and what only they keep."""

from collections.abc import Collection

from clean_room_agent.errors import GitError
from clean_room_agent.git.command import one_line, require_hex
from clean_room_agent.git.repository import Repository
from clean_room_agent.git.result_refs import list_refs

USERS_REFS = ("refs/heads", "refs/remotes", "refs/tags", "refs/stash")
RUNS_BRANCHES = "refs/heads/cra/"


def bytes_kept_by(repo: Repository, commits: Collection[str]) -> int:
    """Bytes of the objects that git keeps for `commits` alone: no branch, remote or tag needs them; 0 where git cannot say."""
    if not commits:
        return 0
    own = {require_hex(commit) for commit in commits}
    users = {name for prefix in USERS_REFS for name in list_refs(repo, prefix).values()}
    wanted = "".join(f"{name}\n" for name in sorted(own)) + "".join(f"^{name}\n" for name in sorted(users))
    try:
        told = repo.git("rev-list", "--objects", "--disk-usage", "--stdin", input=wanted.encode())
    except GitError:  # an object is missing, as in a damaged or partial clone
        return 0
    return int(one_line(told))


def is_merged(repo: Repository, commit: str) -> bool:
    """Whether a branch, remote or tag that is not a run's holds the commit."""
    holding = one_line(
        repo.git("for-each-ref", "--format=%(refname)", "--contains", require_hex(commit), "--", *USERS_REFS)
    )
    return any(not name.startswith(RUNS_BRANCHES) for name in holding.split())
