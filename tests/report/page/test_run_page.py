"""What the page of a run holds, before anything is drawn."""

from tests.report.conftest import Solved

from clean_room_agent.report.page.run_page import run_page


def test_every_text_of_the_page_was_made_safe(solved: Solved) -> None:
    page = run_page(solved.conn, solved.trace, "cents", lambda text: text.replace("cents", "[hidden]"))
    assert list(page.texts) == [call.id for call in solved.trace.calls] == [use.call.id for use in page.uses]
    assert [row.kind for row in page.tests] == ["baseline", "final"]
    assert page.result == "[hidden]"
    assert not any("cents" in text.call.request.prompt for text in page.texts.values())
