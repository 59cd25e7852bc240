"""The state file and the session log of a thread, kept up with it by whoever drives."""

from collections.abc import Mapping
from typing import Any

from uwf_git.plan.phases import IDLE, PlanState, fold_story
from uwf_git.plan.session_log import MEMORY_DIR, write_session_log
from uwf_git.plan.state_file import STATE_FILE, write_state
from uwf_git.plan.story import read_story
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store


class Views:
    """The views of one thread in its work directory; the first update reads its whole story.

    So what an earlier driver did not come to write, since it was killed, is written then. Later
    updates read only what is new.
    """

    def __init__(
        self,
        store: Store,
        workdir: str,
        where: Mapping[str, Any],
        *,
        state_file: str = STATE_FILE,
        memory_dir: str = MEMORY_DIR,
    ) -> None:
        """Keep views in *workdir*; *where* is that of the state file (phases.py)."""
        self._store, self._workdir = store, workdir
        self.where = dict(where)
        """What the next update writes of who drives, and where that listens."""

        self._state_file, self._memory_dir = state_file, memory_dir
        self._seen: str | None = None
        self.state: PlanState = IDLE
        """Where the thread stood at the last update."""

    def update(self, tip: Oid) -> PlanState:
        """Bring both up to the commit *tip*, and return where the thread stands.

        Raises:
            StoreDamaged: the thread cannot be read.
            OSError: a file cannot be written; the next update tries again.
        """
        story = read_story(self._store, tip, after=self._seen)
        state = fold_story(story, self.state)
        # The hook asks the state file whether to speak at all, so it comes first.
        write_state(self._workdir, state, self.where, state_file=self._state_file)
        write_session_log(self._workdir, story, state=self.state, memory_dir=self._memory_dir)
        self.state, self._seen = state, str(tip)
        return state
