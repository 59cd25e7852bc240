"""What all routes share: the store's place, the masks, and what is kept between requests."""

from collections.abc import Callable
from typing import NamedTuple

from uwf_git.commands.inspect.excerpt import Mask
from uwf_git.commands.inspect.overview import Overview
from uwf_git.commands.lifecycle.start_trusted import Here
from uwf_git.library.place import Place
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.web.ui.live_logs import LiveLogs
from uwf_git.web.ui.stories import Stories


class Site(NamedTuple):
    place: Place
    new_thread_id: Callable[[], ThreadId]
    mask: Mask
    overview: Overview
    stories: Stories
    logs: LiveLogs
    read_at: Callable[[], str]
    """Returns the number of the newest change that was seen."""

    def open(self) -> Store:
        return self.place.open()

    def here(self, store: Store) -> Here:
        return Here(store, self.place.cwd, self.place.agent)
