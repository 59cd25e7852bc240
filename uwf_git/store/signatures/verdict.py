"""The verdict on a commit's signature."""

from typing import Literal, NamedTuple

SignatureStatus = Literal["good", "bad", "revoked", "expired", "untrusted", "unsigned", "derived"]
"""good       made for this commit by a trusted key
bad        not a signature of this commit
revoked    of this commit, by a revoked key
expired    of this commit, by a key that was not valid at its date
untrusted  of this commit, by a key that is not trusted, or that cannot be checked here
unsigned   there is no signature
derived    there is none, and nobody made it: it follows from the commits before it"""


class Verdict(NamedTuple):
    status: SignatureStatus
    format: str | None = None
    """``ssh``, ``openpgp`` or ``x509``; None if unknown."""

    signer: str | None = None
    """The owner of the key: a principal of the allowed signers, or a gpg user id."""

    key: str | None = None

    problem: str | None = None

    hint: str | None = None
    """What to do about it; the same text for every commit with the same problem."""
