import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cas_nodes import (
    NOWHERE,
    PERSON,
    add_misnamed,
    add_unchecked,
    keep_alone,
    new_caller,
    put_person,
)
from cli.program import Ran

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.session import Session
from uwf_git.commands.cas import put_payload, put_schema
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.names import NodeHash
from uwf_git.model.node import build_node, typed_hash
from uwf_git.store.lookup import put_nodes
from uwf_git.store.store import Store


@pytest.fixture
def schema(store: Store) -> NodeHash:
    """Return the schema of a person."""
    return put_schema(store, new_caller(), PERSON).hash


Cas = Callable[..., Ran]


def test_damaged_node_is_neither(cas: Cas, store: Store) -> None:
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    assert cas("has", NOWHERE).status == 5


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


def test_beginning_of_a_hash_needs_a_store(cas: Cas, tmp_path: Path) -> None:
    ran = cas("hash", TEXT[:5], "-", fed=b'"a"', repo=str(tmp_path / "none.git"))
    assert (ran.status, ran.out) == (1, "")

    assert json.loads(cas("hash", TEXT[:5], "-", fed=b'"a"').out)["hash"] == typed_hash(TEXT, "a")


def test_store_that_repo_names_is_used_without_a_path(cas: Cas, tmp_path: Path) -> None:
    path = str(tmp_path / "named.git")

    assert cas("init", "--format", "text", repo=path).out == f"repo: {path}\ncreated: yes\n"


def test_huge_input_is_refused_in_one_line(cas: Cas) -> None:
    for fed, told in [
        (b"[" * 450 + b"]" * 450, "the payload breaks schema"),
        (b"[" * 600 + b"]" * 600, "the value at $… is nested more than 500"),
        (b" " * 50_000_000, "standard input is larger than 16777216 bytes"),
    ]:
        ran = cas("put", "Text", "-", fed=fed)

        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith(f"error: {told}")
        assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize(("verb", "place"), [("refs", "payload"), ("walk", "")])
def test_missing_part_is_reported_and_the_status_says_so(
    verb: str, place: str, cas: Cas, store: Store, schema: NodeHash
) -> None:
    ada = add_unchecked(store, schema, {"name": "Ada", "friend": NOWHERE})

    ran = cas(verb, ada, "--format", "text")

    assert ran.status == 5
    told = f"{place}  {NOWHERE}  ! there is no node {NOWHERE} in this store"
    assert ran.out.splitlines()[-1] == told


def test_node_that_is_valid(cas: Cas, store: Store, schema: NodeHash) -> None:
    ada = put_person(store, name="Ada")

    ran = cas("schema", "validate", ada[:6].lower())

    assert ran.status == 0
    assert json.loads(ran.out) == {"schema": schema, "valid": True, "problems": []}
    assert cas("schema", "validate", ada, "--format", "text") == Ran(0, "valid\n", "")


def test_whole_nodes_are_ok(cas: Cas, store: Store) -> None:
    ada = put_person(store, name="Ada")

    ran = cas("verify", ada[:6].lower(), META)

    assert ran.status == 0
    assert json.loads(ran.out) == {"ok": True, "checked": [ada, META], "problems": []}
    assert cas("verify", ada, "--format", "text").out == "ok: 1 node\n"
    assert cas("verify", ada, META, "--format", "text").out == "ok: 2 nodes\n"


def test_problems_are_listed_with_their_places(cas: Cas, store: Store, schema: NodeHash) -> None:
    ada = add_unchecked(store, schema, {"name": 5, "friend": NOWHERE})

    ran = cas("verify", ada)

    assert ran.status == 5
    breaks = {"message": "it breaks its schema: 5 is not of type 'string'", "path": "name"}
    lacks = {"message": f"it refers to {NOWHERE}, which is not in this store"}
    problems = [{"node": ada, **each} for each in (breaks, lacks)]
    assert json.loads(ran.out) == {"ok": False, "checked": [ada], "problems": problems}


def test_text_is_a_line_a_problem(cas: Cas, store: Store) -> None:
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    ran = cas("verify", NOWHERE, "--format", "text")

    assert ran.status == 5
    told = f"{NOWHERE}: refs/cas/nodes: node {NOWHERE} holds other content: its name would be "
    assert ran.out.startswith(told)
    assert ran.out.count("\n") == 1


