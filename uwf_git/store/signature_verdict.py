"""Verdicts: what is to be thought of a commit's signature.

Owns: the words. Knows nothing of: how they are come by.
"""

from typing import Literal, NamedTuple

Status = Literal["good", "bad", "revoked", "expired", "untrusted", "unsigned"]
"""good       made by a key that is trusted, for this very commit
bad        no signature of this commit at all
revoked    this commit's, by a key that was revoked
expired    this commit's, by a key that was not valid when it was committed
untrusted  this commit's, by a key that nobody vouches for, or that cannot be checked here
unsigned   there is none"""


class Verdict(NamedTuple):
    """What is to be thought of a commit's signature."""

    status: Status
    format: str | None = None
    """``ssh``, ``openpgp`` or ``x509``; None for what is none of them."""

    signer: str | None = None
    """Whom the key belongs to: a principal of the allowed signers, or a user id of gpg's."""

    key: str | None = None
    """The fingerprint of the key that made it."""

    problem: str | None = None
    """Why it is not good."""

    hint: str | None = None
    """What to do about it; the same for every commit with the same problem."""
