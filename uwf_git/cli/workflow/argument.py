"""WORKFLOW on a command line, where it may be a file as well.

Owns: telling a file from a name. Knows nothing of: registries, nodes.
"""

import os

from uwf_git.cli.parameters import Input
from uwf_git.cli.settings import Session


def name_workflow(session: Session, workflow: str) -> str:
    """Give the name or the hash that *workflow* means; a YAML file is registered first.

    Raises:
        What ``put_file`` raises.
    """
    if not _is_file(workflow):
        return workflow
    # Reading YAML costs 70 ms of start-up, which a name needs not pay.
    from uwf_git.cli.workflow.put import put_file  # noqa: PLC0415 (see above)

    return put_file(session, Input(workflow)).workflow


def _is_file(workflow: str) -> bool:
    """Tell a file from a name: names hold no slash, and files of workflows end in .yaml."""
    if workflow == "-" or os.sep in workflow:
        return True
    return workflow.endswith((".yaml", ".yml")) and os.path.lexists(workflow)
