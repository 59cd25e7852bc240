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
