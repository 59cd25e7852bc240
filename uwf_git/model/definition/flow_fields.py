"""The fields of one container or agent in a workflow file, and what may be a mistake there."""

import math
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice, takewhile
from types import UnionType
from typing import Any, NamedTuple

from uwf_git.errors import name_some
from uwf_git.model.definition.definition import (
    FLOW_NAMES,
    CheckText,
    DocumentPath,
    Findings,
    FlowText,
    ListReads,
    RoleDefinition,
    UsedWorkflow,
    shown,
    suggestion,
    unknown_name,
    yaml_kind,
)
from uwf_git.model.definition.roles import SENTINELS, list_fields
from uwf_git.model.flow import (
    DEFAULT_BOUND,
    HOLDING,
    NEEDED,
    ROOT,
    SPLITTING,
    Flow,
    FlowNode,
)
from uwf_git.model.limits import LONGEST_MS
from uwf_git.model.workflow import END, parse_flow_node, parse_graph, parse_role, parse_workflow
from uwf_git.model.workflow_name import check_name

# What in a flow may be a mistake: told, and accepted. Refused are output files that branches would
# overwrite for one another; those that work apart (``isolation: worktree``) have a directory each.

_MERGED_ALWAYS = frozenset({"error", "errors", "outputs", "iteration"})
_OF_BRANCH = "parallel_"


