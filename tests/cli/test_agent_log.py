import pytest

from uwf_git.cli.agent_log import forwarded_log

Captured = pytest.CaptureFixture[str]


def printed(capsys: Captured, *pieces: bytes) -> str:
    with forwarded_log() as forward:
        for piece in pieces:
            forward(piece)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([], ""),
        ([b""], ""),
        ([b"a\n", b"b\n"], "a\nb\n"),
        ([b"no line end"], "no line end\n"),
        ([b"a\n", b"", b"b"], "a\nb\n"),
        (["é".encode()[:1], "é".encode()[1:] + b"\n"], "é\n"),
        ([b"\xff\n"], "\ufffd\n"),
        ([b"x\n", "é".encode()[:1]], "x\n\ufffd\n"),
    ],
)
def test_log_is_text_that_ends_its_last_line(
    pieces: list[bytes], text: str, capsys: Captured
) -> None:
    assert printed(capsys, *pieces) == text


def test_each_piece_is_passed_on_at_once(capsys: Captured) -> None:
    with forwarded_log() as forward:
        forward(b"thinking")
        assert capsys.readouterr().err == "thinking"


def test_line_is_ended_before_an_error_is_told(capsys: Captured) -> None:
    def fail() -> None:
        with forwarded_log() as forward:
            forward(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert capsys.readouterr().err == "half\n"
