"""The task and the state that a thread begins with, from the options of start and run."""

import click
from click.testing import CliRunner

from uwf_git.cli.thread.start import Task, task_options


def read(*words: str) -> Task:
    @click.command()
    @task_options
    def command(task: Task) -> Task:
        return task

    made = CliRunner().invoke(command, words, standalone_mode=False)
    if made.exception is not None:
        raise made.exception
    told: Task = made.return_value
    return told


def test_prompt_and_state_become_one_value() -> None:
    assert read() == Task(None, None)
    assert read("-p", "Do it.") == Task("Do it.", None)
    assert read("--state", '{"n": [1]}', "-p", "x") == Task("x", {"n": [1]})
