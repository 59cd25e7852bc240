"""`python -m uwf_git` is `uwf`."""

from uwf_git.cli.uwf import program

if __name__ == "__main__":
    program()
