"""`python -m uwf_git` is `uwf`."""

import sys

if __name__ == "__main__":
    # Every turn of an agent may start a server: it has a short way, without click.
    if sys.argv[1:] == ["mcp"]:
        from uwf_git.cli.mcp_serving import program
    else:
        from uwf_git.cli.uwf import program
    program()
