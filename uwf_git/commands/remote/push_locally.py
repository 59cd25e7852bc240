"""Push to a store on this machine when no git is installed to receive it.

As `git receive-pack` and a hub's pre-receive hook: the rules of a shared store judge the push as a
whole before anything is stored. dulwich's own local push runs no hooks and lets deletions through.
"""

from contextlib import ExitStack, suppress

from uwf_git.commands.receive.ref_update import RefUpdate
from uwf_git.commands.receive.rules import check_received
from uwf_git.commands.remote.push_plan import FELL_WITH_OTHERS, REF_MOVED
from uwf_git.git_environment import without_local_variables
from uwf_git.store.gc.unite import unite_packs
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.refs.refs import list_refs
from uwf_git.store.remotes.exchange import PackParcel, PushReport
from uwf_git.store.remotes.incoming import copy_objects, receive_objects
from uwf_git.store.remotes.remotes import CLAIMS
from uwf_git.store.remotes.tracking import read_shared
from uwf_git.store.remotes.transport import Access
from uwf_git.store.store import open_store

_DECLINED = "the rules of a shared store do not allow it"


def push_locally(
    access: Access, objects: ObjectStore, pack: PackParcel, *, atomic: bool
) -> PushReport:
    del atomic  # The push is judged as a whole in any case.
    there = open_store(access.url.text, environ=without_local_variables(access.environ))
    refs = {f"refs/{kind}/{name}": oid for kind, name, oid in read_shared(there).rows()}
    refs |= {CLAIMS + name: oid for name, oid in list_refs(there.path, CLAIMS).items()}
    parcel = pack(refs)
    updates = [RefUpdate(name, refs.get(name), new) for name, new in parcel.changes.items()]
    if not updates:
        return PushReport({}, "")
    with ExitStack() as until_moved, receive_objects(there) as incoming:
        copy_objects(objects, parcel.objects, incoming)
        refusals = check_received(there._replace(objects=incoming.objects), updates)
        if refusals:
            output = "\n".join(f"{each.name}: {each.message}" for each in refusals)
            blamed = {each.name: _DECLINED for each in refusals}
            statuses: dict[str, str | None] = {
                each.name: blamed.get(each.name, FELL_WITH_OTHERS) for each in updates
            }
            return PushReport(statuses, output)
        incoming.move_into_store(until_moved)
        moved = there.refs.change({each.name: (each.old, each.new) for each in updates})
        statuses = {each.name: None if each.name in moved else REF_MOVED for each in updates}
    # Each push leaves a small pack, and nobody else may ever write there. The push is done.
    with suppress(OSError):
        unite_packs(there)
    return PushReport(statuses, "")
