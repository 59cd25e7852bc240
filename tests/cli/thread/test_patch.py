import io
from types import SimpleNamespace

import pytest
from cli.program import Uwf


def state(uwf: Uwf, thread: str) -> object:
    return uwf.json("thread", "context", thread)["state"]


def test_patch_is_read_from_a_file_or_from_standard_input(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = uwf.begun()
    uwf.json("thread", "patch", thread, "--file", uwf.file('{"from": "file"}', name="s.json"))
    assert state(uwf, thread) == {"from": "file"}

    for words in (["-"], ["--file", "-"]):
        stdin = SimpleNamespace(buffer=io.BytesIO(b'{"from": "stdin"}'))
        monkeypatch.setattr("uwf_git.cli.app.parameters.sys.stdin", stdin)
        uwf.json("thread", "patch", thread, *words)
        assert state(uwf, thread) == {"from": "stdin"}
        uwf.json("thread", "patch", thread, '{"from": null}')


def test_invalid_patch_changes_nothing(uwf: Uwf) -> None:
    for words, status, told in [
        ([], 2, "the patch is missing"),
        (["{}", "--file", "x"], 2, "the patch is given twice"),
        (["{"], 2, "the patch is not JSON"),
        (["[1]"], 2, "the patch is not an object"),
        (["{}"], 2, "the patch is empty"),
        (["--file", "no-such-file"], 1, "no-such-file cannot be read"),
        (['{"a": "\\ud800"}'], 1, "surrogate"),
        (['{"a": 1' + "0" * 400 + "}"], 1, ""),
    ]:
        thread = uwf.begun()
        before = uwf.json("thread", "show", thread)

        ran = uwf("thread", "patch", thread, *words)

        assert (ran.status, ran.out) == (status, "")
        assert told in ran.err
        assert ran.err.startswith("error: ")
        assert uwf.json("thread", "show", thread) == before
