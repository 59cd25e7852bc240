"""Lines of logs: whole, and without keys wherever the pieces end."""

import base64
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.commands.agent_run.mask import Secrets
from uwf_git.commands.inspect.logs import LastLine, LogLines

SECRET = "correct-horse-battery-1"
SHAPED = "sk-0123456789abcdefABCDEF"
PEM = [
    "-----BEGIN RSA PRIVATE KEY-----",
    *(f"MIIEowIBAAKCAQEA{number:048}" for number in range(25)),
    "-----END RSA PRIVATE KEY-----",
]


def lines_of(*pieces: bytes, secrets: Sequence[str] = (SECRET,), before: bytes = b"") -> list[str]:
    lines = LogLines(Secrets(tuple(secrets)), before=before)
    return [line for piece in pieces for line in lines.add(piece)] + [*lines.end()]


def cut(content: bytes, places: list[int]) -> list[bytes]:
    """Cut *content* at *places*."""
    edges = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    return [content[start:end] for start, end in itertools.pairwise(edges)]


def test_lines_end_as_systems_and_progress_bars_end_them() -> None:
    assert lines_of(b"one\ntwo\r\n10%\r20%\r\n\nlast") == ["one", "two", "10%", "20%", "", "last"]
    assert lines_of(b"") == []
    assert lines_of(b"x\r") == ["x"]


@given(st.lists(st.sampled_from(["a", "é", "\r", "\n", "\t", SECRET, SHAPED, "日"])), st.data())
def test_where_the_pieces_end_changes_nothing(parts: list[str], data: st.DataObject) -> None:
    content = " ".join(parts).encode()
    pieces = cut(content, data.draw(st.lists(st.integers(0, 500), max_size=6)))

    told = lines_of(*pieces)

    assert told == lines_of(content)
    assert not any(SECRET in line or SHAPED in line for line in told)


def test_secret_that_lines_cut_is_masked_where_they_arrive_together() -> None:
    secret = "correct-horse-battery-" * 4
    encoded = base64.encodebytes(secret.encode())

    told = lines_of(b"key:\n" + encoded + b"end\n", secrets=[secret])

    assert told[0] == "key:"
    assert "".join(told[1:]) == "[masked]end"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_private_key_is_masked_over_all_its_lines(end: str) -> None:
    content = end.join(["before", *PEM, "after"]).encode()
    for pieces in ([content], cut(content, [30, 60, 200, 900])):
        assert lines_of(*pieces) == ["before", "[masked]", "after"]


def test_private_key_that_began_before_what_is_shown_is_masked() -> None:
    whole = "\n".join([*PEM, "after"]) + "\n"
    place = whole.index(PEM[10])

    told = lines_of(whole[place:].encode(), before=whole[:place].encode())

    assert told == ["after"]


def test_key_without_an_end_does_not_swallow_the_rest_of_the_log() -> None:
    content = "\n".join([PEM[0], *["a line"] * 1000]).encode()

    told = lines_of(content)

    assert told[0] == "[masked]"
    assert 700 < len(told) < 1000


def test_short_line_after_the_end_of_a_key_is_there() -> None:
    assert lines_of("\n".join([*PEM, "", "x"]).encode()) == ["[masked]", "", "x"]
    assert lines_of(f"{PEM[0]}\nabc\n{PEM[-1]} and more".encode()) == ["[masked]", " and more"]


def test_line_without_an_end_is_cut_between_words() -> None:
    lines = LogLines(Secrets((SECRET,)))
    words = b"word " * 60_000 + SECRET[:7].encode()

    told = list(lines.add(words))
    told += [*lines.add(SECRET[7:].encode()), *lines.end()]

    assert len(told) == 2
    assert told[1] == "[masked]"


def last_of(*pieces: bytes, secrets: Sequence[str] = (SECRET,)) -> str:
    line = LastLine(Secrets(tuple(secrets)))
    for piece in pieces:
        line.add(piece)
    return line.find()


def test_last_line_is_the_last_that_says_anything() -> None:
    assert last_of() == ""
    assert last_of(b"one\n\x1b[31mt", b"wo\x1b[0m\r\n\r\n \x1b[0m\n") == "two"
    assert last_of(b"10%\r20%\r") == "20%"
    assert last_of("caf\u00e9".encode()[:-1], "\u00e9".encode()[1:]) == "caf\u00e9"
    assert last_of(b"it is \x1b[2J " + SHAPED.encode()) == "it is \x1b[2J [masked]"
    assert last_of(b"said " + SECRET.encode()) == "said [masked]"


@pytest.mark.parametrize("ends", [0, 5, len(PEM) - 1])
def test_last_line_is_none_of_a_private_key(ends: int) -> None:
    begun = "before\n" + "\n".join(PEM[: ends + 1])

    assert last_of(begun.encode()).removeprefix("before") in {"", "[masked]"}
    assert last_of(b"x" * 20_000 + b"\n" + begun.encode()) == "[masked]"


def test_last_line_of_a_flood_costs_little_and_shows_no_half_of_a_key() -> None:
    line = LastLine(Secrets((SECRET,)))
    for _count in range(1000):
        line.add(b"x" * 65_536)
    assert line.find() == ""
    line.add(b" and then")
    assert line.find() == "and then"
    line.add(b"\n" + SECRET.encode() + b" " + b"y" * 32_000 + b" " + SECRET.encode())
    assert line.find().endswith("[masked]")
    line.add(SECRET.encode() * 2000)
    assert SECRET[4:] not in line.find()
