import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from cli.program import Uwf


def test_project_is_named_when_it_becomes_a_store_and_found_from_its_folders(
    uwf: Uwf, git: Callable[..., str]
) -> None:
    git("init", "-q", cwd=uwf.place)
    (uwf.place / "deep").mkdir()

    made = uwf("init", ".", repo=None, cwd=str(uwf.place / "deep"))

    assert json.loads(made.out) == {"repo": str(uwf.place / ".git"), "created": False}
    assert made.err.startswith(f"note: the repository {uwf.place}/.git is a store now")
    assert os.listdir(uwf.place / "deep") == []
    assert uwf("init", ".", repo=None).err == ""
    # A new folder of its own is what it was.
    assert uwf.json("init", "deep/new.git", repo=None)["created"]
    assert uwf.json("init", "--shared", ".", repo=None, cwd=str(uwf.place / "deep/new.git"))


def test_without_a_path_it_is_the_named_one_or_the_user_s(uwf: Uwf) -> None:
    assert uwf.json("init")["repo"] == uwf.session.repo
    assert uwf.json("init", repo=None)["repo"] == f"{os.environ['HOME']}/.uwf/store.git"


def test_shared_one_has_hooks_that_find_this_uwf(uwf: Uwf) -> None:
    made = uwf.json("init", "--shared", "hub.git", repo=None)

    assert (made["repo"], made["created"]) == (str(uwf.place / "hub.git"), True)
    assert [os.path.basename(path) for path in made["hooks"]] == ["pre-receive", "post-receive"]
    for path in made["hooks"]:
        assert os.access(path, os.X_OK)
        assert f"python={sys.executable}\n" in Path(path).read_text()
    assert "pre-receive" in uwf("init", "--shared", "hub.git", "--format", "text", repo=None).out


def test_repository_of_another_kind_is_refused(uwf: Uwf, git: Callable[..., str]) -> None:
    git("init", "-q", "--object-format=sha256", cwd=uwf.place)

    uwf("init", ".", repo=None).refused(1, "sha256")


def test_what_one_user_leaves_in_a_shared_store_keeps_nobody_out(uwf: Uwf) -> None:
    before = os.umask(0o022)
    try:
        uwf.json("init", "--shared", "hub.git", repo=None)
        uwf.json("--repo", "hub.git", "workflow", "put", uwf.file(), repo=None)
        own = Path(os.environ["XDG_STATE_HOME"], "uwf/stores")
        # As an older uwf left it.
        own.mkdir(parents=True, exist_ok=True)
        own.chmod(0o775)
        uwf.json("--repo", "hub.git", "thread", "start", "demo", "-p", "x", repo=None)
        uwf.json("--repo", "hub.git", "agent", "trust", "foo bar", repo=None)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)

    hub = uwf.place / "hub.git"
    made = [path for path in hub.rglob("*") if "objects" not in path.parts]
    assert [path for path in made if not path.stat().st_mode & 0o020] == []
    (trust,) = own.glob("*/trust")
    assert {path.stat().st_mode & 0o777 for path in trust.parents[:3]} == {0o700}
