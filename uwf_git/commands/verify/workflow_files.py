"""Check the files of a workflow version: its source, and exactly the files that it includes.

No more is read than one workflow may include. Format: FORMAT.md, "The tree of a workflow commit".
"""

from collections.abc import Iterator, Mapping

from uwf_git.commands.verify.finding import Finding
from uwf_git.commands.verify.puts import Put
from uwf_git.commands.verify.tree import TreeChecks
from uwf_git.errors import StoreDamaged
from uwf_git.model.yaml.bad_yaml import BadYaml
from uwf_git.model.yaml.include import MAX_FILES, CannotInclude, Includes
from uwf_git.model.yaml.include_path import MAX_PATH
from uwf_git.store.nodes.folders import RAW_FILE_MODE, RAW_TREE_MODE, TreeEntry, object_id
from uwf_git.store.objects.objects import get_blob
from uwf_git.store.workflows.tree import SOURCE_FILE

# Each folder takes a name of at least one letter, and a slash.
_DEEPEST = MAX_PATH // 2
_HINT = (
    "no version of uwf writes such a commit; `uwf workflow put FILE` writes what FILE includes, "
    "and nothing else"
)


def check_files(trees: TreeChecks, put: Put) -> Iterator[Finding]:
    """Check the source of one version and the files beside it."""
    if SOURCE_FILE not in put.files:
        return
    try:
        source = get_blob(trees.objects, object_id(put.files[SOURCE_FILE]))
    except StoreDamaged as error:
        yield put.site.finding(f"{SOURCE_FILE} cannot be read: {error.message}", hint=error.hint)
        return
    # Parse the source only if it may include files: parsing costs more than all the rest.
    if not put.others and b"!include" not in source:
        return
    listing = _Listing(trees)
    listing.add_folder("", put.others, depth=0)
    for problem in listing.problems:
        yield put.site.finding(problem, hint=_HINT)
    if not listing.problems:
        yield from _check_includes(trees, put, source, listing.files)


def _check_includes(
    trees: TreeChecks, put: Put, source: bytes, files: Mapping[str, bytes]
) -> Iterator[Finding]:
    from uwf_git.model.yaml.reader import (  # noqa: PLC0415 (20 ms, and few workflows include files)
        parse_yaml,
    )

    def read(path: str) -> bytes:
        if path not in files:
            raise CannotInclude("it is not in the same commit")
        try:
            return get_blob(trees.objects, object_id(files[path]))
        except StoreDamaged as error:
            raise CannotInclude(error.message) from None

    includes = Includes(read, name=SOURCE_FILE)
    try:
        parse_yaml(source, includes=includes)
    except BadYaml as error:
        for problem in error.problems:
            where = f"{problem.file or SOURCE_FILE}:{problem.line}"
            yield put.site.finding(f"{where}: {problem.message}", hint=_HINT)
        return
    for path in files:
        if path not in includes.files:
            yield put.site.finding(
                f"the commit has {path}, which does not belong there: no file includes it",
                hint=_HINT,
            )


class _Listing:
    """The files beside a version's nodes that can be included."""

    def __init__(self, trees: TreeChecks) -> None:
        self._trees = trees
        self.files: dict[str, bytes] = {}
        """The 20 bytes of each blob id, by path."""
        self.problems: list[str] = []

    def add_folder(self, path: str, entries: Mapping[bytes, TreeEntry], *, depth: int) -> None:
        """Add the files of a folder; stop at the most that one version may have."""
        for key, (mode, raw) in entries.items():
            if self.problems:
                return
            name = path + key.decode(errors="backslashreplace")
            if len(self.files) >= MAX_FILES:
                self.problems.append(f"the commit has more than {MAX_FILES} files beside its nodes")
            elif depth >= _DEEPEST:
                self.problems.append(f"{path[:_DEEPEST]}… is nested too deeply")
            elif mode == RAW_TREE_MODE:
                self._add_inner(name, raw, depth=depth)
            elif mode == RAW_FILE_MODE:
                self.files[name] = raw
            else:
                told = f"{name} has mode {mode.decode()}, and a file has {RAW_FILE_MODE.decode()}"
                self.problems.append(told)

    def _add_inner(self, name: str, raw: bytes, *, depth: int) -> None:
        try:
            inner = self._trees.folders.get(raw)
        except StoreDamaged as error:
            self.problems.append(f"{name} cannot be read: {error.message}")
            return
        self._trees.folders.forget(raw)
        if not inner:
            self.problems.append(f"the commit has {name}, an empty folder")
        self.add_folder(f"{name}/", inner, depth=depth + 1)
