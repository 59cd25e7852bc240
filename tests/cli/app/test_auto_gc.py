"""Commands that write start packing, if it is due, after printing their result."""

from pathlib import Path

import pytest
from cli.program import Uwf
from store.small_packs import make_due, unpacked_in

from uwf_git.store.packing import count_files, hold_gc_lock
from uwf_git.store.store import Store, open_store

ENDLESS = """\
name: endless
roles:
  worker: {systemPrompt: Work.}
moderator:
  - {from: $START, to: worker}
  - {from: worker, to: $END, condition: depth >= 5}
  - {from: worker, to: worker}
"""


@pytest.fixture
def uwf(uwf: Uwf) -> Uwf:
    """Return the program, on a store that is due for packing in the foreground."""
    make_due(str(uwf.session.repo))
    return uwf


def store_of(uwf: Uwf) -> Store:
    return open_store(str(uwf.session.repo))


def again(uwf: Uwf) -> None:
    """Packing stays due: the failure is reported once, and blocks the next attempts."""
    Path(str(uwf.session.repo), "uwf", "gc.log").unlink(missing_ok=True)


def unpacked(uwf: Uwf) -> int:
    return unpacked_in(store_of(uwf))


def test_each_command_that_writes_packs_what_is_due(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    assert unpacked(uwf) == 0
    assert count_files(store_of(uwf)).packs == 1
    again(uwf)
    thread = str(uwf.json("thread", "start", "demo", "-p", "x", "--agent", uwf.agent())["thread"])
    assert unpacked(uwf) == 0
    uwf.json("thread", "step", thread)
    # Since strays stay due, it is not tried again for a day.
    assert unpacked(uwf) > 0
    again(uwf)
    uwf.json("thread", "kill", thread)
    assert unpacked(uwf) == 0


def test_a_long_run_packs_between_its_steps(uwf: Uwf) -> None:
    agent = uwf.agent(f"""
rm -f {uwf.session.repo}/uwf/gc.log
ls {uwf.session.repo}/objects/pack | grep -c 'pack$' >> {uwf.place}/seen
echo '{{"meta": {{}}, "content": "done '$RANDOM$$'"}}'""")
    ran = uwf("run", uwf.file(ENDLESS), "-p", "x", "--agent", agent)
    assert ran.status == 0, ran.err
    assert [int(line) for line in (uwf.place / "seen").read_text().split()] == [1] * 5


def test_nothing_that_goes_wrong_then_fails_the_command(uwf: Uwf) -> None:
    fake = uwf.agent("echo 'fatal: no space' >&2; exit 128", name="git")
    environ = {**uwf.session.environ, "PATH": f"{Path(fake).parent}:/usr/bin:/bin"}
    ran = uwf("workflow", "put", uwf.file(), environ=environ)
    assert ran.status == 0
    assert ran.err == ""
    told = "the last packing in the background failed: git gc failed: fatal: no space\n"
    assert [uwf("gc").err, uwf("gc").err] == [told, ""]


def test_a_gc_that_runs_already_is_enough(uwf: Uwf) -> None:
    with hold_gc_lock(store_of(uwf)):
        uwf.json("workflow", "put", uwf.file())
    # Due, and a command that only reads does not pack.
    uwf.json("thread", "list")
    assert unpacked(uwf) > 0
