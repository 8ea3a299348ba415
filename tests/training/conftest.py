"""A record whose every failure is known."""

import pytest
from testing.repositories import make_repository
from testing.seeded_record import Seeded, seed_record

COUNTS = {
    "retrieval": 5,
    "rank": 3,
    "scope": 210,
    "precision": 7,
    "budget": 2,
    "meta_plan": 4,
    "part_plan": 3,
    "format": 6,
    "implement": 11,
    "infrastructure": 2,
    "unknown": 9,
}


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Seeded:
    """A repository with a record of more than 2,000 calls; nobody changes it."""
    top = make_repository(tmp_path_factory.mktemp("seeded") / "shop", {"src/a.py": "x = 1\n"})
    return seed_record(top, COUNTS)
