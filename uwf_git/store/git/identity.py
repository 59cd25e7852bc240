"""Identities: names and addresses cleaned so that commits pass `git fsck --strict`.

dulwich writes anything, and one commit with a bad name makes its thread unpushable (FACTS 4).
"""

import re

_NOT_IN_NAME = re.compile(r"[<>\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_EMAIL = re.compile(r"[^A-Za-z0-9._+@-]")
_EDGES = " .,:;'\"\\<>"


def clean_identity(name: str, email: str) -> bytes:
    """Return `name <email>` as git accepts it; an empty part becomes ``unknown``."""
    clean_name = " ".join(_NOT_IN_NAME.sub(" ", name).split()).strip(_EDGES)
    clean_email = _NOT_IN_EMAIL.sub("", email).strip(_EDGES)
    return f"{clean_name or 'unknown'} <{clean_email or 'unknown'}>".encode()


def agent_identity(role: str, program: str) -> bytes:
    """Return the author of a step: the role, and the program that played it.

    The whole command is in the AgentConfig node; the author is for readers of `git log`.
    """
    address = _NOT_IN_EMAIL.sub("", program).replace("@", "")
    return clean_identity(role, f"{address or 'unknown'}@uwf")
