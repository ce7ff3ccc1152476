"""Servers of others with the MCP client of Zeph: the reference server and FastMCP, each on stdio and on HTTP.

Arguments: the program, a folder with an empty project and a home, Node, and the folder with the packages of npm. The
Python library of the Agent Client Protocol answers the questions, so that a conversation has a user.
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "acp_clients"))

from acp import schema  # noqa: E402
from editor import STEP, Editor, Faults, after, connected, is_running, until  # noqa: E402

PROGRAM, ROOT, NODE, MODULES = sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
EVERYTHING = [NODE, str(MODULES / "@modelcontextprotocol/server-everything/dist/index.js")]
FAST = [sys.executable, str(Path(__file__).with_name("fastmcp_server.py"))]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.asynccontextmanager
async def served(*command, port, **variables):
    """A server on HTTP that accepts connections."""
    with open(ROOT / "servers.txt", "ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **variables}
        )

    def accepts():
        assert process.returncode is None, f"{command} ended"
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        await until(f"the start of {command}", accepts)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def configure(everything, fast):
    """Adds the servers to the configuration of the user."""
    lines = []
    for name, command in [("everything", [*EVERYTHING, "stdio"]), ("fast", FAST)]:
        lines += ["[[mcp.servers]]", f'name = "{name}"', f"command = {json.dumps(command[0])}"]
        lines += [f"args = {json.dumps(command[1:])}"]
    for name, url in [("everything-http", everything), ("fast-http", fast)]:
        lines += ["[[mcp.servers]]", f'name = "{name}"', f"url = {json.dumps(url)}"]
    with open(Path(os.environ["HOME"]) / ".config/zeph/config.toml", "a") as file:
        file.write("\n".join(lines) + "\n[mcp]\nstart_wait_ms = 15000\n")


async def zeph(*arguments):
    process = await asyncio.create_subprocess_exec(
        PROGRAM, *arguments, cwd=ROOT / "project", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await asyncio.wait_for(process.communicate(), STEP)
    assert process.returncode == 0, (arguments, process.returncode, printed)
    return printed.decode()


async def approved():
    """Approves all tools, and returns the revision of each server and the ids of its tools."""
    for name in ["everything", "fast", "everything-http", "fast-http"]:
        await zeph("mcp", "approve", name, "--yes")
    servers = json.loads(await zeph("mcp", "list", "--json"))
    for server in servers:
        assert server["connected"] and not server["refused"], server
        assert {tool["standing"] for tool in server["tools"]} == {"approved"}, server
        assert server["prompts"] and server["resources"], server
    return {server["name"]: server["revision"] for server in servers}


def calls(server, *tools):
    """A response of the model with calls of a server's tools."""
    return {"calls": [{"tool": f"mcp_{server}_{tool}", "input": input} for tool, input in tools]}


class Part:
    """Turns of the conversation: prompts, the responses of the model, and a check of the forms after them."""

    def __init__(self, *turns, decision="allow_once", check=lambda forms: None):
        self.turns, self.decision, self.check = turns, decision, check

    def steps(self):
        return [step for _, *steps in self.turns for step in steps]

    async def run(self, it, session):
        it.editor.decision = self.decision
        before = len(it.editor.forms)
        for prompt, *_ in self.turns:
            assert await it.prompt(session, prompt) == "end_turn"
        self.check(it.editor.forms[before:])


