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
        "show": LazyCommand("uwf_git.cli.thread.show:command", "Show where a thread stands"),
        "list": LazyCommand("uwf_git.cli.thread.list:command", "List the threads"),
        "kill": LazyCommand("uwf_git.cli.thread.kill:command", "End a thread and archive it"),
        "fork": LazyCommand(
            "uwf_git.cli.thread.fork:command", "Begin a new thread at a step of another"
        ),
        "read": LazyCommand(
            "uwf_git.cli.thread.read:command", "Read what was said in a thread, as text"
        ),
        "context": LazyCommand(
            "uwf_git.cli.thread.context:command", "Print what the agent whose turn it is may know"
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
        "list": LazyCommand("uwf_git.cli.workflow.list:command", "List the registered workflows"),
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

UWF = LazyGroup(
    "uwf",
    {
        "init": LazyCommand("uwf_git.cli.init:command", "Create a store"),
        "workflow": WORKFLOW,
        "thread": THREAD,
        "run": LazyCommand("uwf_git.cli.run:command", "Start a thread and drive it to its end"),
        "config": CONFIG,
        "completion": LazyCommand(
            "uwf_git.cli.completion:command", "Print the script that completes words in a shell"
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
