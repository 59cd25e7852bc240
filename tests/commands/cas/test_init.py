from pathlib import Path

from cas_nodes import new_caller

from uwf_git.commands.cas.put import init_cas
from uwf_git.model.builtin import BUILTIN
from uwf_git.store.lookup.cas_nodes import list_nodes


def test_store_is_made_with_the_builtin_schemas_in_it(tmp_path: Path) -> None:
    caller = new_caller()._replace(cwd=str(tmp_path))

    made = init_cas("s.git", caller)

    assert (made.store.path, made.created) == (str(tmp_path / "s.git"), True)
    assert set(list_nodes(made.store)) == set(BUILTIN)


def test_store_that_is_there_is_opened(tmp_path: Path) -> None:
    caller = new_caller()._replace(cwd=str(tmp_path), environ={"HOME": str(tmp_path)})

    assert init_cas(None, caller).created
    again = init_cas(None, caller)

    assert not again.created
    assert again.store.config.get_flag("uwf.store", default=False)
