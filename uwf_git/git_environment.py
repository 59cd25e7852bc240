"""The variables that tie a git process to one repository.

A hook of git has them set, and so has a shell in which somebody exported them. A git process that
works on another repository must not see them.
"""

from collections.abc import Mapping

CONFIG_VARIABLES = frozenset({"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"})
"""The variables that hold settings: `git -c NAME=VALUE` sets the second."""

LOCAL_VARIABLES = CONFIG_VARIABLES | {
    # `git rev-parse --local-env-vars`, of all versions of git.
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
    # Not in that list: they change which refs are seen, and forbid to change any.
    "GIT_NAMESPACE",
    "GIT_QUARANTINE_PATH",
}


UNSET_LOCAL_VARIABLES = f"unset {' '.join(sorted(LOCAL_VARIABLES))}"
"""What a shell does before it runs such a git process, where no environment can be passed."""


def without_local_variables(
    environ: Mapping[str, str], *, keep_settings: bool = False
) -> dict[str, str]:
    """Return *environ* for a git process that is told which repository it works on.

    With *keep_settings* the settings of the environment hold for it too: it answers for us.
    """
    left_out = LOCAL_VARIABLES - CONFIG_VARIABLES if keep_settings else LOCAL_VARIABLES
    return {name: value for name, value in environ.items() if name not in left_out}
