"""A server with FastMCP: on stdio, or on HTTP at the port that is the argument."""

import base64
import sys
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.utilities.types import Image
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult, ToolListChangedNotification

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

server = FastMCP("fast")
calls = []


@dataclass
class Person:
    name: str
    age: int


@server.tool(annotations={"readOnlyHint": True})
def count() -> int:
    """Counts its calls."""
    calls.append("count")
    return len(calls)


@server.tool
def describe(name: str) -> Person:
    """Returns structured content."""
    return Person(name, 7)


@server.tool
def picture() -> Image:
    """Returns an image."""
    return Image(data=base64.b64decode(PICTURE), format="png")


@server.tool
async def ask(context: Context) -> str | InputRequiredResult:
    """Asks the user."""
    answers = context.input_responses
    if answers is None:
        question = ElicitRequest(params=ElicitRequestFormParams(message="Who are you?", requested_schema=FORM))
        return InputRequiredResult(input_requests={"who": question})
    return f"answered: {answers['who'].action} {answers['who'].content}"


@server.tool
async def steps(context: Context) -> str:
    """Reports progress."""
    for step in range(3):
        await context.report_progress(step + 1, 3, f"step {step + 1}")
    return "all steps"


@server.tool
async def grow(context: Context) -> str:
    """Adds a tool."""

    @server.tool
    def grown() -> str:
        """A new tool."""
        return "it has grown"

    await context.send_notification(ToolListChangedNotification())
    return "added"


@server.tool
def fail() -> str:
    """Fails."""
    raise ValueError("not today")


@server.resource("note://today")
def today() -> str:
    return "the note of today"


@server.prompt
def greet(name: str) -> str:
    return f"Greet {name}."


if len(sys.argv) > 1:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
else:
    server.run(transport="stdio", show_banner=False)
