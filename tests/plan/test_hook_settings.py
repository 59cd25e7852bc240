import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.plan.hooks import NotMergeable, StopHook, add_hooks, build_settings, remove_hooks

HOOK = StopHook("/srv/shop/.plugins/workflow/hooks/stop_hook", "/usr/bin/python3")
SETTINGS = build_settings("claude", HOOK)[".claude/settings.local.json"]
FOREIGN = {"hooks": [{"type": "command", "command": "make lint", "timeout": 5}]}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("aé界 \n\"'", max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
EVENTS = st.sampled_from(["Stop", "SessionEnd", "PreToolUse"])
# Of hooks that were empty before nobody knows later that they were there.
ENTRIES = st.lists(st.just(FOREIGN) | VALUES, min_size=1, max_size=2)
HOOKS = st.dictionaries(EVENTS, ENTRIES, min_size=1, max_size=3)


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), VALUES, max_size=3),
    st.none() | HOOKS,
    st.sampled_from([2, 4, "\t"]),
    st.sampled_from(["", "\n", "\r\n"]),
)
def test_what_is_put_in_comes_out_again(
    more: dict[str, Any], hooks: dict[str, Any] | None, indent: Any, end: str
) -> None:
    document = {**more, **({} if hooks is None else {"hooks": hooks})}
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    text = (text.replace("\n", "\r\n") if end == "\r\n" else text) + end

    added = add_hooks(text, SETTINGS)
    now = json.loads(added)

    assert {key: value for key, value in now.items() if key != "hooks"} == more
    for event, entries in SETTINGS["hooks"].items():
        assert now["hooks"][event] == [*(hooks or {}).get(event, []), *entries]
    assert add_hooks(added, SETTINGS) == added
    assert remove_hooks(added, {}) == (text if document else "")


def test_file_that_was_not_there_goes_again() -> None:
    added = add_hooks("", SETTINGS)
    assert json.loads(added) == SETTINGS
    assert added.endswith("}\n")
    assert remove_hooks(added, {}) == ""
    older = {"version": 1, "hooks": {"stop": [{"command": HOOK.command}]}}
    assert remove_hooks(json.dumps(older), {"version": 1}) == ""


def test_key_of_the_user_stays() -> None:
    """Cursor's own file has a version, claude's could have any."""
    text = '{"version": 7}'

    assert json.loads(remove_hooks(add_hooks(text, SETTINGS), {})) == {"version": 7}


def test_older_hook_of_ours_is_replaced() -> None:
    """The project was moved, or python was."""
    moved = StopHook("D:\\shop\\.plugins\\workflow\\hooks\\stop_hook", "C:\\python.exe")
    older = build_settings("claude", moved)[".claude/settings.local.json"]
    together = {
        "hooks": {"Stop": [{"hooks": [*FOREIGN["hooks"], *older["hooks"]["Stop"][0]["hooks"]]}]}
    }

    now = json.loads(add_hooks(json.dumps(together), SETTINGS))

    assert now["hooks"]["Stop"] == [FOREIGN, *SETTINGS["hooks"]["Stop"]]
    assert json.loads(add_hooks(add_hooks("", older), SETTINGS)) == SETTINGS


def test_hook_of_somebody_else_with_a_like_name_stays() -> None:
    theirs = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "~/bin/stop_hook"}]}]}}
    text = json.dumps(theirs)

    assert remove_hooks(text, {}) == text


def test_mark_and_line_ends_stay() -> None:
    text = '\ufeff{\r\n\t"model": "opus"\r\n}\r\n'

    added = add_hooks(text, SETTINGS)

    assert added.startswith('\ufeff{\r\n\t"model": "opus",\r\n\t"hooks": {\r\n')
    assert remove_hooks(added, {}) == text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{ // note\n}", "not JSON"),
        ('{"a": 1, "a": 2}', "there twice"),
        ("[]", "no JSON object"),
        ('{"hooks": []}', "hooks of another form"),
        ('{"hooks": {"Stop": {}}}', "hooks of another form"),
    ],
)
def test_settings_that_would_lose_something(text: str, problem: str) -> None:
    with pytest.raises(NotMergeable, match=problem):
        add_hooks(text, SETTINGS)
    with pytest.raises(NotMergeable, match=problem):
        remove_hooks(text, {})
