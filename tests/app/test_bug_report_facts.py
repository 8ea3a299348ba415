"""Facts for a bug report, without secrets."""

from clean_room_agent.app.bug_report_facts import HIDDEN, without_named


def test_what_has_a_secret_s_name_is_hidden_at_any_depth() -> None:
    value = {
        "models": {"api_key": "abc", "api_key_env": "KEY", "extra_body": [{"password": "x", "top_k": 3}]}
    }
    assert without_named("", value) == {
        "models": {
            "api_key": HIDDEN,
            "api_key_env": "KEY",
            "extra_body": [{"password": HIDDEN, "top_k": 3}],
        }
    }


def test_an_empty_secret_says_so() -> None:
    assert without_named("token", "") == ""
