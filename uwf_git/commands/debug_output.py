"""Debug output: whether the debug log is kept, where, and what is masked in it.

Owns: how `UWF_DEBUG` is read. Knows nothing of: how a line looks (debug_log.py), who asks.
Always true: it is imported only where somebody asks; a file is named by its whole path to the
programs that we start, which stand elsewhere.

UWF_DEBUG   1 is standard error; 0, or nothing, is no log; anything else is a file to append to.
"""

import os
from collections.abc import Mapping

from uwf_git.debug_log import debug, switch_on
from uwf_git.engine.key_shapes import mask_keys
from uwf_git.engine.masking import find_secrets, mask

VARIABLE = "UWF_DEBUG"

_OFF = ("", "0")
_STDERR = "1"


def log_as_asked(environ: Mapping[str, str], *, cwd: str, is_asked: bool = False) -> dict[str, str]:
    """Switch the debug log on if *environ* asks for it, or somebody else did (*is_asked*).

    Returns:
        The environment for programs that are to do the same.
    """
    asked = environ.get(VARIABLE, "")
    if asked in _OFF and not is_asked:
        return dict(environ)
    path = None if asked in (*_OFF, _STDERR) else os.path.join(cwd, os.path.expanduser(asked))
    secrets = find_secrets(environ)
    switch_on(path, mask=lambda text: mask_keys(mask(text, secrets)))
    debug("W8FET4CS", "debug log on", output=path or "stderr", cwd=cwd)
    return {**environ, VARIABLE: path or _STDERR}
