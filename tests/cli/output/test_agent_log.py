import pytest

from uwf_git.cli.output.live import forwarded_output

Captured = pytest.CaptureFixture[str]


def printed(capsys: Captured, *pieces: bytes) -> str:
    with forwarded_output() as forwarded:
        for piece in pieces:
            forwarded.stderr(piece)
    return capsys.readouterr().err


def test_log_is_text_that_ends_its_last_line(capsys: Captured) -> None:
    for pieces, text in [
        ([], ""),
        ([b""], ""),
        ([b"a\n", b"b\n"], "a\nb\n"),
        ([b"no line end"], "no line end\n"),
        ([b"a\n", b"", b"b"], "a\nb\n"),
        (["é".encode()[:1], "é".encode()[1:] + b"\n"], "é\n"),
        ([b"\xff\n"], "\ufffd\n"),
        ([b"x\n", "é".encode()[:1]], "x\n\ufffd\n"),
        ([b"a\r\n", b"b\r", b"\nc\n"], "a\nb\nc\n"),
        ([b" 1%\r 2%\r", b" 3%\n"], " 1%\n 2%\n 3%\n"),
        ([b"\x1b[31mred\x1b[0m\n"], "red\n"),
        ([b"a\x1b", b"[1;3", b"1mb\n"], "ab\n"),
        ([b"\x1b[2Jgone\n"], "\\x1b[2Jgone\n"),
        ([b"\x1b]0;title\x07\n"], "\\x1b]0;title\\x07\n"),
        ([b"half \x1b[3"], "half \\x1b[3\n"),
        (["\u202eevil\n".encode()], "\\u202eevil\n"),
    ]:
        assert printed(capsys, *pieces) == text


def test_reply_that_is_an_object_is_printed_as_its_text(capsys: Captured) -> None:
    for log, reply, text in [
        (b"", b'{"meta": {"a": 1}, "content": "All\\nof it.", "rung": "tail"}', "All\nof it.\n"),
        (b"All\nof it.\n", b' {"meta": {}, "content": "All\\nof it.\\n"}\n', "All\nof it.\n"),
        (b"", b'{"meta": {}}', ""),
        (b"", b'{"meta": half', '{"meta": half\n'),
        (b"", b'{"a": 1}\n', '{"a": 1}\n'),
        (b"", b"\nA text.", "\nA text.\n"),
    ]:
        with forwarded_output() as forward:
            forward.stderr(log)
            forward.stdout(reply[:5])
            forward.stdout(reply[5:])

        assert capsys.readouterr().err == text


def test_lines_of_two_outputs_do_not_run_into_each_other(capsys: Captured) -> None:
    with forwarded_output() as forwarded:
        forwarded.stderr(b"think")
        forwarded.stderr(b"ing")
        forwarded.stdout(b"reply\n")
        forwarded.stderr(b" on\nand")

    assert capsys.readouterr().err == "thinking\nreply\n on\nand\n"
