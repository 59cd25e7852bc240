import json
from collections.abc import Callable

from cas_nodes import NOWHERE
from cli.ran import Ran

from uwf_git.model.builtin import TEXT
from uwf_git.model.node import self_typed_hash, typed_hash

Cas = Callable[..., Ran]


def test_text_is_the_hash_alone(cas: Cas) -> None:
    ran = cas("put", "Text", "--text", "-", "--format", "text", fed=b"hello\n")

    assert ran == Ran(0, typed_hash(TEXT, "hello\n") + "\n", "")


def test_meta_schema_needs_no_type(cas: Cas) -> None:
    ran = cas("put", "--self", "-", fed=b'{"type": "object"}')

    assert json.loads(ran.out) == {"hash": self_typed_hash({"type": "object"}), "new": True}


def test_bad_input_is_refused_in_one_line(cas: Cas) -> None:
    for words, fed, status, told in [
        (["Text", "-"], b"5", 1, f"the payload breaks schema {TEXT}: 1 problem at the top: 5 is"),
        (["Text", "-"], b'"\\ud800"', 1, "the value at $ has a lone surrogate"),
        (["Text", "-"], b"[" * 450 + b"]" * 450, 1, "the payload breaks schema"),
        (["Text", "-"], b"[" * 600 + b"]" * 600, 1, "the value at $… is nested more than 500"),
        (["Text", "-"], b"\xff\x00", 1, "standard input is not UTF-8 text (byte 0)"),
        (["Text", "--text", "-"], b"a\xff", 1, "standard input is not UTF-8 text (byte 1)"),
        (["Text", "-"], b" " * 50_000_000, 1, "standard input is larger than 16777216 bytes"),
        (["Text", "-"], b"", 2, "standard input is not JSON"),
        (
            ["Text", "-"],
            b'{"a":1,"a":2}',
            2,
            "standard input is not JSON: the key 'a' is duplicated",
        ),
        (["Text", "gone.json"], b"", 1, "gone.json cannot be read: No such file or directory"),
        ([NOWHERE, "-"], b"5", 1, f"there is no node {NOWHERE} in this store"),
        (["text", "-"], b"5", 2, "'text' is not a node hash"),
        (["--self", "-"], b'{"type": 1}', 1, "this is not a JSON Schema: "),
    ]:
        ran = cas("put", *words, fed=fed)

        assert (ran.status, ran.out) == (status, "")
        assert ran.err.startswith(f"error: {told}")
        assert ran.err.splitlines()[1].startswith("hint: ")
        assert len(ran.err.splitlines()) == 2
