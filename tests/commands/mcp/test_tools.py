from typing import Any

from commands.world import World

from uwf_git.commands.mcp.server import McpPlace, build_server


def ask(place: McpPlace, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    told = build_server(place).answer(message)
    assert told is not None
    return told["result"]


def test_each_tool_does_what_it_says(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    place = McpPlace(lambda: world.store, thread=thread)

    def call(name: str, **arguments: Any) -> str:
        told = ask(place, "tools/call", name=name, arguments=arguments)
        return str(told["content"][0]["text"])

    assert "# Do it." in call("read_thread")
    assert '"text": "some words"' in call("read_step", index=1)
    assert '"name": "checker"' in call("read_role")
    assert "no step is under way" in call("submit_result", meta={"ok": True})
