"""Make a store that needs packing: fill the one folder from which all others are estimated.

No ref needs the objects that are put there, so they stay loose. Whatever steps wrote is due too.
"""

import itertools
from collections.abc import Iterator

from dulwich.objects import Blob
from store.loose import write_loose

from uwf_git.store.git.config import set_config
from uwf_git.store.store import open_store

COUNT = 3


def make_due(path: str) -> set[str]:
    """Make the store at *path* due for packing, in the foreground; return the objects put there."""
    set_config(f"{path}/config", "gc.auto", "1")
    set_config(f"{path}/config", "gc.autoDetach", "false")
    blobs = list(itertools.islice(_sampled(), COUNT))
    write_loose(open_store(path), blobs)
    return {blob.id.decode() for blob in blobs}


def _sampled() -> Iterator[Blob]:
    for number in itertools.count():
        blob = Blob.from_string(b"%d" % number)
        if blob.id.startswith(b"17"):
            yield blob
