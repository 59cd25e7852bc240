from pathlib import Path

from cli.program import Uwf


def test_a_remote_is_added_and_named(uwf: Uwf) -> None:
    hub = str(uwf.place.parent / "hub.git")
    assert uwf.json("remote", "add", "origin", "../hub.git") == {"name": "origin", "url": hub}
    assert f'url = "{hub}"' in Path(str(uwf.session.repo), "config").read_text()


def test_a_password_is_not_shown(uwf: Uwf) -> None:
    ran = uwf("remote", "add", "origin", "https://me:secret@host/x")
    assert ran.status == 0
    assert "secret" not in ran.out + ran.err


def test_invalid_remote_is_refused(uwf: Uwf) -> None:
    uwf.json("remote", "add", "origin", "/x")
    for words, status in (
        (("origin", "/y"), 1),
        (("a b", "/y"), 2),
        (("b", ""), 2),
        (("b", "ext::sh"), 2),
        (("b\udcff", "/y"), 1),
    ):
        ran = uwf("remote", "add", *words)
        assert (ran.status, ran.out) == (status, ""), words
        assert ran.err.startswith("error: ")
