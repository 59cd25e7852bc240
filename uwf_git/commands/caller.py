"""The caller: who runs a command, where and when.

Owns: what every command takes from outside, as plain values. Only cli reads the environment.
Always true: with the same caller and the same store a command does the same thing.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from uwf_git.store.commit import Signing
from uwf_git.store.identity import clean_identity
from uwf_git.store.store import Store


class Caller(NamedTuple):
    """Who runs a command."""

    now_ms: Callable[[], int]
    """The clock: milliseconds since 1970."""

    environ: Mapping[str, str]
    """The environment, for agents and for git's identity variables."""

    cwd: str

    def signing(self, store: Store, *, author: bytes | None = None) -> Signing:
        """Give what a commit needs of its maker; the author is the committer unless given.

        Raises:
            CannotSign, UnfitSetting: the settings ask for signed commits, and that cannot be.
        """
        committer = committer_identity(store, self.environ)
        return Signing(author or committer, committer, self.now_ms(), self._sign(store, committer))

    def check_signing(self, store: Store) -> None:
        """Make sure that commits can be signed if they have to be, before work is done for one.

        A key that is locked is found only by signing.

        Raises:
            CannotSign, UnfitSetting: they cannot.
        """
        self._sign(store, committer_identity(store, self.environ))

    def _sign(self, store: Store, committer: bytes) -> Callable[[bytes], bytes] | None:
        if not store.config.get_flag("commit.gpgsign", default=False):
            return None
        from uwf_git.store.signature import (  # noqa: PLC0415 (costs 5 ms, and few commits are signed)
            build_signer,
        )

        return build_signer(store, self.environ, committer=committer)


def committer_identity(store: Store, environ: Mapping[str, str]) -> bytes:
    """Give who git would say commits; never an error, for a step must not fail for a name."""
    user = environ.get("USER") or environ.get("LOGNAME") or "unknown"
    name = environ.get("GIT_COMMITTER_NAME") or store.config.get("user.name") or user
    email = (
        environ.get("GIT_COMMITTER_EMAIL") or store.config.get("user.email") or f"{user}@localhost"
    )
    return clean_identity(name, email)
