"""`uwf`: the table of its commands; none is imported here."""

import os
import sys
from typing import NoReturn

from uwf_git.cli.app.lazy_group import LazyGroup, own, run, version_option
from uwf_git.cli.session import leave
from uwf_git.surroundings import speak_utf8

THREAD = LazyGroup(
    "thread",
    {
        "start": own("thread.start:start_command", "Create a thread without running a step"),
        "step": own("thread.step:step_command", "Run one step of a thread"),
        "run": own("thread.run:run_command", "Drive a thread, step after step, until it stops"),
        "wait": own("thread.run:wait_command", "Wait until no process works on the threads"),
        "show": own("thread.show:command", "Show the state of a thread"),
        "graph": own(
            "thread.report:graph_command",
            "Draw the workflow of a thread, and where the thread is in it",
        ),
        "list": own("thread.list:command", "List the threads"),
        "read": own("thread.read:command", "Print a thread as readable text"),
        "report": own("thread.report:command", "Write a report of a thread, one HTML file"),
        "files": own("thread.logs:files_command", "Show the files that a step changed"),
        "logs": own("thread.logs:command", "Show what was logged while a thread was at work"),
        "diff": own("thread.read:diff_command", "Compare two threads from their common step on"),
        "context": own(
            "thread.logs:context_command", "Print the context of the agent whose turn it is"
        ),
        "answer": own("thread.steer:answer_command", "Answer as the role that a thread waits for"),
        "pause": own(
            "thread.steer:pause_command", "Pause a thread: no further step until it is resumed"
        ),
        "resume": own("thread.steer:resume_command", "Resume a paused thread"),
        "retry": own("thread.steer:retry_command", "Retry a failed thread"),
        "poke": own("thread.amend:poke_command", "Redo the newest step of a thread"),
        "restore": own(
            "thread.logs:restore_command",
            "Restore the files of the project as they were after a step",
        ),
        "take": own(
            "thread.logs:take_command", "Take the files of a branch or a fork into the project"
        ),
        "patch": own("thread.steer:patch_command", "Change the state of a thread by hand"),
        "amend": own(
            "thread.amend:command",
            "Change the workflow, the agents or the limits of a thread",
        ),
        "append": own(
            "thread.amend:append_command", "Add roles and transitions, or nodes, to one thread"
        ),
        "fork": own(
            "thread.start:fork_command", "Fork a thread: start a new one at a step of another"
        ),
        "kill": own("thread.steer:kill_command", "End a thread and archive it"),
        "rm": own(
            "thread.start:rm_command",
            "Remove archived threads from this store, and their branches",
        ),
    },
    help_text="Start, step and inspect threads, the runs of workflows.\n\n"
    "A thread is a chain of commits; each step adds one. Any unique beginning of a thread's id "
    "names it, @ the newest, @2 the one before.",
    examples=["uwf thread start solve-issue -p 'Fix the login bug'"],
    sections={
        "Start": ("start", "step", "run", "wait"),
        "Look": ("list", "show", "read", "files", "logs", "diff", "graph", "report", "context"),
        "Steer": (
            "answer",
            "pause",
            "resume",
            "retry",
            "poke",
            "restore",
            "take",
            "patch",
            "amend",
            "append",
            "fork",
        ),
        "End": ("kill", "rm"),
    },
)

WORKFLOW = LazyGroup(
    "workflow",
    {
        "put": own("workflow_put:put_command", "Register a workflow from a YAML file"),
        "show": own("workflow:show_command", "Show a workflow"),
        "graph": own("workflow_put:graph_command", "Draw a workflow"),
        "list": own("workflow:list_command", "List the workflows that can be started here"),
        "history": own("workflow:history_command", "List the versions of a workflow"),
        "rollback": own("workflow:rollback_command", "Restore an older version of a workflow"),
        "remove": own("workflow:remove_command", "Remove a workflow from the registry"),
        "validate": own("workflow_put:validate_command", "Check a workflow file"),
        "draft": own("draft:command", "Have an agent write a workflow for a wish"),
        "judge": own(
            "workflow_put:judge_command",
            "Judge the newest draft of a thread, and answer as an agent does",
            hidden=True,
        ),
    },
    help_text="Register and inspect workflows.\n\n"
    "A workflow is data: roles, and the rules for the next role.",
    examples=["uwf workflow put solve-issue.yaml"],
)

