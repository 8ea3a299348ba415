from clean_room_agent.artifacts.edits import EditCode


def test_an_edit_stands_that_was_applied_now_or_before() -> None:
    assert {code for code in EditCode if code.accepted} == {EditCode.APPLIED, EditCode.ALREADY_APPLIED}


def test_codes_are_stored_under_their_own_names() -> None:
    assert all(code.value == code.name for code in EditCode)
