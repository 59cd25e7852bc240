"""Due: a store that wants to be packed.

Owns: filling the one folder by whose objects all others are estimated.
Knows nothing of: who packs. Always true: no ref needs what is put there, so that it stays.
"""

import itertools
from collections.abc import Iterator

from dulwich.objects import Blob

from uwf_git.store.git_config import set_config
from uwf_git.store.store import open_store

COUNT = 3


def make_due(path: str) -> set[str]:
    """Make the store at *path* due for packing, in the foreground, and give what was put there."""
    set_config(f"{path}/config", "gc.auto", "1")
    set_config(f"{path}/config", "gc.autoDetach", "false")
    blobs = list(itertools.islice(_sampled(), COUNT))
    open_store(path).objects.add_objects([(blob, None) for blob in blobs])
    return {blob.id.decode() for blob in blobs}


def _sampled() -> Iterator[Blob]:
    for number in itertools.count():
        blob = Blob.from_string(b"%d" % number)
        if blob.id.startswith(b"17"):
            yield blob