PLAN = LazyGroup(
    "plan",
    {
        "run": own(
            "plan_run:run_command",
            "Split a task into plan files, carry them out in order, and have each phase verified",
        ),
        "resume": own(
            "plan_run:resume_command",
            "Go on with the plans of a directory, after a crash, a pause, a limit or used-up tries",
        ),
        "status": own("plan:status_command", "Show where the plans of a directory stand"),
        "plans": own("plan:plans_command", "List the plan files of a directory, with their status"),
        "clean": own(
            "plan:clean_command",
            "End the unfinished thread of a directory, and remove its state files",
        ),
        "plugin": own(
            "plan:plugin_command",
            "Write the plugin by which an AI tool tells that it has stopped",
        ),
    },
    help_text="Run, inspect and clean the plans of a directory.\n\n"
    "They are files docs/plans/NNN-name.md, and a thread of the workflow plan-execute carries "
    "them out.",
    examples=["uwf plan run 'Build the shop of docs/shop.md' --agent claude"],
)

CONFIG = LazyGroup(
    "config",
    {
        "get": own("config:get_command", "Print a setting"),
        "set": own("config:set_command", "Change a setting"),
        "list": own("config:list_command", "List the settings"),
    },
    help_text="Read and change the settings of the store.\n\n"
    "They are in its git config, so `git config` works as well.",
    examples=["uwf config set agent uwf-mock"],
)

REMOTE = LazyGroup(
    "remote",
    {
        "add": own("remote:add_command", "Add a remote"),
        "list": own("remote:list_command", "List the remotes"),
        "remove": own("remote:remove_command", "Remove a remote"),
        "repair": own("remote:repair_command", "Make a mirror safe to use"),
    },
    help_text="Name the repositories that this store shares with.\n\n"
    "They are in its git config, so `git fetch` and `git push` know them as well.",
    examples=["uwf remote add origin git@example.com:team/threads.git"],
)

AGENT = LazyGroup(
    "agent",
    {
        "list": own("agent:list_command", "List the known agents, and which are installed"),
        "check": own("agent:check_command", "Test an agent with one small step"),
        "trust": own("agent:trust_command", "Let an agent command run in this store"),
        "untrust": own("agent:untrust_command", "Stop trusting an agent command"),
        "trusted": own("agent:trusted_command", "List the agent commands that may run here"),
    },
    help_text="List and test the agents of this machine, and trust commands.\n\n"
    "A command that came with a fetched thread or workflow does not run until it is trusted.",
    examples=["uwf agent check uwf-claude", "uwf agent trust 'uwf-claude --model opus'"],
)

UWF = LazyGroup(
    "uwf",
    {
        "init": own("config:init_command", "Create a store"),
        "workflow": WORKFLOW,
        "thread": THREAD,
        "run": own("run:command", "Start a thread and drive it to its end"),
        "drive": own("drive:command", "Run what can go on at a hub, on many machines"),
        "work": own(
            "drive:work_command", "Run one thread of a hub on this machine, until it stops"
        ),
        "ps": own("watch:ps_command", "List what runs now"),
        "ui": own("ui:command", "Show and steer threads in a browser"),
        "plan": PLAN,
        "events": own("watch:events_command", "Print the events of threads, one per line"),
        "search": own(
            "thread.read:search_command", "Search prompts, meta and content of all threads"
        ),
        "watch": own("watch:command", "Show the threads live"),
        "verify": own("verify:command", "Check the integrity of the store"),
        "gc": own("config:gc_command", "Pack the store"),
        "push": own("remote:push_command", "Push threads and workflows to a remote"),
        "fetch": own("remote:fetch_command", "Fetch threads and workflows from a remote"),
        "clone": own("remote:clone_command", "Clone the threads and workflows of another store"),
        "remote": REMOTE,
        "setup": own("agent:setup_command", "Find the agents of this machine and choose one"),
        "agent": AGENT,
        "mcp": own(
            "ui:mcp_command", "Serve an agent: let it read its thread and submit its result"
        ),
        "config": CONFIG,
        "completion": own(
            "config:completion_command", "Print the script that completes words in a shell"
        ),
        "hook": own("hook:command", "Run a git hook", hidden=True),
    },
    help_text="Run multi-agent workflows one step per process, with git as the audit trail.\n\n"
    "Results are text at a terminal and JSON in a pipe, on standard output; everything else goes "
    "to standard error.",
    examples=[
        "uwf workflow put solve-issue.yaml",
        "uwf thread start solve-issue -p 'Fix the login bug'",
        "uwf thread step 01J7K9M2",
    ],
    sections={
        "Work": ("run", "thread", "workflow"),
        "Look": ("ps", "watch", "ui", "events", "search", "verify"),
        "Share": ("push", "fetch", "clone", "remote", "drive", "work"),
        "Set up": ("init", "setup", "agent", "config", "completion"),
    },
)
UWF.params.insert(0, version_option())


def main() -> int:
    """Run `uwf` with the command line and the environment of this process."""
    return run(UWF, sys.argv[1:], prog="uwf", environ=dict(os.environ))


def program() -> NoReturn:
    """Run `uwf` as the whole process, for which words and paths are UTF-8 in every locale."""
    speak_utf8()
    leave(main())
