"""Bad input and bad places, end to end: one clear line, the right exit status, nothing lost.

Every command here is a process of its own, as people and scripts start it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli.program import Ran
from commands.world import DEMO
from programs import write_program

from uwf_git.commands.caller import Caller
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store

Git = Callable[..., str]

ANSWER = """echo ran >>ran; echo '{"meta": {"text": "x", "ok": true}}'"""

UWF = [sys.executable, "-m", "uwf_git"]

# What a root user must do without, to be stopped by the permissions of files.
WITHOUT_POWERS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"]


@dataclass(frozen=True, slots=True)
class Place:
    """A directory with a store in it, where `uwf` is called."""

    path: Path
    clock: Callable[[], int]
    new_id: Callable[[], ThreadId]

    @property
    def store(self) -> Path:
        return self.path / "store.git"

    def uwf(
        self, *words: str | bytes, env: dict[str, str | None] | None = None, **settings: Any
    ) -> Ran:
        """Run `uwf`; None takes a variable away; the rest is for `subprocess.run`."""
        environ = {**os.environ, "UWF_REPO": str(self.store), **(env or {})}
        before = settings.pop("before", [])
        settings.setdefault("stdin", subprocess.DEVNULL)
        ran = subprocess.run(
            [*before, *UWF, *words],
            cwd=self.path,
            env={name: value for name, value in environ.items() if value is not None},
            capture_output=True,
            check=False,
            **settings,
        )
        err = (ran.stderr or b"").decode()
        assert "Traceback" not in err
        assert "internal error" not in err
        return Ran(ran.returncode, (ran.stdout or b"").decode(), err)

    def json(self, *words: str | bytes, **settings: Any) -> Any:
        ran = self.uwf(*words, **settings)
        assert ran.status == 0, ran.err
        return json.loads(ran.out)

    def put(self) -> None:
        """Register `demo`; what every test needs is done in this process."""
        store = open_store(str(self.store), environ=os.environ)
        put_workflow(store, self.caller, (self.path / "demo.yaml").read_bytes())

    def begun(self) -> ThreadId:
        """Begin a thread whose agent counts its runs."""
        request = StartRequest("demo", "x", ("./agent",))
        store = open_store(str(self.store), environ=os.environ)
        return start_thread(store, self.caller, request, thread=self.new_id()).thread

    @property
    def caller(self) -> Caller:
        return Caller(self.clock, os.environ, str(self.path))

    def runs(self) -> int:
        counted = self.path / "ran"
        return len(counted.read_text().splitlines()) if counted.exists() else 0


@pytest.fixture
def place(
    tmp_path: Path, git: Git, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]
) -> Place:
    git("init", "-q", "--bare", "store.git", cwd=tmp_path)
    (tmp_path / "demo.yaml").write_text(DEMO)
    write_program(tmp_path / "agent", ANSWER)
    made = Place(tmp_path, clock, thread_ids)
    made.put()
    return made


def refused(ran: Ran, said: str, status: int = 1) -> None:
    """Check that a failure is one line that names the error, perhaps with a hint."""
    lines = ran.err.splitlines()
    assert ran.status == status, ran
    assert ran.out == ""
    assert lines[0].startswith("error: ")
    assert said in lines[0]
    assert len(lines) <= 2
    assert all(line.startswith("hint: ") for line in lines[1:])


def refs(place: Place, git: Git) -> str:
    return git("for-each-ref", cwd=place.store)


def test_huge_and_binary_files_are_no_workflows(place: Place, git: Git) -> None:
    before = refs(place, git)
    huge = place.path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(50_000_000)
    (place.path / "huge.txt").write_bytes(b"a: b\n" * 10_000_000)

    refused(place.uwf("workflow", "put", "huge.yaml"), "larger than 1 MiB")
    refused(place.uwf("workflow", "put", "huge.txt"), "larger than 1 MiB")
    with open(sys.executable, "rb") as binary:
        refused(place.uwf("workflow", "put", "-", stdin=binary), "")
    refused(place.uwf("workflow", "put", "/dev/null"), "the file is empty")
    assert refs(place, git) == before


def test_prompt_of_ten_megabytes_goes_through(place: Place) -> None:
    prompt = "Zwölf Boxkämpfer jagen Viktor.\n" * 300_000
    (place.path / "prompt.txt").write_text(prompt)

    start = ("thread", "start", "demo", "--agent", "./agent")
    with open(place.path / "prompt.txt", "rb") as file:
        piped = place.json(*start, "-p", "-", stdin=file)["thread"]
    named = place.json(*start, "--prompt-file", "prompt.txt")["thread"]

    assert place.json("thread", "step", named)["role"] == "writer"
    context = place.json("thread", "context", named)
    assert context["start"]["prompt"] == prompt.rstrip("\n")
    assert context["start"]["hash"] == place.json("thread", "show", piped)["head"]


@pytest.mark.parametrize(
    ("repo", "said"),
    [
        ("demo.yaml", "is not a git repository"),
        ("nowhere", "does not exist"),
        (".", "is not a git repository"),
        ("demo.yaml/x", "does not exist"),
    ],
)
def test_invalid_repo_is_reported_and_not_made(repo: str, said: str, place: Place) -> None:
    before = sorted(os.listdir(place.path))

    ran = place.uwf("--repo", repo, "thread", "start", "demo", "-p", "x")

    refused(ran, said)
    assert "uwf init" in ran.err
    assert sorted(os.listdir(place.path)) == before


def test_git_config_of_others_is_no_obstacle_and_a_broken_one_is_named(place: Place) -> None:
    config = Path(os.environ["HOME"], ".gitconfig")
    config.write_text(
        '[user]\n\tname = A "B" \\\n C\n[includeIf "gitdir:/nowhere"]\n\tpath = x\n'
        '[include]\n\tpath = ~/missing\n[alias]\n\tx = "!f() { :; }; f"\n[url "a:b"]\n'
        "\tinsteadOf = c\n[novalue]\n\tflag\n[core]\n\tfsync = all\n# end"
    )
    assert place.json("thread", "list") == []

    config.write_text("[user\nname = x")
    ran = place.uwf("thread", "list")

    refused(ran, ".gitconfig is not a git config file")


def test_reader_that_leaves_loses_nothing(place: Place) -> None:
    first, second = place.begun(), place.begun()
    script = '"$0" -m uwf_git thread step "$1" >&-; echo $?; "$0" -m uwf_git thread step "$2" | :'
    environ = {**os.environ, "UWF_REPO": str(place.store)}

    ran = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable, first, second],
        cwd=place.path, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (ran.stdout, ran.stderr) == ("0\n", "")
    for thread in (first, second):
        assert place.json("thread", "show", thread)["depth"] == 1


def test_home_that_is_missing_matters_only_to_the_default_store(place: Place) -> None:
    thread = place.begun()
    variables = ("HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")
    nobody: dict[str, str | None] = dict.fromkeys(variables)

    assert place.json("thread", "step", thread, env=nobody)["role"] == "writer"
    refused(place.uwf("thread", "list", env=nobody | {"UWF_REPO": None}), "$HOME", status=2)
    refused(place.uwf("thread", "list", env={"HOME": "/dev/null", "UWF_REPO": None}), "/dev/null")


@pytest.fixture
def read_only(place: Place) -> Iterator[list[str]]:
    """Make the store read-only, and return the prefix for a command."""
    assert place.begun()
    before: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write everywhere, and there is no setpriv to give that up")
        before = WITHOUT_POWERS
    folders = [place.store, *(path for path in place.store.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        yield before
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_store_that_may_only_be_read_can_be_read(place: Place, read_only: list[str]) -> None:
    thread = place.json("thread", "list", before=read_only)[0]["thread"]

    ran = place.uwf("thread", "read", thread, before=read_only)

    assert ran.status == 0
    assert ran.out.startswith("# x\n")


def test_store_that_may_only_be_read_refuses_changes(place: Place, read_only: list[str]) -> None:
    thread = place.json("thread", "list", before=read_only)[0]["thread"]
    start = ["thread", "start", "demo", "-p", "x"]

    for words in (["thread", "step", thread], ["thread", "kill", thread], start):
        ran = place.uwf(*words, before=read_only)
        refused(ran, "Permission denied")
        assert "hint: see who may read and write it" in ran.err
    assert place.runs() == 0


FULL_DISK = """
set -e
mkdir disk
mount -t tmpfs -o size=4m none disk
cd disk
exec 2>&1
uwf() { "$PYTHON" -m uwf_git --repo "$PWD/store.git" "$@"; }
git init -q --bare store.git
uwf workflow put ../demo.yaml >/dev/null
uwf thread start demo -p x --agent ./agent --workdir .. >started
thread=$(uwf thread list | sed 's/.*"thread":"\\([^"]*\\)".*/\\1/')
head -c 9000000 /dev/zero >fill 2>/dev/null || true
for words in "step $thread" "kill $thread" "start demo -p x"; do
    uwf thread $words || echo "status $?"
