import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agents.reply import AgentReply, BadReply, parse_reply

META = {"ok": True}

JSON_LIKE = st.text('{}[]":,0eé\\u\n\0\x1b ameta').map(lambda text: f"{{{text}".encode())
FRONT_LIKE = st.text("-:'\"\n \x1b\x85é&*!{}[]|a").map(lambda text: f"---\n{text}\n---\n".encode())


def positional(stdout: bytes | str) -> AgentReply:
    raw = stdout if isinstance(stdout, bytes) else stdout.encode()
    return parse_reply(raw, protocol="positional")


def flags(stdout: str) -> AgentReply:
    return parse_reply(stdout.encode(), protocol="flags")


def refused(
    stdout: bytes | str, protocol: Literal["positional", "flags"] = "positional"
) -> BadReply:
    raw = stdout if isinstance(stdout, bytes) else stdout.encode()
    with pytest.raises(BadReply) as caught:
        parse_reply(raw, protocol=protocol)
    assert "\n" not in caught.value.message
    assert caught.value.exit_status == 3
    return caught.value


def test_object_carries_everything() -> None:
    document = {
        "meta": META,
        "content": "text\r\n",
        "usage": {"tokens": 3},
        "state": {"key": None},
        "session": "s-1",
        "rung": "native",
        "from a later version": 1,
    }

    assert positional(json.dumps(document)) == AgentReply(
        meta=META,
        content="text\r\n",
        form="object",
        usage={"tokens": 3},
        state={"key": None},
        session="s-1",
        rung="native",
    )


@pytest.mark.parametrize(
    "stdout",
    ['{"meta":{"ok":true}}', ' \r\n{"meta": {"ok": true}}\n\n', '\ufeff{"meta":{"ok":true}}'],
)
def test_without_content_the_output_is_the_content(stdout: str) -> None:
    assert positional(stdout) == AgentReply(meta=META, content=stdout, form="object")


def test_null_is_absent() -> None:
    stdout = '{"meta": null, "content": null, "usage": null, "state": null, "session": null}'

    assert positional(stdout) == AgentReply(meta=None, content=stdout, form="object")


def test_meta_may_be_any_value() -> None:
    assert positional('{"meta": [1.0, "é"]}').meta == [1, "é"]


def test_front_matter_carries_meta_and_text() -> None:
    stdout = "---\nok: true\nplan:\n  - a: 1\n---\n\n# Text\r\n---\n  end"

    assert positional(stdout) == AgentReply(
        meta={"ok": True, "plan": [{"a": 1}]}, content="\n# Text\r\n---\n  end", form="front-matter"
    )
    assert flags(stdout) == positional(stdout)


@given(st.binary())
def test_text_after_front_matter_is_kept_byte_by_byte(text: bytes) -> None:
    reply = positional(b"---\nok: true\n---\n" + text)

    assert reply.content == text.decode(errors="replace")
    assert (reply.raw is None) == (reply.content.encode() == text)


def test_bare_meta_is_an_answer_with_flags_only() -> None:
    stdout = '{"ok": true}\n'

    assert flags(stdout) == AgentReply(meta=META, content=stdout, form="bare")
    assert refused(stdout).kind == "no-meta"


def test_whole_object_is_an_answer_with_flags_too() -> None:
    assert flags('{"meta": {"ok": true}, "content": "x"}') == positional(
        '{"meta": {"ok": true}, "content": "x"}'
    )


def test_field_that_is_called_meta_does_not_make_a_bare_meta_anything_else() -> None:
    assert flags('{"meta": "robots", "title": "x"}').meta == {"meta": "robots", "title": "x"}


def test_output_that_is_not_utf_8_is_kept_beside_its_text() -> None:
    stdout = b'{"meta": {"ok": true}, "content": "caf\xe9"}'

    assert positional(stdout) == AgentReply(
        meta=META, content="caf\ufffd", form="object", raw=stdout
    )


@pytest.mark.parametrize("stdout", ["", "\n \t\r\n", "\ufeff\n"])
def test_silence_is_no_answer(stdout: str) -> None:
    error = refused(stdout)

    assert (error.kind, error.message) == ("empty", "the agent printed nothing on stdout")
    assert '{"meta": {…}' in str(error.hint)


