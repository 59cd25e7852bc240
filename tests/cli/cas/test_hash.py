import json
from collections.abc import Callable
from pathlib import Path

from cli.ran import Ran

from uwf_git.model.builtin import TEXT
from uwf_git.model.node import typed_hash

Cas = Callable[..., Ran]

# Made with json-cas itself: nodes keep their names when they move between the two.
VECTORS = json.loads((Path(__file__).parents[2] / "golden" / "cas.json").read_bytes())


def test_nodes_are_named_as_json_cas_does(cas: Cas) -> None:
    for vector in VECTORS["self"]:
        ran = cas("hash", "--self", "-", fed=json.dumps(vector["payload"]).encode())
        assert json.loads(ran.out) == {"hash": vector["hash"]}, vector["label"]
    for vector in VECTORS["typed"]:
        payload = json.dumps(vector["payload"], ensure_ascii=False).encode()
        ran = cas("hash", vector["type"].lower(), "-", fed=payload)
        assert json.loads(ran.out) == {"hash": vector["hash"]}, vector["label"]
    assert (len(VECTORS["self"]), len(VECTORS["typed"])) == (36, 30)


def test_text_file_is_named_as_a_text_node(cas: Cas) -> None:
    ran = cas("hash", "Text", "--text", "-", "--format", "text", fed=b"hello\r\n")

    assert ran.out == typed_hash(TEXT, "hello\r\n") + "\n"


def test_beginning_of_a_hash_needs_a_store(cas: Cas, tmp_path: Path) -> None:
    ran = cas("hash", TEXT[:5], "-", fed=b'"a"', repo=str(tmp_path / "none.git"))
    assert (ran.status, ran.out) == (1, "")

    assert json.loads(cas("hash", TEXT[:5], "-", fed=b'"a"').out)["hash"] == typed_hash(TEXT, "a")