def everything(server):
    """The reference server: content of all kinds, forms, addresses and progress."""
    called = calls(
        server,
        ("get-sum", {"a": 2, "b": 3}),
        ("get-tiny-image", {}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-resource-links", {"count": 2}),
        ("get-resource-reference", {"resourceType": "Blob"}),
        ("trigger-long-running-operation", {"duration": 0.4, "steps": 2}),
        # It runs only as a task.
        ("simulate-research-query", {"topic": "rust"}),
        ("trigger-elicitation-request", {}),
        ("trigger-url-elicitation", {"url": "https://example.org/login"}),
        ("trigger-url-elicitation", {"url": "https://example.org/second", "errorPath": True}),
    )
    results = [
        "The sum of 2 and 3 is 5.",
        "[image: image/png, 4033 bytes]",
        '"humidity":82',
        "[link: demo://resource/dynamic/text/2",
        "[resource demo://resource/dynamic/blob/1: text/plain",
        "Long running operation completed",
        "# Research Report: rust",
        "- Name: Ada",
        "User completed the URL elicitation flow",
    ]

    def check(forms):
        (form, fields), *addresses = forms
        assert "Please provide inputs" in form and "name" in fields.requested_schema.properties, fields
        first, required, second = (str(address.url) for _, address in addresses)
        assert (first, second) == ("https://example.org/login", "https://example.org/second"), addresses
        # The server fails until the user was there.
        assert required.startswith("https://modelcontextprotocol.io"), addresses

    return Part(("go", called, after({"text": "Done."}, *results)), check=check)


def rejected(server):
    """A call that the user rejects does not reach the server, which counts its calls."""
    return Part(
        ("reject", calls(server, ("count", {})), after({"text": "No."}, "refused this call")), decision="reject_once"
    )


def fast(server):
    """FastMCP: results of all kinds, a form, progress and a failure."""
    called = calls(
        server, ("count", {}), ("describe", {"name": "Ada"}), ("picture", {}), ("ask", {}), ("steps", {}), ("fail", {})
    )
    results = [
        '"result": 1',
        '{"name":"Ada","age":7}',
        "[image: image/png, 70 bytes]",
        "answered: accept {'name': 'Ada'}",
        "all steps",
        "not today",
    ]

    def check(forms):
        ((message, form),) = forms
        assert "Who are you?" in message and form.requested_schema.required == ["name"], (message, form)

    return Part(("go", called, after({"text": "Done."}, *results)), check=check)


async def growth(it, session, server):
    """A tool that a server adds is available after an approval."""
    assert await it.prompt(session, "grow") == "end_turn"
    async with asyncio.timeout(STEP):
        while f"mcp_{server}_grown" not in it.text(session):
            await it.prompt(session, f"/mcp approve {server}")
    await it.prompt(session, f"/mcp approve {server} yes")
    assert await it.prompt(session, "call it") == "end_turn"


def growth_steps(server):
    added = after({"text": "Added."}, "added")
    return [
        *[calls(server, ("grow", {})), added],
        *[calls(server, ("grown", {})), after({"text": "Called."}, "it has grown")],
    ]


async def conversation(it):
    """One conversation with all servers."""
    names = ["fast", "fast-http"]
    parts = [everything("everything"), everything("everything-http")]
    parts += [part(name) for name in names for part in (rejected, fast)]
    steps = [step for part in parts for step in part.steps()] + [step for name in names for step in growth_steps(name)]
    steps[-1]["expect"]["images"] = 4
    session, _ = await it.open(*steps, images=True)
    for part in parts:
        await part.run(it, session)
    for name in names:
        await growth(it, session, name)
    assert it.text(session).endswith("Called."), it.text(session)


async def main():
    faults, editor = Faults(), Editor()
    editor.decision, editor.form = "allow_once", {"name": "Ada"}
    asks = schema.ElicitationCapabilities(
        form=schema.ElicitationFormCapabilities(), url=schema.ElicitationUrlCapabilities()
    )
    ports = free_port(), free_port()
    async with (
        served(*EVERYTHING, "streamableHttp", port=ports[0], PORT=str(ports[0])) as everything_url,
        served(*FAST, str(ports[1]), port=ports[1]) as fast_url,
    ):
        configure(everything_url, fast_url)
        print("revisions:", ", ".join(f"{name} {revision}" for name, revision in (await approved()).items()))
        async with connected(PROGRAM, ROOT, editor, schema.ClientCapabilities(elicitation=asks)) as it:
            await conversation(it)
        await until("the end of the servers on stdio", lambda: not is_running(f"{EVERYTHING[1]}\0stdio"))
    notices = (ROOT / "stderr.txt").read_text()
    for server in ["everything", "everything-http"]:
        assert f"MCP server {server}: 1 of 2" in notices, notices
    print(f"calls: {len(editor.questions)} questions, {len(editor.forms)} forms and addresses")
    faults.check()


asyncio.run(main())
