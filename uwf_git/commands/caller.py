"""The caller of a command: clock, environment and directory, passed in as plain values."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from uwf_git.store.git.identity import clean_identity
from uwf_git.store.objects.commit import Signing
from uwf_git.store.store import Store


class Caller(NamedTuple):
    """Who runs a command, where and when."""

    now_ms: Callable[[], int]
    """The clock: milliseconds since 1970."""

    environ: Mapping[str, str]
    """The environment, for agents and for git's identity variables."""

    cwd: str

    def signing(self, store: Store, *, author: bytes | None = None) -> Signing:
        """Return who makes a commit, when, and the signer; by default the committer is the author.

        Raises:
            CannotSign, UnfitSetting: commits have to be signed, and cannot be.
        """
        committer = committer_identity(store, self.environ)
        return Signing(author or committer, committer, self.now_ms(), self._sign(store, committer))

    def check_signing(self, store: Store) -> None:
        """Check, before an agent is run, that commits can be signed if they have to be.

        A locked key is found only by signing.

        Raises:
            CannotSign, UnfitSetting: they cannot be signed.
        """
        self._sign(store, committer_identity(store, self.environ))

    def _sign(self, store: Store, committer: bytes) -> Callable[[bytes], bytes] | None:
        if not store.config.get_flag("commit.gpgsign", default=False):
            return None
        from uwf_git.store.signatures.sign import (  # noqa: PLC0415 (costs 5 ms, and few commits are signed)
            build_signer,
        )

        return build_signer(store, self.environ, committer=committer)


def committer_identity(store: Store, environ: Mapping[str, str]) -> bytes:
    """Return the committer as git would; without a name, one is made up: no step fails for it."""
    user = environ.get("USER") or environ.get("LOGNAME") or "unknown"
    name = environ.get("GIT_COMMITTER_NAME") or store.config.get("user.name") or user
    email = (
        environ.get("GIT_COMMITTER_EMAIL") or store.config.get("user.email") or f"{user}@localhost"
    )
    return clean_identity(name, email)
