import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cas_nodes import new_caller, put_person
from cli.ran import Ran

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.json_cas import JSON_CAS
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas import put_payload
from uwf_git.store.store import Store

Cas = Callable[..., Ran]

PROGRAM = "import sys; from uwf_git.cli.json_cas import main; sys.exit(main())"
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
