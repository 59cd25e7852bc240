from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Ran, Uwf

Git = Callable[..., str]
ZERO, A = "0" * 40, "a" * 40


@pytest.fixture
def hook(uwf: Uwf, ran: Callable[..., Ran]) -> Callable[..., Ran]:
    """Run a hook as git does: in the git directory, lines on standard input."""

    def run(name: str, *lines: str, **environ: str) -> Ran:
        given = "".join(line + "\n" for line in lines).encode()
        variables = {"GIT_DIR": str(uwf.session.repo), **environ}
        return ran("uwf_git", "hook", name, fed=given, env=variables)

    return run


def tip(uwf: Uwf, git: Git, ref: str) -> str:
    return git("rev-parse", ref, cwd=Path(str(uwf.session.repo))).strip()


def test_good_push_is_taken_in_silence(uwf: Uwf, hook: Callable[..., Ran], git: Git) -> None:
    ref = f"refs/threads/{uwf.begun()}"
    oid = tip(uwf, git, ref)
    git("update-ref", "-d", ref, cwd=Path(str(uwf.session.repo)))

    assert hook("pre-receive", f"{ZERO} {oid} {ref}") == Ran(0, "", "")


def test_refusals_are_lines_and_their_hints_are_reported_once(
    uwf: Uwf, hook: Callable[..., Ran], git: Git
) -> None:
    refs = [f"refs/threads/{thread}" for thread in [uwf.begun(), uwf.begun()]]

    done = hook("pre-receive", *(f"{tip(uwf, git, ref)} {ZERO} {ref}" for ref in refs))

    assert (done.status, done.out) == (1, "")
    first, second, hint = done.err.splitlines()
    assert first.startswith(f"error: {refs[0]}: it would be lost")
    assert second.startswith(f"error: {refs[1]}: it would be lost")
    assert hint.startswith("hint: leave this ref out of the push")


def test_many_refusals_are_cut_short(hook: Callable[..., Ran]) -> None:
    lines = [f"{ZERO} {A} refs/threads/{number}" for number in range(500)]

    told = hook("pre-receive", *lines).err.splitlines()

    assert len(told) == 52
    assert "error: and 450 more" in told


def test_name_cannot_move_the_cursor(hook: Callable[..., Ran]) -> None:
    told = hook("pre-receive", f"{ZERO} {A} refs/threads/\x1b[2J\r\u202e")

    assert told.status == 1
    assert not {"\x1b", "\r", "\u202e"} & set(told.err)


@pytest.mark.parametrize("name", ["pre-receive", "post-receive"])
def test_branches_are_let_through_without_a_store(name: str, hook: Callable[..., Ran]) -> None:
    loaded = hook(name, f"{ZERO} {A} refs/heads/main", PYTHONPROFILEIMPORTTIME="1")

    assert loaded.status == 0
    assert "dulwich" not in loaded.err


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["nonsense"], "is not that of a git receive hook"),
        ([f"{ZERO} {A}"], "is not that of a git receive hook"),
        ([f"{'0' * 64} {'a' * 64} refs/threads/x"], "SHA-256"),
    ],
)
def test_invalid_hook_input_is_refused(
    lines: list[str], told: str, hook: Callable[..., Ran]
) -> None:
    assert "Traceback" not in hook("pre-receive", *lines).refused(2, told).err


def test_repository_of_another_kind_takes_no_push(
    hook: Callable[..., Ran], git: Git, tmp_path: Path
) -> None:
    git("init", "-q", "--bare", "--object-format=sha256", "other.git", cwd=tmp_path)

    done = hook("pre-receive", f"{ZERO} {A} refs/threads/x", GIT_DIR=str(tmp_path / "other.git"))
    done.refused(1, "sha256")


def test_store_of_the_user_is_never_meant(
    uwf: Uwf, hook: Callable[..., Ran], git: Git, tmp_path: Path
) -> None:
    git("init", "-q", "--bare", "empty.git", cwd=tmp_path)
    ref = f"refs/threads/{uwf.begun()}"

    done = hook(
        "pre-receive",
        f"{ZERO} {tip(uwf, git, ref)} {ref}",
        GIT_DIR=str(tmp_path / "empty.git"),
        UWF_REPO=str(uwf.session.repo),
    )
    done.refused(1, "is missing")


def test_warning_of_a_listener_is_reported(uwf: Uwf, hook: Callable[..., Ran], git: Git) -> None:
    ref = f"refs/threads/{uwf.begun()}"
    git("config", "uwf.onReceive", "/bin/sh -c 'exit 3'", cwd=Path(str(uwf.session.repo)))

    done = hook("post-receive", f"{ZERO} {tip(uwf, git, ref)} {ref}")

    assert (done.status, done.out) == (0, "")
    assert done.err.startswith("warning: uwf.onReceive: /bin/sh ended with status 3")
