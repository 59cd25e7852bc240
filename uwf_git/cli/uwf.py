"""`uwf`: the table of its commands.

Owns: names, order and summaries. Knows nothing of: what any command does; none is imported here.
"""

import os
import sys
from typing import NoReturn

from uwf_git.cli.boundary import run
from uwf_git.cli.lazy_group import LazyCommand, LazyGroup
from uwf_git.cli.options import version_option
from uwf_git.cli.streams import leave

THREAD = LazyGroup(
    "thread",
    {
        "start": LazyCommand(
            "uwf_git.cli.thread.start:command", "Create a thread without running a step"
        ),
        "step": LazyCommand("uwf_git.cli.thread.step:command", "Run one step of a thread"),
        "run": LazyCommand(
            "uwf_git.cli.thread.run:command", "Drive a thread, step after step, until it stops"
        ),
        "wait": LazyCommand(
            "uwf_git.cli.thread.wait:command", "Wait until nobody is at work on threads any more"
        ),
        "show": LazyCommand("uwf_git.cli.thread.show:command", "Show where a thread stands"),
        "list": LazyCommand("uwf_git.cli.thread.list:command", "List the threads"),
        "read": LazyCommand(
            "uwf_git.cli.thread.read:command", "Read what was said in a thread, as text"
        ),
        "logs": LazyCommand(
            "uwf_git.cli.thread.logs:command", "Show what was logged while a thread was at work"
        ),
        "diff": LazyCommand(
            "uwf_git.cli.thread.diff:command", "Compare two threads from their common step on"
        ),
        "context": LazyCommand(
            "uwf_git.cli.thread.context:command", "Print what the agent whose turn it is may know"
        ),
        "answer": LazyCommand(
            "uwf_git.cli.thread.answer:command", "Answer as the role that a thread waits for"
        ),
        "pause": LazyCommand(
            "uwf_git.cli.thread.pause:command",
            "Let a thread take no further step until it is resumed",
        ),
        "resume": LazyCommand(
            "uwf_git.cli.thread.resume:command", "Let a paused thread go on where it was"
        ),
        "retry": LazyCommand(
            "uwf_git.cli.thread.retry:command", "Let a thread that has failed be tried again"
        ),
        "poke": LazyCommand(
            "uwf_git.cli.thread.poke:command", "Let the newest step of a thread be taken again"
        ),
        "patch": LazyCommand(
            "uwf_git.cli.thread.patch:command", "Change the state of a thread by hand"
        ),
        "amend": LazyCommand(
            "uwf_git.cli.thread.amend:command",
            "Change the workflow, the agents or the limits of a thread",
        ),
        "append": LazyCommand(
            "uwf_git.cli.thread.append:command",
            "Add roles and transitions to a running thread, and to no other",
        ),
        "fork": LazyCommand(
            "uwf_git.cli.thread.fork:command", "Begin a new thread at a step of another"
        ),
        "kill": LazyCommand("uwf_git.cli.thread.kill:command", "End a thread and archive it"),
        "rm": LazyCommand(
            "uwf_git.cli.thread.rm:command", "Remove archived threads from this store"
        ),
    },
    help_text="Start, step and look at threads, the runs of workflows.\n\n"
    "A thread is a chain of commits; each step adds one. Any unique beginning of a thread's id "
    "names it.",
    examples=["uwf thread start solve-issue -p 'Fix the login bug'"],
)

WORKFLOW = LazyGroup(
    "workflow",
    {
        "put": LazyCommand(
            "uwf_git.cli.workflow.put:command", "Register a workflow from a YAML file"
        ),
        "show": LazyCommand("uwf_git.cli.workflow.show:command", "Show a workflow"),
        "list": LazyCommand(
            "uwf_git.cli.workflow.list:command", "List the workflows that can be started here"
        ),
        "history": LazyCommand(
            "uwf_git.cli.workflow.history:command", "List the versions of a workflow"
        ),
        "rollback": LazyCommand(
            "uwf_git.cli.workflow.rollback:command",
            "Make an older version of a workflow its newest one",
        ),
        "remove": LazyCommand(
            "uwf_git.cli.workflow.remove:command", "Take a workflow out of the registry"
        ),
        "validate": LazyCommand("uwf_git.cli.workflow.validate:command", "Check a workflow file"),
    },
    help_text="Register and look at workflows.\n\n"
    "A workflow is data: roles, and the rules of who is next.",
    examples=["uwf workflow put solve-issue.yaml"],
)

