from collections.abc import Callable

from tests.retrieval.shop import IMPORTS, SHOP
from tests.retrieval.world import World, context_request

from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.retrieval.analysis import NearestCode, analyse, find_nearest

Make = Callable[..., World]


def nearest(world: World, **fields: object) -> NearestCode:
    request, source = context_request(**fields), world.source()
    return find_nearest(request, analyse(request, source).query, source, available_tokens=4000)


def test_files_and_definitions_come_best_first_each_definition_with_its_path(make: Make) -> None:
    found = nearest(make(SHOP, imports=IMPORTS), task="`format_amount` should group digits")
    assert found.files[0] == "shop/money.py"
    assert found.symbols[0] == "format_amount (shop/money.py)"


def test_the_words_of_a_failing_test_lead_to_definitions(make: Make) -> None:
    files = {
        "shop/a.py": "def alpha():\n    return 1\n",
        "shop/b.py": "def beta():\n    return 2\n",
        "tests/test_b.py": "from shop.b import beta\n\n\ndef test_it():\n    assert beta() == 3\n",
    }
    world = make(files, imports={"tests/test_b.py": ("shop/b.py",)})
    evidence = Evidence(tests=(FailingTest(name="tests/test_b.py::test_it"),))
    found = nearest(world, task="Make it right", evidence=evidence)
    assert found.symbols == ("beta (shop/b.py)",)
