"""What `cra prune` says at the end."""

from clean_room_agent.app.pruning import KindSize, Piece, Plan
from clean_room_agent.cli.views.prune import as_object, verdict

EMPTY = Plan(runs=(), others=(), sizes=(), notes=())
SOME = Plan(
    runs=(),
    others=(Piece(kind="temporary", name="/tmp/cra-1", size=2048),),
    sizes=(KindSize(kind="temporary", takes=4096, goes=2048, count=1),),
    notes=(),
)


def test_nothing_is_deleted_without_yes() -> None:
    assert verdict(EMPTY, done=False).startswith("nothing to delete")
    assert verdict(SOME, done=False).startswith("nothing was deleted; 2")
    assert verdict(SOME, done=False).endswith("would be deleted with --yes")
    assert verdict(SOME, done=True).endswith(" deleted")


def test_the_object_says_whether_it_was_done() -> None:
    told = as_object(SOME, ("kept one",), done=False)
    assert (told["done"], told["bytes"], told["notes"]) == (False, 2048, ("kept one",))
