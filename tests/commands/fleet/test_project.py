"""The files of a thread go with it from machine to machine."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from commands.at_work import wait_until
from commands.fleet.machines import PLAIN, SPLIT, Field, Machine, ended, finished
from fresh_store import REPOSITORY
from refusing import refuses
from seal import START_MS

from uwf_git.commands.fleet import shared_drive
from uwf_git.commands.fleet.shared_drive import Project
from uwf_git.commands.split import name_work
from uwf_git.model.names import ThreadId, build_thread_id
from uwf_git.store.git.program import Ran, run_program


def git(place: Path, *words: str) -> str:
    argv = ["git", "-C", str(place), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A bare repository with one commit."""
    bare, work = tmp_path / f"project-{REPOSITORY}", tmp_path / "project"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    subprocess.run(["git", "clone", "-q", str(bare), str(work)], check=True, capture_output=True)
    (work / "notes").write_text("begun\n")
    (work / "gone").write_text("x\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "begin")
    git(work, "push", "-q", "origin", "HEAD")
    return bare


def take_over(by: Machine, thread: str, project: Path, first: subprocess.Popen[str]) -> None:
    """Kill the machine of *first* while its second agent waits, and have *by* do the rest."""
    by.field.wait_paid(2)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    # This also ends the agent that was left alone.
    by.field.go.touch()
    finished(by.work(thread, "--project", str(project)))


def test_another_machine_goes_on_with_the_files_of_the_last_step(
    field: Field, project: Path
) -> None:
    a, b, c = (field.machine(name) for name in "abc")
    thread = a.begin(PLAIN)
    # The second agent waits after it has changed a file.
    field.let(
        "rm -f gone; echo step >> notes; [ $(wc -l < notes) = 3 ] && "
        f"until [ -e {field.go} ]; do sleep 0.05; done"
    )
    first = b.work(thread, "--project", str(project))
    with ended(first):
        take_over(c, thread, project, first)
    ref = f"refs/uwf/work/{thread}"
    # Of the killed turn nothing was taken over.
    assert git(project, "show", f"{ref}:notes") == "begun\n" + 3 * "step\n"
    assert git(project, "ls-tree", "--name-only", ref).split() == ["notes"]
    place = c.home / ".uwf/work" / thread
    assert (place / "notes").read_text() == "begun\n" + 3 * "step\n"
    assert not (place / "gone").exists()
    assert git(place, "log", "--format=%s") == "begin\n"


BRANCHES = """
name: branches
roles: {fast: {outputSchema: true}, slow: {outputSchema: true}, last: {outputSchema: true}}
root:
  type: sequential
  nodes:
    - type: parallel
      merge: last
      POLICY
      nodes: [{type: agent, agentId: fast}, {type: agent, agentId: slow}]
    - {type: agent, agentId: last}
"""


@pytest.mark.parametrize("is_apart", [False, True])
def test_another_machine_goes_on_with_the_files_of_a_branch_that_has_ended(
    field: Field, project: Path, *, is_apart: bool
) -> None:
    a, b, c = (field.machine(name) for name in "abc")
    setting = "isolation: worktree" if is_apart else "join: all"
    thread = a.begin(BRANCHES.replace("POLICY", setting))
    wait = f"until [ -e {field.go} ]; do sleep 0.05; done"
    field.let(f'touch "$UWF_ROLE"; [ $UWF_ROLE = slow ] && {wait}')
    first = b.work(thread, "--project", str(project))
    with ended(first):
        wait_until(lambda: field.refs("refs/archive"), "the branch is not at the hub")
        [branch] = [ref.removeprefix("refs/archive/") for ref in field.refs("refs/archive")]
        take_over(c, thread, project, first)
    # The branch that had ended was not paid twice.
    assert field.paid() == 2 + 2
    for place in (project, c.home / ".uwf/work" / thread):
        assert "fast" in git(place, "ls-tree", "--name-only", name_work(ThreadId(branch))).split()
    files = git(project, "ls-tree", "--name-only", f"refs/uwf/work/{thread}").split()
    assert ("fast" in files) is not is_apart


@pytest.mark.parametrize("base", ["", "{}", "dev", "v1"])
def test_a_thread_begins_at_any_name_of_a_commit(project: Path, tmp_path: Path, base: str) -> None:
    work = tmp_path / "project"
    git(work, "checkout", "-qb", "dev")
    git(work, "commit", "--allow-empty", "-qm", "dev")
    git(work, "tag", "v1")
    git(work, "push", "-q", "origin", "dev", "v1")
    tip = git(work, "rev-parse", "dev" if base else "dev^").strip()
    place = place_of(project, tmp_path, base=base.format(tip[:12]))
    place.prepare()
    assert git(Path(place.workdir), "rev-parse", "HEAD").strip() == tip
    # A branch there may have got another name meanwhile.
    git(work, "push", "-q", "origin", ":dev", "dev:refs/heads/dev/two")
    place.prepare()
    with refuses("project-empty", match="has no commit dev$"):
        place_of(project, tmp_path, base="dev").prepare()


@pytest.mark.parametrize("word", ["clone", "checkout"])
def test_what_a_kill_has_cut_short_is_done_again(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    place = place_of(project, tmp_path, base="")

    def die(argv: list[str], environ: Mapping[str, str], *, cwd: str) -> Ran:
        if word in argv:
            if word == "clone":
                os.makedirs(argv[-1])
            raise OSError("killed")
        return run_program(argv, environ, cwd=cwd)

    with monkeypatch.context() as patched:
        patched.setattr(shared_drive, "run_program", die)
        with pytest.raises(OSError, match="killed"):
            place.prepare()
    place.prepare()

    assert Path(place.workdir, "notes").read_text() == "begun\n"


def test_files_of_a_step_that_came_too_late_stay_with_its_fork(
    project: Path, tmp_path: Path
) -> None:
    place = place_of(project, tmp_path, base="")
    place.prepare()
    work, fork = Path(place.workdir), build_thread_id(START_MS, b"of a fork.")
    (work / "notes").write_text("late\n")
    git(work, "commit", "-qam", "late")
    git(work, "update-ref", name_work(place.thread), "HEAD")

    place.keep(place.thread, fork)
    place.prepare()

    assert (work / "notes").read_text() == "begun\n"
    assert git(project, "show", f"{name_work(place.thread)}:notes") == "begun\n"
    assert git(work, "show", f"{name_work(fork)}:notes") == "late\n"


def place_of(project: Path, at: Path, *, base: str) -> Project:
    thread = build_thread_id(START_MS, os.urandom(10))
    return Project(str(project), base, thread, (), str(at / "folder"), os.environ)


@pytest.mark.parametrize(
    "setting", [("clone.defaultRemoteName", "upstream"), ("safe.bareRepository", "explicit")]
)
def test_neither_variables_of_git_nor_settings_lead_elsewhere(
    project: Path, tmp_path: Path, setting: tuple[str, str]
) -> None:
    own = tmp_path / "project"
    git(own, "branch", "unpushed")
    around = dict(zip(("GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"), setting, strict=True))
    around |= {"GIT_CONFIG_COUNT": "1", "GIT_DIR": str(own / ".git")}
    place = place_of(project, tmp_path, base="")

    place._replace(environ={**os.environ, **around}).prepare()

    assert Path(place.workdir, "notes").read_text() == "begun\n"
    assert "unpushed" in git(own, "branch")


def test_no_setting_of_the_user_spoils_what_is_pushed_or_brought(
    project: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "[gc]\nauto = 1\nautoPackLimit = 1\nautoDetach = false\npruneExpire = now\n"
        "[fetch]\nunpackLimit = 1\n[trailer]\nseparators = =\n"
    )
    place = place_of(project, tmp_path, base="")
    place = place._replace(environ={**os.environ, "GIT_CONFIG_GLOBAL": str(config)})
    place.prepare()
    work = Path(place.workdir)
    head = git(work, "rev-parse", "HEAD").strip()
    (work / "notes").write_text("done\n")
    message = f"after a turn\n\nUwf-Thread: {place.thread}\nUwf-Head: {head}"
    git(work, "commit", "-qam", message)
    git(work, "update-ref", name_work(place.thread), "HEAD")
    git(work, "reset", "-q", "HEAD^")

    place.publish([place.thread])
    other = place._replace(folder=str(tmp_path / "other"))
    other.prepare()

    there = Path(other.workdir)
    assert git(there, "rev-parse", "HEAD").strip() == head
    assert git(there, "diff", "--name-only").split() == ["notes"]

    # What its agents dropped is theirs.
    (tmp_path / "draft").write_text("dropped\n")
    oid = git(there, "hash-object", "-w", str(tmp_path / "draft")).strip()
    os.utime(there / ".git/objects" / oid[:2] / oid[2:], (0, 0))
    git(work, "reset", "-q", "--soft", name_work(place.thread))
    git(work, "commit", "--allow-empty", "-qm", "newer")
    git(work, "update-ref", name_work(place.thread), "HEAD")
    place.publish([place.thread])
    other.prepare()

    assert git(there, "log", "-1", "--format=%s") == "newer\n"
    assert git(there, "cat-file", "-p", oid) == "dropped\n"


def test_branches_begin_with_the_files_of_their_thread(field: Field, project: Path) -> None:
    a = field.machine("a")
    thread = a.begin(SPLIT)
    field.let('echo "$UWF_THREAD_ID" >> notes')
    assert a.drive("--on", "local:2", "--project", str(project))["threads"] == {"completed": 6}
    listed = git(project, "for-each-ref", "--format=%(refname)", "refs/uwf/work").split()
    branches = [ref for ref in listed if not ref.endswith(thread)]
    assert branches
    for ref in branches:
        assert git(project, "show", f"{ref}:notes").splitlines()[:2] == ["begun", thread]


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_project_that_cannot_be_worked_on_is_told_before_an_agent_begins(
    field: Field, a: Machine, b: Machine, project: Path, *, is_empty: bool
) -> None:
    thread = a.begin(PLAIN)
    if is_empty:
        subprocess.run(["git", "init", "-q", "--bare", str(project / "none")], check=True)
    hook = project / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    place = project / "none" if is_empty else project
    err = finished(b.work(thread, "--project", str(place)), 1)
    assert ("has no commit to begin with" if is_empty else "does not take refs/uwf/work/") in err
    assert field.paid() == 0
    assert not field.refs("refs/claims")


def test_files_that_could_not_be_pushed_are_pushed_before_their_step(
    field: Field, a: Machine, b: Machine, project: Path, tmp_path: Path
) -> None:
    thread = a.begin(PLAIN)
    field.let(f"echo step >> notes; while [ ! -e {field.go} ]; do sleep 0.05; done")
    first = b.work(thread, "--project", str(project))
    with ended(first):
        field.wait_paid(1)
        project.rename(tmp_path / "away")
        field.go.touch()
        finished(first, 1)
    # The step stayed on the machine, with its files.
    assert field.log(thread)[-1].startswith("start")
    (tmp_path / "away").rename(project)
    finished(b.work(thread, "--project", str(project)))
    assert field.paid() == 3
    assert git(project, "show", f"refs/uwf/work/{thread}:notes") == "begun\n" + 3 * "step\n"


def test_workers_that_begin_at_once_share_a_mirror(a: Machine, b: Machine, project: Path) -> None:
    threads = [a.begin(PLAIN) for _ in range(4)]
    processes = [b.work(each, "--project", str(project)) for each in threads]
    with ended(*processes):
        for each in processes:
            finished(each)
