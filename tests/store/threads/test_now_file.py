import pytest

from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.thread import Child, NotAPresent, Split, ThreadState
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.threads.message import parse_now

STATE = ThreadState(
    NodeHash("8FWKR3TN5V1QA"), {"writer": NodeHash("7BQST3VW9F2MA")}, 5, state={"n": 1}
)


def test_what_was_written_is_read_back() -> None:
    now = parse_now(encode_json(STATE.as_document()))

    assert now.present == STATE
    assert now.document == STATE.as_document()


@pytest.mark.parametrize(
    "content", [b"", b"null", b"{}", b"[" * 9999, b"\xff", b'{"a": "\\ud800"}', b'{"a": 1e999}']
)
def test_anything_else_is_refused(content: bytes) -> None:
    with pytest.raises(NotAPresent):
        parse_now(content)


def test_that_of_many_branches_is_parsed_once_and_nobody_can_change_it() -> None:
    branches = tuple(
        Child(ThreadId(f"01J{number:023}"), NodeHash("8FWKR3TN5V1QA")) for number in range(200)
    )
    state = STATE._replace(split=Split("0", branches), state={"list": [1]})
    content = encode_json(state.as_document())

    now = parse_now(content)

    assert now.present == state
    assert parse_now(bytes(bytearray(content))) is now
    with pytest.raises(TypeError):
        now.present.state["list"].append(2)
