"""What a repository's tests may see of `.git`."""

from testing.repositories import git

from clean_room_agent.git.repository import Repository
from clean_room_agent.git.visible_metadata import (
    bare_configuration,
    shown_folders,
    written_files,
)


def test_no_remote_helper_or_password_is_shown(repo: Repository) -> None:
    git(repo.top, "remote", "add", "origin", "https://user:password@example.org/x")
    git(repo.top, "config", "credential.helper", "!steal")
    told = bare_configuration(repo).decode()
    assert "repositoryformatversion = 0" in told
    assert not {"password", "steal", "remote"} & set(told.replace("/", " ").split())
    assert "example.org" not in told


def test_refs_are_shown_as_names_and_objects_as_they_are(repo: Repository) -> None:
    files = written_files(repo)
    assert f"{repo.head} refs/heads/main" in files["packed-refs"].decode()
    assert "shallow" not in files
    assert shown_folders(repo) == {"objects": repo.common_dir / "objects"}


def test_objects_that_are_a_link_are_not_shown(repo: Repository) -> None:
    objects = repo.common_dir / "objects"
    objects.rename(repo.top / "kept")
    objects.symlink_to(repo.top / "kept")
    assert shown_folders(repo) == {}
