"""What `uwf` answers to a shell, by the protocol of fish: `type,word<TAB>meaning`."""

import pytest
from cli.program import Uwf
from commands.world import DEMO

from uwf_git.store.git.config import set_config


@pytest.fixture
def offered(uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> "Offered":
    return Offered(uwf, monkeypatch)


class Offered:
    """Ask what completes a line whose last word is being typed."""

    def __init__(self, uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> None:
        self.uwf, self.monkeypatch = uwf, monkeypatch

    def __call__(self, line: str) -> dict[str, str]:
        words, _, typed = line.rpartition(" ")
        # click itself reads these two.
        self.monkeypatch.setenv("COMP_WORDS", words)
        self.monkeypatch.setenv("COMP_CWORD", typed)
        environ = {**self.uwf.session.environ, "_UWF_COMPLETE": "fish_complete"}
        ran = self.uwf(environ=environ)
        assert (ran.status, ran.err) == (0, "")
        found: dict[str, str] = {}
        for row in ran.out.splitlines():
            word, _, meaning = row.partition("\t")
            if word:
                found[word.removeprefix("plain,")] = meaning
        return found


def test_thread_is_offered_with_its_status_workflow_and_task(uwf: Uwf, offered: Offered) -> None:
    thread = uwf.begun()

    assert offered("uwf thread show ") == {thread: "ready, demo: Do it."}
    assert list(offered(f"uwf thread show {thread[:9].lower()}")) == [thread]
    assert list(offered("uwf thread step it.")) == [thread]
    assert offered("uwf thread show 7Z") == {}
    for verb in ("diff", "take"):
        assert list(offered(f"uwf thread {verb} {thread} ")) == [thread]
    assert list(offered(f"uwf thread wait {thread} ")) == [thread]


def test_verb_is_offered_the_threads_that_it_can_change(uwf: Uwf, offered: Offered) -> None:
    thread = uwf.begun()
    uwf.json("thread", "pause", thread)
    other = uwf.begun()
    uwf.json("thread", "kill", other)

    assert list(offered("uwf thread resume ")) == [thread]
    assert list(offered("uwf thread rm ")) == [other]
    assert list(offered("uwf thread pause ")) == [thread]
    assert list(offered("uwf thread read ")) == [other, thread]
    for verb in ("answer", "retry"):
        assert offered(f"uwf thread {verb} ") == {}


def test_workflow_is_offered_by_name_or_else_as_a_file(uwf: Uwf, offered: Offered) -> None:
    uwf.json("workflow", "put", uwf.file())

    for words in ("run", "workflow show", "thread start"):
        # With those that uwf brings.
        assert list(offered(f"uwf {words} de")) == ["demo", "develop"]
    for option in ("thread list --workflow", "search x --workflow"):
        assert next(iter(offered(f"uwf {option} "))) == "demo"
    assert list(offered("uwf workflow history de")) == ["demo"]
    assert list(offered("uwf run ./")) == ["file,./"]
    assert offered("uwf workflow history ./") == {}


def test_role_is_offered_of_the_thread_or_workflow_that_is_named(
    uwf: Uwf, offered: Offered
) -> None:
    thread = uwf.begun()
    uwf.json("workflow", "put", uwf.file(DEMO.replace("demo", "other"), name="other.yaml"))

    both = {"writer": "of demo", "checker": "of demo"}
    assert offered(f"uwf thread context {thread} --role ") == both
    assert offered("uwf search x --workflow other --role w") == {"writer": "of other"}
    (owners,) = offered("uwf search x --role w").values()
    assert sorted(owners.removeprefix("of ").split(", ")) == ["demo", "other"]


def test_remote_is_offered_with_its_place(uwf: Uwf, offered: Offered) -> None:
    uwf.json("init", "hub.git", repo=None)
    uwf.json("remote", "add", "team", str(uwf.place / "hub.git"))

    for words in ("push", "fetch", "remote remove"):
        ((name, place),) = offered(f"uwf {words} t").items()
        assert (name, place[:8]) == ("team", str(uwf.place)[:8])
    assert offered("uwf remote add ") == {}
    assert offered("uwf config get ") == {}


def test_nothing_is_said_of_a_changed_config(uwf: Uwf, offered: Offered) -> None:
    thread = uwf.begun()
    uwf.json("thread", "step", thread)
    set_config(f"{uwf.session.repo}/config", "core.editor", "other")

    assert list(offered("uwf thread show ")) == [thread]
    assert "config was changed" in uwf("thread", "show", thread).err


def test_without_a_store_nothing_is_offered_or_made(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", "uwf thread show")
    monkeypatch.setenv("COMP_CWORD", "")
    environ = {**uwf.session.environ, "_UWF_COMPLETE": "fish_complete"}

    ran = uwf(environ=environ, repo=str(uwf.place / "none.git"))

    assert (ran.out, ran.err) == ("", "")
    assert not (uwf.place / "none.git").exists()