def test_many_threads_cost_little(cas: Cas, store: Store) -> None:
    """Processor time, not the clock: other programs may be busy."""
    for number in range(300):
        node = build_node(TEXT, f"note {number}", timestamp=0)
        keep_alone(store, f"refs/threads/01J000{number:020d}", node)
    oldest = build_node(TEXT, "note 0", timestamp=0).hash
    cas("get", META)
    began = time.process_time()

    assert cas("get", oldest).status == 0
    assert cas("get", oldest[:6]).status == 0
    assert cas("has", NOWHERE).status == 1
    assert time.process_time() - began < 1


PROGRAM = "import sys; from uwf_git.cli.cas import main; sys.exit(main())"
TEXT_CAT = "\ufeffé\r\n\0\x1b[2J\u2028 no newline"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("output_format", ["json", "text", "yaml"])
def test_text_comes_out_byte_for_byte_in_every_locale_and_format(
    locale: str, output_format: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = put_payload(store, new_caller(), "Text", TEXT_CAT).hash
    monkeypatch.setenv("LC_ALL", locale)
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    monkeypatch.setenv("PYTHONUTF8", "0")
    words = ["--repo", store.path, "cat", note, "--format", output_format]

    ran = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True)

    assert (ran.stdout, ran.stderr) == (TEXT_CAT.encode(), b"")


def test_put_and_cat_give_the_file_back(cas: Cas, tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf---\r\ntitle: x\r\n---\r\n\tbody"
    file = tmp_path / "note.md"
    file.write_bytes(content)

    name = cas("put", "Text", "--text", str(file), "--format", "text").out.strip()

    assert cas("cat", name[:8]).out.encode() == content


def test_everything_else_is_json_on_several_lines(cas: Cas, store: Store) -> None:
    ada = put_person(store, name="Adé")

    assert cas("cat", ada).out == '{\n  "name": "Adé"\n}\n'
    assert cas("cat", ada, "--format", "text").out == '{\n  "name": "Adé"\n}\n'
    assert cas("cat", ada, "--format", "yaml").out == "name: Adé\n"


def test_terminal_is_shown_controls_spelled_out(
    store: Store, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    note = put_payload(store, new_caller(), "Text", "é\x1b[2J\n").hash
    raw = put_payload(store, new_caller(), "Bytes", "/xs=").hash
    at_terminal = session._replace(repo=store.path, stdout_is_tty=True)

    for name in (note, raw):
        run(JSON_CAS, ["cat", name], prog="json-cas", environ={}, session=at_terminal)

    assert capsys.readouterr().out == "é\\x1b[2J\n\\xff\\x1b"


def test_tree_of_a_long_chain_stays_on_the_screen(cas: Cas, store: Store, schema: NodeHash) -> None:
    people = [build_node(schema, {"name": "p0"}, timestamp=0)]
    for number in range(1, 40):
        fields = {"name": f"p{number}", "friend": people[-1].hash}
        people.append(build_node(schema, fields, timestamp=0))
    put_nodes(store, people, new_caller().signing(store))

    lines = cas("walk", people[-1].hash, "--format", "text").out.splitlines()

    assert lines[-1] == f"{'  ' * 20}[39] {people[0].hash}  Person  p0"
    assert max(map(len, lines)) < 80


@pytest.mark.parametrize("words", [("refs",), ("walk",), ("schema", "list")])
def test_wide_text_is_not_cut(
    words: tuple[str, ...], cas: Callable[..., Ran], store: Store, session: Session
) -> None:
    long = put_schema(store, new_caller(), {"title": "x" * 60}).hash
    named = () if "list" in words else (put_payload(store, new_caller(), long, 1).hash,)
    there = session._replace(stdout_is_tty=True, environ={**session.environ, "COLUMNS": "40"})

    brief, wide = (
        cas(*words, *named, "--format", "text", *more, there=there).out
        for more in ((), ("--wide",))
    )

    assert max(map(len, brief.splitlines())) <= 40
    assert "x" * 60 in wide
