"""`python -m uwf_git` is `uwf`."""

import sys
from typing import NoReturn


def _start() -> NoReturn:
    # Every turn of an agent may start a server: it has a short way, without click.
    if sys.argv[1:] == ["mcp"]:
        from uwf_git.cli.mcp_serving import program  # noqa: PLC0415 (see above)
    else:
        from uwf_git.cli.uwf import program  # noqa: PLC0415 (see above)
    program()


if __name__ == "__main__":
    _start()
