"""`python -m uwf_git` is `uwf`."""

import sys

from uwf_git.cli.uwf import main

if __name__ == "__main__":
    sys.exit(main())
