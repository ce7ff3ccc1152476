"""The official Python client against the MCP server of Zeph.

Arguments: the program, the URL of a running server, and the project of the server, which contains `a.txt`. Each
conversation uses stdio or HTTP, and the newest revision or the newest one with a handshake.
"""

import asyncio
import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

PROGRAM, URL, PROJECT = sys.argv[1], sys.argv[2], Path(sys.argv[3])


def text(result):
    return "".join(part.text for part in result.content if part.type == "text")


async def checks(client, name, asked):
    """One conversation: list, read, a question, progress, a failure."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"read", "bash", "edit"} <= set(tools), sorted(tools)
    assert tools["read"].annotations.read_only_hint is True
    read = await client.call_tool("read", {"path": "a.txt"})
    assert "hello" in text(read) and not read.is_error, read
    made = f"made-{name}"
    run = await client.call_tool("bash", {"command": f"touch {made}; echo done"})
    assert not run.is_error and "done" in text(run), run
    assert run.structured_content["exit_code"] == 0, run
    assert (PROJECT / made).exists() and len(asked) == 1, asked
    steps = []

    async def progress(done, total, message):
        steps.append(message)

    command = "for i in 1 2 3; do echo step $i; sleep 0.2; done"
    await client.call_tool("bash", {"command": command}, progress_callback=progress)
    assert any("step" in (step or "") for step in steps), steps
    failed = await client.call_tool("read", {"path": "missing"})
    assert failed.is_error and "category: " in text(failed), failed


async def official(server, mode, name):
    asked = []

    async def elicit(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": "session"})

    async with Client(server, mode=mode, elicitation_callback=elicit) as client:
        version = client.protocol_version
        await checks(client, name, asked)
    print(f"{name}: revision {version}, {len(asked)} question")


async def main():
    args = ["mcp", "serve", "-C", str(PROJECT)]
    stdio = StdioServerParameters(command=PROGRAM, args=args, env=dict(os.environ))
    for mode in ["auto", "legacy"]:
        await official(stdio, mode, f"stdio-{mode}")
        await official(URL, mode, f"http-{mode}")


asyncio.run(main())
