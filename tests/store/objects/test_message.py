"""Messages; that git reads them as we do is judged by git in interop/test_trailers.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.event_folds import printable
from uwf_git.store.objects.commit import (
    BadMessage,
    body_of,
    build_message,
    parse_trailers,
    subject_of,
)

FORMAT_2 = {"Uwf-Format": "2"}

names = st.from_regex(r"Uwf-[A-Z][A-Za-z-]{0,20}", fullmatch=True)
words = st.text(st.characters(exclude_categories=["Cs"]))
trailers = st.dictionaries(names, words.filter(bool), min_size=1, max_size=5)


@given(who=st.text(), said=st.text(), body=st.text(), pairs=trailers)
def test_the_trailers_read_back_whatever_the_words(
    who: str, said: str, body: str, pairs: dict[str, str]
) -> None:
    pairs = {**pairs, **FORMAT_2}
    message = build_message(who, said, body=body, trailers=list(pairs.items()))
    assert parse_trailers(message) == pairs


@given(who=st.text(), said=st.text(), body=st.text())
def test_only_the_subject_and_the_trailers_stand_at_column_0(
    who: str, said: str, body: str
) -> None:
    text = build_message(who, said, body=body, trailers=[("Uwf-Event", "step")]).decode()
    first, *lines, event, last = text.split("\n")
    assert (event, last) == ("Uwf-Event: step", "")
    assert first
    assert len(first) <= 200
    assert printable(first) == first
    assert all(line == "" or line.startswith("    ") for line in lines)
    assert all(printable(line) == line for line in lines)
    assert subject_of(text.encode()) == first


@given(body=st.text())
def test_the_body_reads_back_but_for_what_cannot_be_printed(body: str) -> None:
    message = build_message("a", "b", body=body, trailers=[("Uwf-Event", "step")])
    again = build_message("a", "b", body=body_of(message), trailers=[("Uwf-Event", "step")])
    assert again == message


def test_a_message_reads_well() -> None:
    message = build_message(
        "developer",
        "fixed the\n redirect loop",
        body="\n\nBecause:\r\n\r\n  it looped\t\n\n",
        trailers=[("Uwf-Role", "développeur 1"), ("Uwf-Agent", "a b%c")],
    )
    assert message.decode() == (
        "developer: fixed the redirect loop\n\n"
        "    Because:\n\n      it looped\n\n"
        "Uwf-Role: d%C3%A9veloppeur%201\nUwf-Agent: a%20b%25c\n"
    )
    assert body_of(message) == "Because:\n\n  it looped"


def test_a_message_without_words_has_a_subject_and_no_body() -> None:
    message = build_message("", " \n", trailers=[("Uwf-Event", "step")])
    assert message == b"uwf:\n\nUwf-Event: step\n"
    assert body_of(message) == ""


def test_a_long_subject_is_cut() -> None:
    message = build_message("a" * 300, "b", trailers=[("Uwf-Event", "step")])
    assert subject_of(message) == "a" * 200


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"", "has no trailers"),
        (b"subject", "has no trailers"),
        (b"subject\n\nbody", "has no trailers"),
        (b"subject\n\nbody\n", "has a line among its trailers that is no trailer: 'body'"),
        (b"subject\n\nUwf-Event: step", "has no trailers"),
        (b"subject\n\nUwf-Event: step\n\n", "has no trailers"),
        (b"subject\n\n\nUwf-Event: step\n\nUwf-Event\n", "that is no trailer: 'Uwf-Event'"),
        (b"Uwf-Event: step\n", "has no trailers"),
        (b"subject\n\nUwf-Event: step\nUwf-Event: end\n", "says Uwf-Event twice"),
        (b"subject\n\nUwf-Event: step\n more\n", "that is no trailer: ' more'"),
        (b"subject\n\nUwf-Event:step\n", "that is no trailer"),
        (b"subject\n\nUwf-Event: \n", "that is no trailer"),
        (b"subject\n\nUwf-Event: a b\n", "that is no trailer"),
        (b"subject\n\nuwf-event: step\n", "that is no trailer"),
        (b"subject\n\nSigned-off-by: me\nUwf-Event: step\n", "that is no trailer"),
        (b"subject\r\n\r\nUwf-Event: step\r\n", "has no trailers"),
        (b"subject\n\nUwf-Event: st\xff\n", "that is no trailer"),
        (b"subject\n\nUwf-Event: step\n\0", "has no trailers"),
    ],
)
def test_what_uwf_would_not_write_is_refused(message: bytes, words: str) -> None:
    with pytest.raises(BadMessage) as caught:
        parse_trailers(message)
    assert words in caught.value.message
    assert caught.value.exit_status == 5


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3", "has format 3, newer than"),
        ("1", "has format 1"),
        ("x", "has no number"),
        ("1" * 10, "has no number"),
    ],
)
def test_message_of_another_format_is_refused(version: str, words: str) -> None:
    message = build_message("a", "b", body="", trailers=[("Uwf-Format", version)])

    with pytest.raises(BadMessage, match=words):
        parse_trailers(message)


def test_a_refusal_names_the_commit_when_it_is_known() -> None:
    assert "the message of a commit has" in BadMessage("has no trailers").message
    named = BadMessage("has no trailers", hint="look").of_commit("123")
    assert named.message == "the message of commit 123 has no trailers"
    assert (named.hint, named.facts) == ("look", {"commit": "123"})


@given(message=st.binary())
def test_whatever_a_message_is_it_has_trailers_or_is_refused(message: bytes) -> None:
    try:
        found = parse_trailers(message)
    except BadMessage:
        return
    assert found