done
rm fill
uwf thread step "$thread" >stepped && echo stepped
uwf thread list | tr , '\\n' | grep -c '"thread"'
git -C store.git fsck --strict --no-dangling 2>/dev/null || echo damaged
find store.git -name '*.lock'
"""


def test_full_disk_is_reported_and_loses_nothing(place: Place) -> None:
    unshare = ["unshare", "--mount"]
    probe = [*unshare, "mount", "-t", "tmpfs", "none", "/mnt"]
    if (
        not shutil.which("unshare")
        or subprocess.run(probe, capture_output=True, check=False).returncode
    ):
        pytest.skip("this user may not mount a disk that is small enough to fill")

    ran = subprocess.run(
        [*unshare, "/bin/sh", "-c", FULL_DISK],
        cwd=place.path, env={**os.environ, "PYTHON": sys.executable},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "Traceback" not in ran.stdout
    lines = [line for line in ran.stdout.splitlines() if not line.startswith("hint: ")]
    errors = [line for line in lines if line.startswith("error: ")]
    statuses = [line for line in lines if line.startswith("status ")]
    assert len(errors) == len(statuses) == 3, ran.stdout
    assert all("No space left on device" in line for line in errors)
    assert lines[-2:] == ["stepped", "1"]
    assert place.runs() == 1


def test_commit_that_does_not_fit_costs_no_second_run(place: Place) -> None:
    # The agent may write what it likes; the engine's own files may have 512 bytes.
    noise = "head -c 3000 /dev/urandom | od -An -tx1 | tr -d ' \\n' >noise"
    (place.path / "agent").write_text(
        f"#!/bin/sh\nulimit -S -f unlimited\necho ran >>ran\n{noise}\n"
        """printf '{"meta": {"text": "x"}, "content": "%s"}' "$(cat noise)"\n"""
    )
    thread = place.begun()

    ran = place.uwf("thread", "step", thread, before=["/bin/sh", "-c", 'ulimit -S -f 1; "$@"', ""])

    refused(ran, "File too large")
    assert place.json("thread", "show", thread)["depth"] == 0
    assert place.json("thread", "step", thread)["role"] == "writer"
    assert place.runs() == 1
