"""Agent names: an agent command in one word, for logs.

Always true: the whole command is in the AgentConfig node; scripts in it do not belong in a log.
"""

from functools import lru_cache

from uwf_git.agents.command_line import BadCommand, split_command


@lru_cache(maxsize=100)
def agent_name(command: str) -> str:
    """Give the program of *command* without its folders: ``uwf-shell`` for all its scripts."""
    try:
        program = split_command(command)[0]
    except BadCommand:
        return "unknown"
    return program.rpartition("/")[2] or "unknown"
