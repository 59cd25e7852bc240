"""Pictures in words: all that one shows, for who cannot see it."""

from collections.abc import Iterator

from uwf_git.engine.picture.plan import Block, FlowPlan, GraphPlan, Mark


def tell_graph(plan: GraphPlan) -> str:
    """Return the graph in sentences: its transitions, and where a thread is."""
    sentences = [plan.about] if plan.about else []
    for number, station in enumerate(plan.stations):
        ways = [
            f"{' or '.join(way.labels)}: {plan.stations[way.target].name}"
            if way.labels
            else plan.stations[way.target].name
            for way in plan.ways
            if way.source == number
        ]
        if ways:
            sentences.append(f"From {station.name} to {'; '.join(ways)}.")
        if not station.is_reached:
            sentences.append(f"Nothing leads to {station.name}.")
        sentences += _tell_mark(station.name, station.mark)
    return " ".join(sentences)


def tell_flow(plan: FlowPlan) -> str:
    """Return the flow in sentences: what is in what, and where a thread is."""
    sentences = [plan.about] if plan.about else []
    sentences += [*_tell_mark("start", plan.marks[0])]
    blocks = "; then ".join(map(_tell_block, plan.blocks))
    sentences.append(f"From start to {blocks}; then end.")
    for block in plan.blocks:
        sentences += _tell_marks(block)
    sentences += [*_tell_mark("end", plan.marks[1])]
    return " ".join(sentences)


def _tell_block(block: Block) -> str:
    if not block.branches:
        return block.name
    note = f" ({block.note})" if block.note else ""
    between = " beside " if block.kind == "parallel" else "; "
    told = between.join(
        f"{f'{branch.label}: ' if branch.label else ''}"
        f"{', then '.join(map(_tell_block, branch.blocks)) or 'nothing'}"
        for branch in block.branches
    )
    return f"{block.name}{note} of [{told}]"


def _tell_marks(block: Block) -> Iterator[str]:
    yield from _tell_mark(block.name, block.mark)
    for branch in block.branches:
        for inner in branch.blocks:
            yield from _tell_marks(inner)


def _tell_mark(name: str, mark: Mark | None) -> Iterator[str]:
    if mark is not None:
        yield f"{name}: {mark.words}."
