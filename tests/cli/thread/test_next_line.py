"""Every stop of the program, and the line that tells the next command; that command fits."""

import re
import shlex
from typing import NamedTuple

import pytest
from cli.program import ANSWER, Uwf
from commands.at_work import BEGUN, HANG, SAY_PID, AtWork, at_work
from commands.world import DEMO, World

from uwf_git.cli.caller import caller_of
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store

GOOD = """--meta '{"ok": true, "text": "x"}'"""

RUN = "it is the turn of {role}: `uwf thread run T` continues, `uwf thread step T` takes one step"
ANSWER_IT = (
    "`uwf thread answer T` asks and records the answer; to have an agent play it: "
    "`uwf thread amend T --agent {role}=CMD`"
)
RETRY = (
    "`uwf thread retry T` lets a run go on, and with -m tells the agent something; "
    "`uwf thread step T` tries once more"
)
FORK = "`uwf thread fork T` continues it in a new thread"
BIND = (
    "no agent is bound to {role}: `uwf thread amend T --agent {role}=CMD`, then `uwf thread run T`"
)
RESUME = "`uwf thread resume T` lets it go on, then `uwf thread {then} T`"
MORE = (
    "thread T is at its limit: 1 of 1 steps are taken; give it more with `uwf thread amend T "
    "--max-steps N`, or end it with `uwf thread kill T`"
)
STUCK = (
    "no transition from writer holds; "
    "remove `when` or `condition` of its last transition in the workflow's file; "
    "`uwf thread amend T --workflow FILE` continues with the corrected file"
)


class Stop(NamedTuple):
    """The commands that lead to a stop, and what the last one advises."""

    commands: str
    """One a line; T is the thread."""

    advice: str
    agents: str = "AGENT"
    status: int = 0


RESUME_RUN = RESUME.format(then="run")
CHECKER_ASKED = ANSWER_IT.format(role="checker")
WRITER, CHECKER = RUN.format(role="writer"), RUN.format(role="checker")
HUMAN, BROKEN = "AGENT checker=human", "false"

