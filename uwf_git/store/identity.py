"""Identities: who a commit says acted.

Owns: cleaning names until git accepts them. Knows nothing of: who acts, where names come from.
Always true: what `clean_identity` gives passes `git fsck --strict`. dulwich writes anything,
and one commit with a bad name makes its thread unpushable for ever (FACTS 4).
"""

import re

_NOT_IN_NAME = re.compile(r"[<>\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_EMAIL = re.compile(r"[^A-Za-z0-9._+@-]")
_EDGES = " .,:;'\"\\<>"


def clean_identity(name: str, email: str) -> bytes:
    """Write `name <email>` as git accepts it; what is left empty becomes ``unknown``."""
    clean_name = " ".join(_NOT_IN_NAME.sub(" ", name).split()).strip(_EDGES)
    clean_email = _NOT_IN_EMAIL.sub("", email).strip(_EDGES)
    return f"{clean_name or 'unknown'} <{clean_email or 'unknown'}>".encode()


def agent_identity(role: str, program: str) -> bytes:
    """Write the author of a step: the role, and the program that played it.

    The whole command is in the AgentConfig node; an author is for reading logs.
    """
    address = _NOT_IN_EMAIL.sub("", program).replace("@", "")
    return clean_identity(role, f"{address or 'unknown'}@uwf")