class FlowChecks:
    """The checks of a flow as a whole; *roles* are those that are described."""

    def __init__(
        self,
        findings: Findings,
        flow: Flow,
        roles: Mapping[str, RoleDefinition],
        used: Collection[UsedWorkflow],
    ) -> None:
        self._findings, self._flow, self._roles = findings, flow, roles
        self._inside: dict[str | None, list[str]] = {each.hash: each.list_files() for each in used}
        self._answers: dict[str | None, list[str]] = {
            each.hash: [*self._list_answers(each)] for each in used
        }
        self._verifiers: dict[DocumentPath, str | None] = {}
        self._fields = {name: list_fields(each.output_schema) for name, each in roles.items()}

    def check_files(self, paths: Mapping[str, DocumentPath]) -> None:
        """Report branches that run at once in one directory and have the same ``outputFile``."""
        for place, path in paths.items():
            node = self._flow.nodes[place]
            if "isolation" in node.fields:
                continue
            if node.kind == "parallel":
                for file, which in self._find_shared(node, self._files_of):
                    self._findings.add(
                        path,
                        f"{which} would write {shown(file)} at once; give their roles an "
                        "outputFile each, or set isolation: worktree",
                    )
            elif node.kind == "map":
                self._check_items(path, node)

    def _check_items(self, path: DocumentPath, node: FlowNode) -> None:
        item = re.compile(rf"\$\{{.*(?<![\w$]){re.escape(node.item)}(?:Index)?(?![\w$])")
        for file in sorted(self._files_of(node.place)):
            if not item.search(file):
                own = f"report-${{state.{node.item}Index}}.json"
                self._findings.add(
                    path,
                    f"each item would write {shown(file)}; put the item into its path, as {own}, "
                    "or set isolation: worktree",
                )

    def _find_shared(
        self, node: FlowNode, list_of: Callable[[str], Iterable[str]]
    ) -> Iterator[tuple[str, str]]:
        """Yield what several branches of *node* have in common, and which ones."""
        having: dict[str, list[str]] = {}
        for number, branch in enumerate(self._flow.children(node.place)):
            for each in list_of(branch):
                having.setdefault(each, []).append(f"nodes[{number}]")
        for each, names in having.items():
            if len(names) > 1:
                yield each, name_some(names)

    def _files_of(self, top: str) -> set[str]:
        files: list[str | None] = []
        for place, node in self._flow.nodes.items():
            if place == top or place.startswith(f"{top}/"):
                known = self._roles.keys() & node.roles
                files += [self._roles[agent].output_file for agent in known]
                files += self._inside.get(node.workflow, ())
        return {posixpath.normpath(file) for file in files if file is not None}

    def warn(self, paths: Mapping[str, DocumentPath]) -> None:
        """Warn of what does not do what it seems to, in the nodes at *paths*.

        Loops without a bound, branches that set the same key, agents without a role, and policies
        that give up no branch.
        """
        for place, path in paths.items():
            node = self._flow.nodes[place]
            if node.kind in SPLITTING:
                self._warn_of_failures(path, node)
            if node.kind == "loop" and not {"maxIterations", "over"} & node.fields.keys():
                self._findings.warn(
                    path,
                    f"no maxIterations is set, so the loop ends after {DEFAULT_BOUND} passes",
                )
            elif node.kind == "parallel":
                self.warn_of_branches(path, node)
            elif node.kind == "agent" and self._roles:
                self._warn_of_role((*path, "agentId"), node.fields.get("agentId"))
                self._warn_of_role((*path, "verifiedBy", "agentId"), node.verifier)
                self._verifiers[*path, "verifiedBy", "when"] = node.verifier

    def _warn_of_failures(self, path: DocumentPath, node: FlowNode) -> None:
        """Warn if failed branches of *node* stop the thread where the file seems to deny it."""
        policy = node.fields.get("onError")
        if "tolerate" in node.fields and policy != "continue":
            self._findings.warn(
                (*path, "tolerate"),
                "has no effect without onError: continue, which gives branches up",
            )
        elif policy in {None, "retry"} and self._has_continue_around(node.place):
            self._findings.warn(
                path,
                "onError: continue of what is around it does not give its branches up, which are "
                "threads of their own; write onError: continue here too, or stop if they are to be "
                "retried",
            )

    def _has_continue_around(self, place: str) -> bool:
        """Check if a container around *place*, in the same thread, goes on after a failure."""
        around = islice(self._flow.list_around(place), 1, None)
        inner = takewhile(lambda node: node.kind not in SPLITTING, around)
        return any(node.fields.get("onError") == "continue" for node in inner)

    def _warn_of_role(self, path: DocumentPath, named: str | None) -> None:
        if named is not None and named not in self._roles:
            self._findings.warn(
                path,
                f"no role is called {shown(named)}, so its agent gets no words and no schema; "
                f"{suggestion(named, list(self._roles))}",
            )

    def warn_of_branches(self, path: DocumentPath, node: FlowNode) -> None:
        merge = node.fields.get("merge", {})
        if _merges_all(merge) or node.fields.get("join") == "any":
            return
        for key, which in self._find_shared(node, self._keys_of):
            settled = key in merge or key in _MERGED_ALWAYS or key.startswith(_OF_BRANCH)
            if not settled:
                self._findings.warn(
                    path,
                    f"{shown(key)} is set by {which}, which is a conflict if they differ; say "
                    f"which counts: merge: {{{key}: last}}",
                )

    def _keys_of(self, place: str) -> dict[str, None]:
        """List the keys of the state that the agents at and below *place* are known to set."""
        found: dict[str, None] = {}
        waiting, flow = [place], self._flow
        while waiting:
            node = flow.nodes.get(waiting.pop())
            if node is None:
                continue
            found |= dict.fromkeys(self._set_by(node))
            merge = node.fields.get("merge", {})
            if node.kind == "map" and not _merges_all(merge):
                # Of what its items set, only the named keys come out.
                found |= dict.fromkeys(merge)
                continue
            waiting += [*flow.children(node.place), *flow.children(node.place, of_else=True)]
        return found

    def _set_by(self, node: FlowNode) -> list[str]:
        if node.kind == "map":
            return [node.output]
        if node.kind != "workflow" and "agentId" not in node.fields:
            return []
        verdict = [] if node.verifier is None else [node.verdict_output]
        said = self._answers.get(node.workflow, self._list_fields(node)[0])
        return [*said, node.output, *verdict]

    def _list_answers(self, used: UsedWorkflow) -> Iterator[str]:
        """Yield the fields that the result of *used* is known to have: of what may be its last."""
        nodes = {node.hash: node for node in used.nodes}
        workflow = parse_workflow(nodes[used.hash])
        roles: dict[str, RoleDefinition] = {}
        for role, name in workflow.roles.items():
            schema = nodes[parse_role(nodes[name]).output_schema].payload
            roles[role] = RoleDefinition(role, "", "", None, output_schema=schema)
        if workflow.flow is None:
            for role, ways in parse_graph(nodes[workflow.get_moderator()]).items():
                if role in roles and END in [way.to for way in ways]:
                    yield from list_fields(roles[role].output_schema)[0]
            return
        flow = parse_flow_node(nodes[workflow.flow])
        inner = FlowChecks(self._findings, flow, roles, ())
        for node in flow.ends:
            around = islice(flow.list_around(node.place), 1, None)
            if SPLITTING.isdisjoint(each.kind for each in around):
                yield from inner._list_fields(node)[0]
                # A join results in all that has changed.
                for top in flow.list_from(ROOT) if node.kind in HOLDING else ():
                    yield from inner._keys_of(top)

    def _list_fields(self, node: FlowNode) -> tuple[list[str], bool]:
        return self._fields.get(str(node.fields.get("agentId")), ([], True))

    def warn_of_names(
        self,
        texts: Iterable[tuple[DocumentPath, FlowText]],
        list_reads: ListReads,
        state: Iterable[str],
    ) -> None:
        """Warn of names in *texts* that are none, and of keys that nothing sets in the *state*.

        The engine takes what is not set for undefined, so nothing else would tell a misspelling.
        """
        nodes = self._flow.nodes.values()
        known = dict.fromkeys([*sorted(_MERGED_ALWAYS), "output", *state])
        for node in nodes:
            # A loop may have items too.
            items = [node.item, f"{node.item}Index"] if "over" in node.fields else []
            known |= dict.fromkeys([*self._set_by(node), *items])
        # The result of a workflow may set anything.
        is_open = any(
            node.kind == "workflow" or (node.kind == "agent" and self._list_fields(node)[1])
            for node in nodes
        )
        for path, text in texts:
            for name, *member in dict.fromkeys(map(tuple, list_reads(text))):
                if not self._findings.has_room:
                    return
                if name not in (*FLOW_NAMES, *text.names):
                    self._findings.warn(path, unknown_name(name, (*FLOW_NAMES, *text.names)))
                verifier = self._verifiers.get(path) or ""
                fields, has_others = self._fields.get(verifier, ([], True))
                for key in member if name == "meta" and fields and not has_others else ():
                    if key not in fields:
                        told = f"the outputSchema of {verifier} has no {shown(key)}"
                        self._findings.warn(path, f"{told}; {suggestion(key, fields)}")
                for key in member if name == "state" and not is_open else ():
                    if key not in known and not key.startswith(_OF_BRANCH):
                        told = f"nothing sets state.{key}; {suggestion(key, list(known))}"
                        self._findings.warn(path, told)