@pytest.mark.parametrize(
    ("stdout", "kind", "problem"),
    [
        ("Done, I fixed it.", "no-json", "neither a JSON object nor text with front matter"),
        ('log line\n{"meta": {}}', "no-json", "it begins: log line {"),
        ("[1, 2", "no-json", "neither"),
        ('[{"meta": {}}]', "not-an-object", "JSON, but not an object"),
        ('"text"', "not-an-object", "JSON, but not an object"),
        ("12", "not-an-object", "JSON, but not an object"),
        ('{"meta": {"a": 1}', "bad-json", "line 1, column 18"),
        ('{"meta": {}} trailing', "bad-json", "there is more text after the value"),
        ('{"meta": {"n": NaN}}', "bad-json", "the value at $.meta.n is nan"),
        ('{"meta": {"s": "\\ud800"}}', "bad-json", "the value at $.meta.s has a lone surrogate"),
        ('{"meta": {}, "content": "\\udc00"}', "bad-json", "$.content has a lone surrogate"),
        ('{"meta": {}, "meta": {}}', "bad-json", "the key 'meta' is there twice"),
        ('{"meta": ' + "[" * 100_000, "bad-json", "nested too deeply"),
        ('{"meta": ' + "9" * 5000 + "}", "bad-json", "too many digits"),
        ("{}", "no-meta", "only nothing"),
        ('{"content": "x", "a": 1}', "no-meta", 'no "meta", only a, content'),
        (
            '{"meta": {}, "content": 5}',
            "wrong-type",
            '"content" in the agent\'s output is not a str',
        ),
        ('{"meta": {}, "usage": []}', "wrong-type", '"usage" in the agent\'s output is not an obj'),
        ('{"meta": {}, "state": "x"}', "wrong-type", '"state"'),
        ('{"meta": {}, "session": 1}', "wrong-type", '"session"'),
        ('{"meta": {}, "rung": 1}', "wrong-type", '"rung"'),
        ("---\nok: true\n", "bad-front-matter", "begins on line 1 has no closing ---"),
        ("---\nok: [\n---\n", "bad-front-matter", "front matter is not YAML"),
        ("---\na: 1\nb: 2\na: 3\n---\n", "bad-front-matter", "(line 4)"),
        ("\n\n---\na: 1\na: 3\n---\n", "bad-front-matter", "(line 5)"),
        ("---\nn: .nan\n---\n", "bad-front-matter", "(line 2)"),
        ("---\nn: 1" + "0" * 400 + "\n---\n", "bad-front-matter", ""),
        ("---\n---\ntext", "not-an-object", "front matter is empty"),
        ("---\n- a\n---\ntext", "not-an-object", "front matter has no fields"),
        ("---\njust text\n---\n", "not-an-object", "front matter has no fields"),
    ],
)
def test_bad_reply_has_a_kind(stdout: str, kind: str, problem: str) -> None:
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


@pytest.mark.parametrize(
    ("stdout", "meta", "content"),
    [
        ("done\n", {}, "done"),
        ('["a", "b"]\n', {}, '["a", "b"]'),
        ("{no json}\n", {}, "{no json}"),
        ("---\nnever closed", {}, "---\nnever closed"),
        ('{"ok": true}\n', META, '{"ok": true}\n'),
        ('{"meta": {"ok": true}, "content": "said"}', META, "said"),
        ('{"content": "said"}', {}, "said"),
        ('{"content": 7}', {"content": 7}, '{"content": 7}'),
        (
            '{"content": "a", "ok": true}',
            {"content": "a", "ok": True},
            '{"content": "a", "ok": true}',
        ),
        (
            '{"content": "a", "state": "b"}',
            {"content": "a", "state": "b"},
            '{"content": "a", "state": "b"}',
        ),
        ('{"state": {"a": 1}}', {"state": {"a": 1}}, '{"state": {"a": 1}}'),
        ("---\nok: true\n---\nsaid", META, "said"),
    ],
)
def test_a_free_agent_may_print_anything(stdout: str, meta: Any, content: str) -> None:
    reply = parse_reply(stdout.encode(), protocol="positional", is_free=True)

    assert (reply.meta, reply.content) == (meta, content)


@pytest.mark.parametrize("stdout", ["", " \n", '{"meta": {}, "content": 7}'])
def test_a_free_agent_prints_something_and_keeps_the_types(stdout: str) -> None:
    with pytest.raises(BadReply):
        parse_reply(stdout.encode(), protocol="positional", is_free=True)


def test_a_free_agent_may_leave_out_its_fields() -> None:
    document = {"content": "said", "usage": {"tokens": 3}, "state": {"a": 1}, "session": "s"}

    reply = parse_reply(json.dumps(document).encode(), protocol="flags", is_free=True)

    assert reply == AgentReply({}, "said", "object", None, {"tokens": 3}, {"a": 1}, "s")
