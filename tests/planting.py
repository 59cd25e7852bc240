"""Plant in a git repository every setting that makes git run a program; see which ones ran."""

from pathlib import Path

# `{ran NAME}` is a program that leaves the mark NAME.
_SETTINGS = """
[filter "evil"]
	clean = {ran clean}
	smudge = {ran smudge}
[filter "slow"]
	process = {ran process}
[diff "evil"]
	textconv = {ran textconv}
	command = {ran diff}
[diff]
	external = {ran external}
[merge "evil"]
	driver = {ran merge}
[core]
	fsmonitor = {ran fsmonitor}
	sshCommand = {ran ssh}
	pager = {ran pager}
	editor = {ran editor}
	askPass = {ran askpass}
	gitProxy = {ran proxy}
	alternateRefsCommand = {ran refs}
	attributesFile = {attributes}
	hooksPath = {hooks}
[gpg]
	program = {ran gpg}
[log]
	showSignature = true
[credential]
	helper = {ran credential}
[alias]
	add = !{ran alias}
	diff = !{ran alias}
	status = !{ran alias}
[uploadpack]
	packObjectsHook = {ran upload}
[protocol "ext"]
	allow = always
[remote "lazy"]
	url = ext::{ran lazy}
	promisor = true
	partialCloneFilter = blob:none
[submodule]
	recurse = true
[extensions]
	partialClone = lazy
	worktreeConfig = true
[core]
	repositoryFormatVersion = 1
"""
_HOOKS = ("post-checkout", "post-index-change", "reference-transaction")
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n*.slow filter=slow\n"
WAYS = ("config", "config.worktree", "included", "included-if")
"""The files by which settings get into the config of a repository."""


class Planted:
    """Programs that leave a mark, settings that name them, and the marks that are there."""

    def __init__(self, folder: Path) -> None:
        self.marks = folder / "ran"
        self._programs = folder / "programs"
        for path in (self.marks, self._programs):
            path.mkdir(parents=True)

    def ran(self) -> list[str]:
        """List the programs that ran."""
        return sorted(path.name for path in self.marks.iterdir())

    def plant(self, git_dir: Path, where: str, *, way: str = "config") -> None:
        """Plant all settings in *git_dir*, by one way into its config, and all hooks."""
        config = git_dir / "config"
        own = config.read_text() if config.exists() else ""
        path = git_dir / way
        ways = {
            "config.worktree": "[extensions]\n\tworktreeConfig = true\n",
            "included": "[include]\n\tpath = included\n",
            "included-if": f'[includeIf "gitdir:**"]\n\tpath = {path}\n',
        }
        config.write_text(own + ways.get(way, ""))
        with path.open("a") as file:
            file.write(self._spell(where))
        for name, text in {"info/attributes": ATTRIBUTES, **self._hooks(where)}.items():
            (git_dir / name).parent.mkdir(exist_ok=True)
            (git_dir / name).write_text(text)
            (git_dir / name).chmod(0o755)

    def _spell(self, where: str) -> str:
        folder = self._programs / where
        folder.mkdir()
        (folder / "attributes").write_text(ATTRIBUTES)
        for name, text in self._hooks(where).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        begun, *others = _SETTINGS.split("{ran ")
        spelled = begun
        for each in others:
            name, _, rest = each.partition("}")
            path = folder / name
            path.write_text(self._program(f"{where}-{name}"))
            path.chmod(0o755)
            spelled += str(path) + rest
        places = {"{attributes}": folder / "attributes", "{hooks}": folder / "hooks"}
        for name, place in places.items():
            spelled = spelled.replace(name, str(place))
        return spelled

    def _program(self, mark: str) -> str:
        # Only filters are expected to say something; others would wait for git.
        says = "cat" if mark.endswith(("-clean", "-smudge")) else "exit 1"
        return f"#!/bin/sh\ntouch '{self.marks}/{mark}'\n{says}\n"

    def _hooks(self, where: str) -> dict[str, str]:
        return {f"hooks/{name}": self._program(f"{where}-{name}") for name in _HOOKS}