def _merges_all(merge: str | Mapping[str, str]) -> bool:
    return isinstance(merge, str) or "*" in merge


# The fields of one container or agent in a workflow file, and what they may hold.

_ALL = ("type", "id", "name", "description", "onError")
_TRIED = ("retries", "timeout")
_SPLIT = ("join", "merge", "tolerate")

KEYS: Mapping[str, tuple[str, ...]] = {
    "agent": (*_ALL, *_TRIED, "agentId", "input", "output", "inputFiles", "verifiedBy"),
    "sequential": (*_ALL, *_TRIED, "nodes"),
    "parallel": (*_ALL, *_TRIED, "nodes", *_SPLIT, "isolation"),
    "loop": (*_ALL, *_TRIED, "nodes", "condition", "maxIterations", "onExhausted", "over", "as"),
    "conditional": (*_ALL, *_TRIED, "nodes", "else", "condition"),
    "map": (*_ALL, *_TRIED, "nodes", "over", "as", "output", *_SPLIT, "isolation"),
    "workflow": (*_ALL, "use", "input", "output", *_SPLIT),
}
"""The keys of each type (seed 004, and what uwf adds)."""

_VERIFIER_KEYS = ("agentId", "when", "input", "output", "timeout", "inputFiles")
POLICIES = ("error", "first", "last", "collect", "append")
CHOICES = {
    "onError": ("stop", "continue", "retry"),
    "onExhausted": ("stop", "continue"),
    "join": ("all", "any"),
    "isolation": ("worktree",),
}


class _Number(NamedTuple):
    words: str
    above: float = -1
    most: float = math.inf
    kinds: type | UnionType = int
    may_be_template: bool = True


