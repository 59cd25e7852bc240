import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cas_nodes import PERSON, new_caller, put_person
from cli.ran import Ran

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.cas import JSON_CAS
from uwf_git.cli.session import Session
from uwf_git.commands.cas import put_payload, put_schema
from uwf_git.model.node import build_node
from uwf_git.store.lookup import put_nodes
from uwf_git.store.store import Store

Cas = Callable[..., Ran]

PROGRAM = "import sys; from uwf_git.cli.cas import main; sys.exit(main())"
TEXT = "\ufeffé\r\n\0\x1b[2J\u2028 no newline"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("output_format", ["json", "text", "yaml"])
def test_text_comes_out_byte_for_byte_in_every_locale_and_format(
    locale: str, output_format: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = put_payload(store, new_caller(), "Text", TEXT).hash
    monkeypatch.setenv("LC_ALL", locale)
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    monkeypatch.setenv("PYTHONUTF8", "0")
    words = ["--repo", store.path, "cat", note, "--format", output_format]

    ran = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, check=True)

    assert (ran.stdout, ran.stderr) == (TEXT.encode(), b"")


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


def test_tree_of_a_long_chain_stays_on_the_screen(cas: Cas, store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
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
