from cli.program import Uwf


def test_a_remote_is_forgotten_once(uwf: Uwf) -> None:
    uwf.json("remote", "add", "origin", "/x")
    assert uwf.json("remote", "remove", "origin") == {"name": "origin", "url": "/x"}
    ran = uwf("remote", "remove", "origin")
    assert (ran.status, ran.out) == (1, "")
    assert "uwf remote add" in ran.err
