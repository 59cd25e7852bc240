import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.request import Listener
from uwf_git.commands.agent_run.mask import masked_listener

KEY = "sk-ant-0123456789"
ENVIRON = {"MY_API_KEY": KEY, "OTHER_TOKEN": "6789-sk-ant-é"}


def heard(*pieces: bytes, environ: dict[str, str] | None = None) -> list[bytes]:
    said: list[bytes] = []
    with masked_listener(Listener(said.append), ENVIRON if environ is None else environ) as masked:
        assert masked.on_stderr is not None
        for piece in pieces:
            masked.on_stderr(piece)
    return said


def test_beginning_of_a_key_is_passed_on_at_the_end() -> None:
    assert heard(b"sk-ant") == [b"sk-ant"]
    assert heard(b"sk-ant", b" is none") == [b"sk-ant is none"]


def test_without_keys_the_listener_is_the_same() -> None:
    listener = Listener(print)

    with masked_listener(listener, {"HOME": "/root"}) as masked:
        assert masked is listener


def test_listener_that_fails_has_had_its_piece() -> None:
    said: list[bytes] = []

    def fail(piece: bytes) -> None:
        said.append(piece)
        raise ZeroDivisionError

    with masked_listener(Listener(fail), ENVIRON) as masked:
        assert masked.on_stderr is not None
        with pytest.raises(ZeroDivisionError):
            masked.on_stderr(b"once")

    assert said == [b"once"]


@given(
    st.lists(st.sampled_from([KEY, KEY[:6], "6789-sk-ant-é", "6789-sk", " ", "x\n", "é"])),
    st.lists(st.integers(1, 12)),
)
def test_no_key_passes_wherever_the_pieces_end(words: list[str], sizes: list[int]) -> None:
    text = "".join(words).encode()
    pieces, rest = [], text
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    said = b"".join(heard(*pieces, rest))

    for key in ENVIRON.values():
        assert key.encode() not in said
    if not any(key.encode() in text for key in ENVIRON.values()):
        assert said == text
