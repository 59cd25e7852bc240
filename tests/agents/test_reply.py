"""What agents print, and what is read of it, as written down, and laws of any output."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.reply import AgentReply, BadReply, parse_reply

MADE_UP = Path(__file__).parent / "made_up" / "replies.json"

JSON_LIKE = st.text('{}[]":,0eé\\u\n\0\x1b ameta').map(lambda text: f"{{{text}".encode())
FRONT_LIKE = st.text("-:'\"\n \x1b\x85é&*!{}[]|a").map(lambda text: f"---\n{text}\n---\n".encode())


def positional(stdout: bytes | str) -> AgentReply:
    raw = stdout if isinstance(stdout, bytes) else stdout.encode()
    return parse_reply(raw, protocol="positional")


def refused(stdout: bytes | str) -> BadReply:
    with pytest.raises(BadReply) as caught:
        positional(stdout)
    return caught.value


def test_outputs_are_read_as_ever(golden: Callable[[str, str], None]) -> None:
    told: list[str] = []
    for case, outputs in json.loads(MADE_UP.read_text()).items():
        told.append(f"{case}\n")
        for given_output in outputs:
            told += [f"    {json.dumps(given_output)}\n", *tell(given_output)]

    golden("replies.txt", "".join(told))


def tell(given_output: Mapping[str, Any]) -> Iterator[str]:
    stdout = given_output.get("text", "").encode() + given_output.get("bytes", "").encode("latin-1")
    protocol = given_output.get("protocol", "positional")
    try:
        reply = parse_reply(stdout, protocol=protocol, is_free=given_output.get("is_free", False))
    except BadReply as error:
        yield f"        {error.kind}: {error.message}\n        hint: {error.hint}\n"
        yield f"        exit status {error.exit_status}, facts: {error.facts}\n"
        return
    parts = {name: part for name, part in reply._asdict().items() if part is not None}
    yield f"        {parts}\n"


@given(st.binary())
def test_text_after_front_matter_is_kept_byte_by_byte(text: bytes) -> None:
    reply = positional(b"---\nok: true\n---\n" + text)

    assert reply.content == text.decode(errors="replace")
    assert (reply.raw is None) == (reply.content.encode() == text)


@pytest.mark.parametrize(
    ("stdout", "kind", "problem"),
    [
        ('{"meta": ' + "[" * 100_000, "bad-json", "nested too deeply"),
        ('{"meta": ' + "9" * 5000 + "}", "bad-json", "too many digits"),
        ("---\nn: 1" + "0" * 400 + "\n---\n", "bad-front-matter", ""),
    ],
)
def test_output_without_measure_is_refused(stdout: str, kind: str, problem: str) -> None:
    error = refused(stdout)

    assert error.kind == error.facts["kind"] == kind
    assert problem in error.message


def test_message_shows_a_clean_beginning() -> None:
    error = refused(b"\x1b[31mERROR\x1b[0m\r\n\x00quota \xff exceeded\n" + b"x" * 1000)

    assert error.message.endswith("…")
    assert "it begins: [31mERROR [0m quota \ufffd exceeded xxx" in error.message
    assert error.message.isprintable()
    assert len(error.message) < 250


@pytest.mark.parametrize("protocol", ["positional", "flags"])
@given(stdout=st.binary() | st.text().map(str.encode) | JSON_LIKE | FRONT_LIKE)
def test_any_output_is_an_answer_or_a_clean_complaint(
    protocol: Literal["positional", "flags"], stdout: bytes
) -> None:
    message = ""
    try:
        parse_reply(stdout, protocol=protocol)
    except BadReply as error:
        message = error.message
    assert message.isprintable()


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(-999, 999)),
    st.text(st.characters(codec="utf-8")),
)
def test_printed_reply_is_read_back(meta: dict[str, Any], content: str) -> None:
    reply = positional(json.dumps({"meta": meta, "content": content}))

    assert (reply.meta, reply.content) == (meta, content)
