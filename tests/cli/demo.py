"""A small program made of the same parts as `uwf`. Its verbs are in demo_verbs.py."""

import os
import sys

from uwf_git.cli.app.lazy_group import LazyCommand, LazyGroup, run, version_option

DEEP = LazyGroup(
    "deep",
    {"settings": LazyCommand("cli.demo_verbs:settings", "Tell what the session holds")},
    help_text="Hold what is deeper.\n\nThere is one thing.",
    examples=["demo deep settings"],
)

DEMO = LazyGroup(
    "demo",
    {
        "say": LazyCommand("cli.demo_verbs:say", "Say a thing"),
        "show": LazyCommand("cli.demo_verbs:show", "Show a JSON document"),
        "fail": LazyCommand("cli.demo_verbs:fail", "Raise an error"),
        "ask": LazyCommand("cli.demo_verbs:ask", "Take a prompt"),
        "read": LazyCommand("cli.demo_verbs:read", "Read a file"),
        "wait": LazyCommand("cli.demo_verbs:wait", "Wait for ever"),
        "deep": DEEP,
        "missing": LazyCommand("cli.no_such_module:command", "Be missing"),
        "wrong": LazyCommand("cli.demo_verbs:NO_COMMAND", "Be no command"),
    },
    help_text="Show how programs are made.\n\nIn short.",
    examples=["demo say hello", "demo deep settings"],
)
DEMO.params.insert(0, version_option())

if __name__ == "__main__":
    sys.exit(run(DEMO, sys.argv[1:], prog="demo", environ=dict(os.environ)))
