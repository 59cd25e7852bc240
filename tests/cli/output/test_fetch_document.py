from uwf_git.cli.remote import fetch_document, fetch_text
from uwf_git.commands.remote.fetch import Fetched
from uwf_git.commands.remote.reconcile import Reconciled
from uwf_git.commands.verify.history import Finding
from uwf_git.errors import Conflict
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.remotes.remotes import Remote

A, B = Oid("a" * 40), Oid("b" * 40)
FETCHED = Fetched(
    Remote("origin", "https://me:secret@host/x"),
    [
        Reconciled("created", "refs/threads/1", None, A),
        Reconciled("diverged", "refs/workflows/demo", A, B),
        Reconciled("refused", "refs/threads/2", None, B, Finding("it is no thread", "x")),
    ],
    [(ThreadId("3"), Conflict("thread 3 is busy", hint="try again"))],
    ["refs/threads/main"],
    7,
)


def test_everything_has_a_line() -> None:
    assert fetch_text(fetch_document(FETCHED)).splitlines() == [
        "created   refs/threads/1",
        f"diverged  refs/workflows/demo: here {A}, there {B}",
        "refused   refs/threads/2: it is no thread",
        "busy      thread 3 is busy",
        "ignored   refs/threads/main",
        "7 unchanged",
    ]