_NUMBERS = {
    "tolerate": _Number("a whole number, 0 or more", may_be_template=False),
    "retries": _Number("a whole number, 0 or more"),
    "maxIterations": _Number("a whole number of at least 1", 0),
    "timeout": _Number(
        "a number of milliseconds above 0, of at most a year", 0, LONGEST_MS, int | float
    ),
}
# Those of expressions, and the words of JavaScript that one could take for a name.
_TAKEN = (
    *FLOW_NAMES,
    *("true", "false", "null", "undefined", "NaN", "Infinity", "typeof", "Array", "Object"),
)
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_ALONE = re.compile(r"\s*\$\{.*\}\s*", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONGEST_LABEL = 200
# Deeper than any input needs, and far from the stack's end.
_DEEPEST_INPUT = 200


def kinds_with(key: str) -> list[str]:
    return [kind for kind, keys in KEYS.items() if key in keys]


class FieldReader:
    def __init__(self, findings: Findings, language: str, check_text: CheckText) -> None:
        self.texts: list[tuple[DocumentPath, FlowText]] = []
        self._findings = findings
        self._language = language
        self._check_text = check_text
        self._names: tuple[str, ...] = ()
        self._own: tuple[str, ...] = ()
        self._worker: Any = None
        self._readers: dict[str, Callable[[DocumentPath, Any], bool]] = {
            **dict.fromkeys(("id", "name"), self._is_label),
            "description": self._is_text,
            "agentId": self._is_agent,
            "input": self._is_input,
            "output": self._is_output,
            "inputFiles": self._are_globs,
            "verifiedBy": self._is_verifier,
            **dict.fromkeys(("condition", "when"), self._is_expression),
            "over": self._is_over,
            "as": self._is_item_name,
            "use": self._is_label,
            "merge": self._is_merge,
            **dict.fromkeys(_NUMBERS, self._is_number),
            **dict.fromkeys(
                CHOICES, lambda path, value: findings.is_one_of(path, value, CHOICES[str(path[-1])])
            ),
        }

    def read(
        self, path: DocumentPath, kind: str, fields: Mapping[str, Any], *, names: tuple[str, ...]
    ) -> dict[str, Any]:
        """Return the *fields* that a node of *kind* keeps; other fields are findings.

        *names* are the items of the maps and loops around it.
        """
        self._names = names
        self._own = (str(fields.get("as", "item")),) if kind == "loop" and "over" in fields else ()
        self._worker = fields.get("agentId")
        needed = NEEDED.get(kind)
        if needed is not None and needed not in fields:
            self._findings.add(path, f"{needed!r} is missing")
        if kind == "workflow" and fields.get("onError") == "retry":
            self._findings.add(
                (*path, "onError"),
                "a workflow is not tried again as a whole; its agents have retries of their own",
            )
        if kind == "loop":
            self._check_loop(path, fields)
        return {
            key: value
            for key, value in fields.items()
            if key in self._readers and self._readers[key]((*path, key), value)
        }

    def _check_loop(self, path: DocumentPath, fields: Mapping[str, Any]) -> None:
        if "over" in fields:
            for key in fields.keys() & {"maxIterations", "onExhausted"}:
                message = "is not for a loop with over, which ends after its last item"
                self._findings.add((*path, key), message)
            return
        if "as" in fields:
            self._findings.add((*path, "as"), "needs over: the list whose items it names")
        if "onExhausted" in fields and "condition" not in fields:
            self._findings.add(
                (*path, "onExhausted"), "needs a condition: without one a loop ends at its bound"
            )

    def _add(self, path: DocumentPath, message: str) -> bool:
        self._findings.add(path, message)
        return False

    def _is_text(self, path: DocumentPath, value: Any) -> bool:
        return self._findings.read_text(path, value) is not None

    def _is_label(self, path: DocumentPath, value: Any) -> bool:
        if not self._is_text(path, value):
            return False
        if not value.strip() or len(value) > _LONGEST_LABEL or _CONTROL.search(value):
            return self._add(path, f"must be one line of 1 to {_LONGEST_LABEL} characters")
        return True

    def _is_agent(self, path: DocumentPath, value: Any) -> bool:
        if not self._is_text(path, value):
            return False
        problem = "it is an end of a graph" if value in SENTINELS else check_name(value)
        if problem:
            return self._add(path, f"{shown(value)} cannot be an agent's name: {problem}")
        return True

    def _is_output(self, path: DocumentPath, value: Any) -> bool:
        if value == "iteration":
            return self._add(path, "iteration is set by uwf; choose another key")
        return self._is_label(path, value)

    def _is_number(self, path: DocumentPath, value: Any) -> bool:
        wanted = _NUMBERS[str(path[-1])]
        if wanted.may_be_template and isinstance(value, str) and _ALONE.fullmatch(value):
            return self._is_template(path, value)
        is_number = isinstance(value, wanted.kinds) and not isinstance(value, bool)
        if is_number and wanted.above < value <= wanted.most:
            return True
        other = ", or one as ${state.key}" if wanted.may_be_template else ""
        return self._add(path, f"must be {wanted.words}{other}")

    def _is_item_name(self, path: DocumentPath, value: Any) -> bool:
        if not self._is_text(path, value):
            return False
        if not _NAME.fullmatch(value) or value in _TAKEN or value in self._names:
            return self._add(
                path,
                f"{shown(value)} cannot name an item: it has to be letters, digits and "
                "underscores, and no name that expressions have already",
            )
        return True

    def _is_merge(self, path: DocumentPath, value: Any) -> bool:
        if isinstance(value, dict):
            # A list: every one is to be reported.
            found = [self._is_policy((*path, key), each) for key, each in value.items()]
            return all(found)
        return self._is_policy(path, value)

    def _is_policy(self, path: DocumentPath, value: Any) -> bool:
        if path[-1] == "iteration":
            return self._add(path, "iteration is set by uwf and never merged")
        return self._findings.is_one_of(path, value, POLICIES)

    def _is_verifier(self, path: DocumentPath, value: Any) -> bool:
        """Check who verifies the work of an agent, and by which verdict it is done."""
        fields = self._findings.read_fields(path, value, _VERIFIER_KEYS)
        if fields is None:
            return False
        missing = [key for key in ("agentId", "when") if fields.get(key) is None]
        for key in missing:
            self._findings.add(path, f"{key!r} is missing")
        if fields.get("agentId") is not None and fields["agentId"] == self._worker:
            message = f"{shown(self._worker)} does the work; name another agent to verify it"
            return self._add((*path, "agentId"), message)
        # A list: every one is to be reported.
        found = [self._readers[key]((*path, key), each) for key, each in fields.items()]
        return all(found) and not missing

    def _are_globs(self, path: DocumentPath, value: Any) -> bool:
        globs = self._findings.read_list(path, value, "paths or patterns")
        places = [((*path, index), each) for index, each in enumerate(globs)]
        # A list: every one is to be reported.
        found = [self._is_label(*each) and self._is_template(*each) for each in places]
        return bool(found) and all(found)

    def _is_expression(self, path: DocumentPath, value: Any) -> bool:
        if isinstance(value, bool):
            return self._add(path, f"must be an expression, not {yaml_kind(value)}; quote it")
        if not self._is_text(path, value):
            return False
        if not value.strip():
            return self._add(path, "is empty")
        # The condition of a loop reads its item, and what it goes over does not.
        own = {"over": (), "when": ("meta",)}.get(str(path[-1]), self._own)
        names = (*self._names, *own)
        return self._is_right(path, FlowText("expression", value, self._language, names))

    def _is_over(self, path: DocumentPath, value: Any) -> bool:
        if isinstance(value, list):
            return self._add(path, "must be an expression, as \"['a', 'b']\" or state.key")
        if isinstance(value, str) and _ALONE.fullmatch(value):
            return self._is_template(path, value)
        return self._is_expression(path, value)

    def _is_input(self, path: DocumentPath, value: Any) -> bool:
        if isinstance(value, str | dict):
            return self._are_templates(path, value)
        return self._add(path, f"must be text or a mapping, not {yaml_kind(value)}")

    def _are_templates(self, path: DocumentPath, value: Any) -> bool:
        """Check the texts in an input, as deep as they may lie."""
        if isinstance(value, str):
            return self._is_template(path, value)
        if isinstance(value, dict | list):
            if len(path) > _DEEPEST_INPUT:
                return self._add(path, "is nested too deeply")
            items = value.items() if isinstance(value, dict) else enumerate(value)
            found = [self._are_templates((*path, key), each) for key, each in items]
            return all(found)
        return True

    def _is_template(self, path: DocumentPath, value: str) -> bool:
        return self._is_right(path, FlowText("template", value, self._language, self._names))

    def _is_right(self, path: DocumentPath, text: FlowText) -> bool:
        self.texts.append((path, text))
        problem = self._check_text(text)
        return True if problem is None else self._add(path, problem)
