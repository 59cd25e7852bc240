"""The fields of a task, each read anew. Source: seed 004, TaskHandle."""

from collections.abc import Mapping
from typing import Any

from uwf_git.library.place import Place
from uwf_git.library.status import TaskState, TaskStatus, query_task


class TaskFields:
    """A task, to look at.

    Each property reads the store again; ``query`` returns all of them at one moment.
    """

    __slots__ = ("_place", "task_id")

    _place: Place
    task_id: str

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.task_id}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TaskFields):
            return NotImplemented
        return (self.task_id, self._place.path) == (other.task_id, other._place.path)

    def __hash__(self) -> int:
        return hash(self.task_id)

    def query(self) -> TaskStatus:
        """Return the task's status and state.

        Raises:
            StoreDamaged: it cannot be read.
        """
        return query_task(self._place, self.task_id)

    @property
    def status(self) -> TaskState:
        """The status now."""
        return self.query().status

    @property
    def workflow_name(self) -> str:
        """The name of its workflow."""
        return self.query().workflow_name

    @property
    def current_node(self) -> str | None:
        """The role or node at work, or whose turn it is; None if none is left."""
        return self.query().current_node

    @property
    def current_iteration(self) -> int | None:
        """Which turn of that role, or pass of the loop around the node, this is, from 1."""
        return self.query().current_iteration

    @property
    def last_node(self) -> str | None:
        """The role or node of the newest step; None before the first."""
        return self.query().last_node

    @property
    def next(self) -> str | None:
        """The role that takes the next step, or ``$END``; None after the end."""
        return self.query().next

    @property
    def state(self) -> Mapping[str, Any]:
        """The state that the roles share."""
        return self.query().state

    @property
    def start_time(self) -> int:
        """When it began, in milliseconds since 1970."""
        return self.query().start_time

    @property
    def last_update_time(self) -> int:
        """When it last changed, in milliseconds since 1970."""
        return self.query().last_update_time

    @property
    def end_time(self) -> int | None:
        """When it ended, in milliseconds since 1970; None before that."""
        return self.query().end_time

    @property
    def error(self) -> str | None:
        """Why the newest attempt failed, if no step has been taken since."""
        return self.query().error
