from cli.program import Uwf, clone, make_hub

from uwf_git.store.git.config import set_config


def test_a_password_is_not_shown(uwf: Uwf) -> None:
    ran = uwf("remote", "add", "origin", "https://me:secret@host/x")
    assert ran.status == 0
    assert "secret" not in ran.out + ran.err + uwf("remote", "list").out


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


def test_wide_table_is_not_cut(uwf: Uwf) -> None:
    uwf.json("remote", "add", "origin", "https://host/" + "x" * 60)
    screen = {"stdout_is_tty": True, "environ": {**uwf.session.environ, "COLUMNS": "60"}}

    brief, wide = (
        uwf("remote", "list", "--format", "text", *words, **screen).out
        for words in ((), ("--wide",))
    )

    assert max(map(len, brief.splitlines())) <= 60
    assert "https://host/" + "x" * 60 in wide


def test_a_remote_is_forgotten_once(uwf: Uwf) -> None:
    uwf.json("remote", "add", "origin", "/x")
    assert uwf.json("remote", "remove", "origin") == {"name": "origin", "url": "/x"}
    uwf("remote", "remove", "origin").refused(1, "uwf remote add")


def test_a_mirror_refuses_to_record_until_it_is_repaired(uwf: Uwf, thread: str) -> None:
    set_config(f"{uwf.session.repo}/config", "remote.origin.url", "/x")
    set_config(f"{uwf.session.repo}/config", "remote.origin.fetch", "+refs/*:refs/*")
    for words in (("thread", "step", thread), ("push",), ("fetch",)):
        ran = uwf(*words).refused(1, "`uwf remote repair`")
        assert ran.err.splitlines()[0].startswith("error: remote origin is a mirror: ")
    assert uwf.json("thread", "show", thread)["depth"] == 0
    assert uwf.json("verify")["problems"] == []
    assert uwf("remote", "repair", "--format", "text").out == "repaired origin\n"
    assert uwf("remote", "repair", "--format", "text").out == "no remote is a mirror\n"
    assert uwf.json("thread", "step", thread)["status"] == "ready"


def test_a_clone_says_what_came(uwf: Uwf, thread: str) -> None:
    hub = make_hub(uwf)
    uwf.json("push")
    assert uwf("clone", hub, "--format", "text", repo=None).out.splitlines() == [
        f"repo      {uwf.place}/hub.git",
        f"created   refs/threads/{thread}",
        "created   refs/workflows/demo",
    ]
    uwf("clone", hub, repo=None).refused(1, "exists already")


def test_what_was_fetched_is_listed(uwf: Uwf, thread: str) -> None:
    hub = make_hub(uwf)
    uwf.json("push")
    other = clone(uwf, hub)
    assert uwf("fetch", "--format", "text", **other).out == "2 unchanged\n"
    uwf.json("thread", "step", thread)
    uwf.json("push")
    assert uwf.json("fetch", **other) == {
        "remote": "origin",
        "created": [],
        "moved": [f"refs/threads/{thread}"],
        "archived": [],
        "diverged": [],
        "refused": [],
        "busy": [],
        "ignored": [],
        "unchanged": 1,
    }