STOPS = {
    "step": Stop("step T", CHECKER),
    "step before the end": Stop("step T\nstep T", "no role is left: `uwf thread step T` ends it"),
    "end": Stop("step T\nstep T\nstep T", "`uwf thread read T` shows all of it"),
    "step before a person's turn": Stop("step T", CHECKER_ASKED, HUMAN),
    "a person's turn": Stop("step T\nstep T", CHECKER_ASKED, HUMAN),
    "run to a person's turn": Stop("run T", CHECKER_ASKED, HUMAN),
    "step of a person's turn": Stop("run T\nstep T", CHECKER_ASKED, HUMAN, status=1),
    "run of a person's turn": Stop("run T\nrun T", CHECKER_ASKED, HUMAN, status=1),
    "answer": Stop(f"run T\nanswer T {GOOD}", CHECKER, "AGENT writer=human"),
    "answer of another thread's person": Stop(f"answer T {GOOD}", CHECKER_ASKED, "human"),
    "step before a role without agent": Stop("step T", BIND.format(role="checker"), "writer=AGENT"),
    "run --until": Stop("run T --until writer", CHECKER),
    "run --max-steps": Stop("run T --max-steps 1", CHECKER),
    "run to a limit": Stop("amend T --max-steps 1\nrun T", MORE),
    "step at a limit": Stop("amend T --max-steps 1\nstep T", MORE),
    "run of a thread that has failed": Stop("step T\nrun T", RETRY, BROKEN, status=1),
    "retry": Stop("step T\nretry T", WRITER, BROKEN),
    "wait for a thread that has failed": Stop("step T\nwait T", RETRY, BROKEN, status=3),
    "wait": Stop("step T\nwait T", CHECKER),
    "pause": Stop("pause T", RESUME_RUN),
    "pause of a person's turn": Stop("run T\npause T", RESUME.format(then="answer"), HUMAN),
    "pause of a thread that has failed": Stop(
        "step T\npause T", RESUME.format(then="retry"), BROKEN
    ),
    "step of a paused thread": Stop("pause T -m why\nstep T", RESUME_RUN, status=1),
    "run of a paused thread": Stop("pause T -m why\nrun T", RESUME_RUN, status=1),
    "patch of a paused thread": Stop("pause T\npatch T '{\"a\": 1}'", RESUME_RUN),
    "run that is paused": Stop("run T", RESUME_RUN, "PAUSING"),
    "resume": Stop("pause T\nresume T", WRITER),
    "resume to a person's turn": Stop("run T\npause T\nresume T", CHECKER_ASKED, HUMAN),
    "resume of a thread that has failed": Stop("step T\npause T\nresume T", RETRY, BROKEN),
    "patch": Stop("patch T '{\"a\": 1}'", WRITER),
    "amend": Stop("amend T --max-steps 9", WRITER),
    "amend of a thread that has failed": Stop("step T\namend T --max-steps 9", RETRY, BROKEN),
    "append": Stop("append T PLACE/more.yaml", WRITER),
    "amend without a way on": Stop("step T\namend T --workflow PLACE/stuck.yaml", STUCK),
    "retry at a limit": Stop("amend T --max-steps 1\nstep T\nretry T", MORE, status=1),
    "resume at a limit": Stop("amend T --max-steps 1\nstep T\nresume T", MORE, status=1),
    "resume of a failed thread": Stop("step T\nresume T", RETRY, BROKEN, status=1),
    "retry of a paused thread": Stop("pause T\nretry T", RESUME_RUN, status=1),
    "retry of a thread that waits": Stop("run T\nretry T", CHECKER_ASKED, HUMAN, status=1),
    "poke": Stop("step T\npoke T", CHECKER),
    "poke --no-step": Stop("step T\npoke T --no-step", WRITER),
    "kill": Stop("kill T", FORK),
    "run that is killed": Stop("run T", FORK, "KILLING", status=1),
    "show as text": Stop("step T\nshow T --format text", CHECKER),
    "show of a killed thread": Stop("kill T\nshow T --format text", FORK),
}

SCRIPTS = {
    "PAUSING": f"uwf thread pause $UWF_THREAD_ID >/dev/null 2>&1; {ANSWER}",
    "KILLING": "setsid uwf thread kill $UWF_THREAD_ID >/dev/null 2>&1 & sleep 60",
}


def begin(uwf: Uwf, agents: str) -> str:
    """Start a thread; a word in capitals is a program."""
    for name, script in {"AGENT": ANSWER, **SCRIPTS}.items():
        agents = agents.replace(name, uwf.agent(script, name=name.lower()))
    uwf.file("moderator:\n  - {from: writer, to: checker, when: 'true'}\n", name="more.yaml")
    stuck = DEMO.replace("to: checker}", "to: checker, condition: 'false'}")
    assert stuck != DEMO
    uwf.file(stuck, name="stuck.yaml")
    return uwf.begun(*agents.split())


def told(uwf: Uwf, thread: str, stop: Stop) -> str:
    """Run the commands of *stop*, and return what the last one printed for a person."""
    for command in stop.commands.splitlines():
        words = command.replace(" T", f" {thread}").replace("PLACE", str(uwf.place))
        ran = uwf("thread", *shlex.split(words), stderr_is_tty=True)
    assert ran.status == stop.status, ran.err
    return ran.err + ran.out