CONFIG = LazyGroup(
    "config",
    {
        "get": LazyCommand("uwf_git.cli.config.get:command", "Print a setting"),
        "set": LazyCommand("uwf_git.cli.config.set:command", "Change a setting"),
        "list": LazyCommand("uwf_git.cli.config.list:command", "List the settings"),
    },
    help_text="Read and change the settings of the store.\n\n"
    "They live in its git config, so `git config` works as well.",
    examples=["uwf config set agent uwf-mock"],
)

REMOTE = LazyGroup(
    "remote",
    {
        "add": LazyCommand("uwf_git.cli.remote.add:command", "Remember another repository"),
        "list": LazyCommand("uwf_git.cli.remote.list:command", "List the remotes"),
        "remove": LazyCommand("uwf_git.cli.remote.remove:command", "Forget a remote"),
    },
    help_text="Name the repositories that this store shares with.\n\n"
    "They live in its git config, so `git fetch` and `git push` know them as well.",
    examples=["uwf remote add origin git@example.com:team/threads.git"],
)

AGENT = LazyGroup(
    "agent",
    {
        "list": LazyCommand(
            "uwf_git.cli.agent.list:command", "List the agents that uwf knows, and which are here"
        ),
        "check": LazyCommand(
            "uwf_git.cli.agent.check:command", "Let an agent take one small step, and tell how"
        ),
        "trust": LazyCommand(
            "uwf_git.cli.agent.trust:command", "Let an agent command run in this store"
        ),
        "untrust": LazyCommand(
            "uwf_git.cli.agent.untrust:command", "Let an agent command run here no more"
        ),
        "trusted": LazyCommand(
            "uwf_git.cli.agent.trusted:command", "List the agent commands that may run here"
        ),
    },
    help_text="Look at the agents of this machine, and say which may run.\n\n"
    "A command that only came with a fetched thread or workflow is not run until it is trusted.",
    examples=["uwf agent check uwf-claude", "uwf agent trust 'uwf-claude --model opus'"],
)

UWF = LazyGroup(
    "uwf",
    {
        "init": LazyCommand("uwf_git.cli.init:command", "Create a store"),
        "workflow": WORKFLOW,
        "thread": THREAD,
        "run": LazyCommand("uwf_git.cli.run:command", "Start a thread and drive it to its end"),
        "ps": LazyCommand("uwf_git.cli.ps:command", "List what runs now"),
        "events": LazyCommand(
            "uwf_git.cli.events:command", "Tell what happens to the threads, one JSON object a line"
        ),
        "search": LazyCommand(
            "uwf_git.cli.search:command", "Search prompts, meta and content of all threads"
        ),
        "verify": LazyCommand(
            "uwf_git.cli.verify:command", "Check that the store holds what it says"
        ),
        "gc": LazyCommand("uwf_git.cli.gc:command", "Pack the store"),
        "push": LazyCommand("uwf_git.cli.push:command", "Push threads and workflows to a remote"),
        "fetch": LazyCommand(
            "uwf_git.cli.fetch:command", "Fetch threads and workflows from a remote"
        ),
        "clone": LazyCommand(
            "uwf_git.cli.clone:command", "Make a store with all that another one shares"
        ),
        "remote": REMOTE,
        "setup": LazyCommand(
            "uwf_git.cli.setup:command", "Find the agents of this machine and choose one"
        ),
        "agent": AGENT,
        "mcp": LazyCommand(
            "uwf_git.cli.mcp:command", "Let an agent read its thread and hand in its result"
        ),
        "config": CONFIG,
        "completion": LazyCommand(
            "uwf_git.cli.completion:command", "Print the script that completes words in a shell"
        ),
        "hook": LazyCommand(
            "uwf_git.cli.hook:command", "Answer git on behalf of a hook", hidden=True
        ),
    },
    help_text="Run multi-agent workflows one step per process, with git as the audit trail.\n\n"
    "Results are JSON on standard output; everything else goes to standard error.",
    examples=[
        "uwf workflow put solve-issue.yaml",
        "uwf thread start solve-issue -p 'Fix the login bug'",
        "uwf thread step 01J7K9M2",
    ],
)
UWF.params.insert(0, version_option())


def main() -> int:
    """Run `uwf` with the words and the environment of this process."""
    return run(UWF, sys.argv[1:], prog="uwf", environ=dict(os.environ))


def program() -> NoReturn:
    """Be the process `uwf`."""
    leave(main())
