"""A push to a store on this machine when there is no git to receive it.

Owns: doing what `git receive-pack` and our pre-receive hook do, in their order.
Knows nothing of: what is pushed.
Always true: a push is judged as a whole by the rules of a shared store before anything of it is
there (dulwich's own way runs no hooks and lets deletions through); refs move by
compare-and-swap, and the archive is there before the active ref goes.
"""

from collections.abc import Callable, Iterable, Mapping

from uwf_git.commands.push_batches import OF_ALL, Answer
from uwf_git.commands.receive_rules import RefUpdate, check_received
from uwf_git.store.incoming import receive_objects
from uwf_git.store.local_copy import copy_objects
from uwf_git.store.object_walk import Needed
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store, open_store
from uwf_git.store.tracking import read_shared
from uwf_git.store.transport import Access

_DECLINED = "the rules of a shared store do not allow it"
_MOVED = "incorrect old value provided"


def push_locally(
    store: Store,
    access: Access,
    choose: Callable[[dict[str, Oid]], Mapping[str, Oid | None]],
    needed: Iterable[Needed],
) -> Answer:
    """Make the changes that *choose* gives in the store of *access*; *needed* goes with them.

    Raises:
        NotAStore, UnsupportedRepository: there is none.
        OSError: the machine would not let it be written.
    """
    there = open_store(access.url.text, environ=access.environ)
    refs = {f"refs/{kind}/{name}": oid for kind, name, oid in read_shared(there).rows()}
    updates = [RefUpdate(name, refs.get(name), new) for name, new in choose(refs).items()]
    if not updates:
        return Answer({}, "")
    with receive_objects(there) as incoming:
        copy_objects(store.objects, list(needed), incoming)
        refusals = check_received(there._replace(objects=incoming.objects), updates)
        if refusals:
            said = "\n".join(f"{each.name}: {each.message}" for each in refusals)
            blamed = {each.name: _DECLINED for each in refusals}
            return Answer({each.name: blamed.get(each.name, OF_ALL) for each in updates}, said)
        incoming.take_in()
    # Creations first: an archive is there before its active ref goes.
    ordered = sorted(updates, key=lambda update: update.new is None)
    return Answer({update.name: _apply(there, update) for update in ordered}, "")


def _apply(there: Store, update: RefUpdate) -> str | None:
    name, old, new = update
    if new is None:
        done = old is not None and there.refs.delete(name, seen=old)
    elif old is None:
        done = there.refs.create(name, new)
    else:
        done = there.refs.advance(name, seen=old, to=new)
    return None if done else _MOVED