@pytest.mark.parametrize("name", STOPS)
def test_stop_says_the_next_command_and_that_command_fits(name: str, uwf: Uwf) -> None:
    stop = STOPS[name]
    thread = begin(uwf, stop.agents)

    lines = told(uwf, thread, stop).splitlines()

    word = "hint" if stop.status == 1 else "next"
    assert f"{word}: {stop.advice}".replace(" T", f" {thread}") in lines
    [command, *_others] = re.findall("`uwf ([^`]*)`", stop.advice)
    command = re.sub(r"\bT\b", thread, command)
    command = command.replace("=CMD", f"={uwf.agent()}").replace("-steps N", "-steps 9")
    command = command.replace("FILE", uwf.file())
    more = GOOD if "answer" in command else ""

    ran = uwf(*shlex.split(f"{command} {more}"))

    # An agent that is broken fails again.
    assert ran.status == (3 if stop.agents == BROKEN and "run" in command else 0), ran.err


@pytest.mark.parametrize(
    ("commands", "is_told"),
    [
        ("step T", False),
        ("step T\nstep T\nstep T", False),
        ("wait T", False),
        ("kill T", False),
        ("amend T --agent writer=human\nwait T", True),
        ("pause T", True),
        ("pause T\nresume T", True),
        ("fork T", True),
        ("run T --until writer", True),
    ],
)
def test_commands_that_scripts_repeat_say_it_elsewhere_only_if_a_person_is_needed(
    commands: str, *, is_told: bool, uwf: Uwf
) -> None:
    thread = uwf.begun()

    for command in commands.splitlines():
        ran = uwf("thread", *command.replace("T", thread).split())

    assert ("next: " in ran.err) is is_told


def under_way(uwf: Uwf) -> AtWork:
    """Start a thread whose step runs in another process."""
    thread = ThreadId(uwf.begun(uwf.agent(f"{SAY_PID}echo thinking >&2; {BEGUN}{HANG}")))
    store = open_store(str(uwf.session.repo))
    world = World(uwf.place, store, caller_of(uwf.session), uwf.session.new_thread_id)
    return at_work(world, thread)


def test_step_that_another_process_ends_says_so(uwf: Uwf) -> None:
    at = under_way(uwf)
    uwf.json("thread", "kill", at.thread, "-m", "of no use")

    _status, told = at.finish()

    assert told.endswith(
        f"hint: the thread is being ended: `uwf thread show {at.thread}` tells by whom, and "
        f"`uwf thread fork {at.thread}` continues it in a new thread\n"
    )
    shown = uwf.json("thread", "show", at.thread)
    assert (shown["by"], shown["reason"]) == ("C O Mitter <committer@example.com>", "of no use")


def test_thread_at_work_is_to_be_waited_for(uwf: Uwf) -> None:
    at = under_way(uwf)

    ran = uwf("thread", "retry", at.thread)

    uwf.json("thread", "kill", at.thread)
    at.finish()
    assert ran.err.endswith(f"hint: `uwf thread wait {at.thread}` waits until it stops\n")


def test_what_is_advised_names_the_store_that_was_typed(uwf: Uwf) -> None:
    store, thread = uwf.session.repo, uwf.begun(uwf.agent("exit 7"))
    uwf.json("config", "set", "retries", "0")
    given = ("thread", "run", thread)
    ran = uwf(*given, "--repo", str(store), repo=None)
    assert f"`uwf --repo {store} thread retry {thread}" in ran.err
    assert "--repo" not in uwf(*given).err
    shown = uwf("--repo", str(store), "thread", "show", thread, "--format", "text").out
    assert f"next: `uwf --repo {store} thread" in shown
    nothing = uwf("--repo", str(store), "ps", "--format", "text", repo=None)
    assert nothing.err == f"nothing runs; `uwf --repo {store} thread list` shows the threads\n"


def test_end_of_a_drive_names_the_store_that_was_typed(uwf: Uwf) -> None:
    store, thread = uwf.session.repo, uwf.begun()
    there = {"stdout_is_tty": True, "output_format": "text"}
    ran = uwf("--repo", str(store), "thread", "run", thread, repo=None, **there)
    assert f"\n  uwf --repo {store} thread read " in ran.out
    assert f"    uwf --repo {store} thread graph " in ran.out
