"""An editor with the Python library of the Agent Client Protocol.

The library parses each message with its models, and logs a message that does not fit. `faults` has these logs.
"""

import asyncio
import contextlib
import json
import logging
import os
from pathlib import Path

import acp
from acp import RequestError, schema
from acp.contrib.session_state import SessionAccumulator

# The time limit of each step, in seconds.
STEP = 60


def call(tool, **arguments):
    """A response of the model with one call."""
    return {"calls": [{"tool": tool, "input": arguments}]}


def after(step, *results):
    """A response of the model that expects these texts in the results of the calls before it."""
    return {**step, "expect": {"tool_result_contains": list(results)}}


def is_running(text):
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text in entry.read_bytes().decode(errors="replace"):
                return True
    return False


async def until(name, check):
    async def wait():
        while not check():
            await asyncio.sleep(0.02)

    try:
        await asyncio.wait_for(wait(), STEP)
    except TimeoutError:
        raise AssertionError(f"{name} did not happen within {STEP} s") from None


class Faults(logging.Handler):
    """What the library logs, except that it does not know the optional notification `$/cancel_request`."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []
        logging.getLogger().addHandler(self)

    def emit(self, record):
        text = self.format(record)
        if "method=$/cancel_request" not in text:
            self.texts.append(text)

    def check(self):
        assert not self.texts, "\n".join(self.texts)


class Terminal:
    """A command in a terminal of the client."""

    def __init__(self, process):
        self.process, self.output, self.is_released = process, b"", False
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        while chunk := await self.process.stdout.read(4096):
            self.output += chunk

    async def status(self):
        code = await self.process.wait()
        return {"exit_code": code} if code >= 0 else {"signal": str(-code)}


class Editor:
    """A client with unsaved texts, terminals and forms."""

    def __init__(self):
        self.decision, self.questions = "reject_once", []
        self.form, self.forms = {}, []
        self.texts, self.terminals, self.seen, self.updates = {}, {}, {}, []

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        self.questions.append(tool_call)
        chosen = [option.option_id for option in options if option.kind == self.decision]
        assert len(chosen) == 1, options
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen[0])
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message, mode, **kwargs):
        self.forms.append((message, mode))
        content = self.form if hasattr(mode, "requested_schema") else None
        return schema.AcceptElicitationResponse(action="accept", content=content)

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)
        state = self.seen.setdefault(session_id, SessionAccumulator())
        state.apply(schema.SessionNotification(session_id=session_id, update=update))

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        if path not in self.texts and not Path(path).is_file():
            raise RequestError.resource_not_found(path)
        text = self.texts.get(path)
        return schema.ReadTextFileResponse(content=Path(path).read_text() if text is None else text)

    async def write_text_file(self, session_id, path, content, **kwargs):
        self.texts[path] = content
        return schema.WriteTextFileResponse()

    async def create_terminal(
        self, session_id, command, args=None, env=None, cwd=None, output_byte_limit=None, **kwargs
    ):
        assert output_byte_limit, "there is no limit of the output"
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            cwd=cwd,
            env={**os.environ, **{variable.name: variable.value for variable in env or []}},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        name = f"terminal-{len(self.terminals)}"
        self.terminals[name] = Terminal(process)
        return schema.CreateTerminalResponse(terminal_id=name)

    async def terminal_output(self, session_id, terminal_id, **kwargs):
        terminal = self.terminals[terminal_id]
        status = None
        if terminal.process.returncode is not None:
            await terminal.reader
            status = schema.TerminalExitStatus(**await terminal.status())
        output = terminal.output.decode()
        return schema.TerminalOutputResponse(output=output, truncated=False, exit_status=status)

    async def wait_for_terminal_exit(self, session_id, terminal_id, **kwargs):
        return schema.WaitForTerminalExitResponse(**await self.terminals[terminal_id].status())

    async def kill_terminal(self, session_id, terminal_id, **kwargs):
        self.end(self.terminals[terminal_id])
        return schema.KillTerminalResponse()

    async def release_terminal(self, session_id, terminal_id, **kwargs):
        terminal = self.terminals[terminal_id]
        assert not terminal.is_released, "the terminal was released twice"
        terminal.is_released = True
        self.end(terminal)
        return schema.ReleaseTerminalResponse()

    def end(self, terminal):
        with contextlib.suppress(ProcessLookupError):
            terminal.process.kill()


class Connection:
    """A running agent and its client. Each request has a time limit."""

    def __init__(self, editor, agent, process, root):
        self.editor, self.agent, self.process, self.root = editor, agent, process, root
        self.project = root / "project"

    async def ask(self, request):
        return await asyncio.wait_for(request, STEP)

    async def open(self, *steps, **scenario):
        """Opens a session whose model has these responses."""
        (self.root / "scenario.json").write_text(json.dumps({**scenario, "steps": steps}))
        session = await self.ask(self.agent.new_session(cwd=str(self.project), mcp_servers=[]))
        return session.session_id, session

    async def prompt(self, session, text):
        sent = self.agent.prompt(session_id=session, prompt=[acp.text_block(text)])
        return (await self.ask(sent)).stop_reason

    async def refused(self, code, request):
        try:
            result = await self.ask(request)
        except RequestError as error:
            assert error.code == code, (error.code, str(error))
            return
        raise AssertionError(f"no error: {result}")

    def shown(self, session):
        """The session as the client shows it."""
        return self.editor.seen[session].snapshot()

    def call(self, session, kind):
        """The last call of this kind."""
        return [it for it in self.shown(session).tool_calls.values() if it.kind == kind][-1]

    def text(self, session):
        return "".join(chunk.content.text for chunk in self.shown(session).agent_messages)


@contextlib.asynccontextmanager
async def connected(program, root, editor, capabilities):
    """An initialized connection. At the end, the agent has ended because its input ended."""
    with open(root / "stderr.txt", "ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            program,
            "acp",
            cwd=root / "project",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=acp.core.DEFAULT_STDIO_BUFFER_LIMIT_BYTES,
        )
    try:
        agent = acp.connect_to_agent(editor, process.stdin, process.stdout, use_unstable_protocol=True)
        it = Connection(editor, agent, process, root)
        started = await it.ask(
            agent.initialize(
                protocol_version=acp.PROTOCOL_VERSION,
                client_capabilities=capabilities,
                client_info=schema.Implementation(name="python", version="1"),
            )
        )
        assert started.protocol_version == acp.PROTOCOL_VERSION == 1, started
        assert started.agent_info.name == "zeph" and started.auth_methods == [], started
        assert started.agent_capabilities.load_session, started
        yield it
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), STEP) == 0, process.returncode
        await agent.close()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
