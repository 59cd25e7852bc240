"""Switch the debug log on as `UWF_DEBUG` says: 1 (standard error), 0, or a file to append to."""

import os
from collections.abc import Mapping

from uwf_git.debug_log import debug, switch_on
from uwf_git.engine.masking import find_secrets, mask, mask_keys

DEBUG_VARIABLE = "UWF_DEBUG"

_OFF = ("", "0")
_STDERR = "1"


def switch_on_debug_log(
    environ: Mapping[str, str], *, cwd: str, is_asked: bool = False
) -> dict[str, str]:
    """Switch the debug log on if asked for; return the environment for child processes."""
    value = environ.get(DEBUG_VARIABLE, "")
    if value in _OFF and not is_asked:
        return dict(environ)
    path = None if value in (*_OFF, _STDERR) else os.path.join(cwd, os.path.expanduser(value))
    secrets = find_secrets(environ)
    switch_on(path, mask=lambda text: mask_keys(mask(text, secrets)))
    debug("W8FET4CS", "debug log on", output=path or "stderr", cwd=cwd)
    return {**environ, DEBUG_VARIABLE: path or _STDERR}
