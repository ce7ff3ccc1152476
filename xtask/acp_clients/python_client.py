"""The Python library of the Agent Client Protocol as a client of `zeph acp`.

Arguments: the program, and a folder with an empty project and the file of the scripted provider. The first agent gets a
client with files and terminals, the second one a client without both.
"""

import asyncio
import os
import sys
from pathlib import Path

from acp import schema, text_block
from editor import Editor, Faults, after, call, connected, is_running, until

PROGRAM, ROOT = sys.argv[1], Path(sys.argv[2])
PROJECT = ROOT / "project"
SECONDS = f"97{os.getpid()}"


async def permissions(it):
    """A rejected command does not run; an approved one runs in a terminal of the client."""
    session, opened = await it.open(
        call("bash", command="touch denied.txt"),
        {"text": "Not allowed."},
        call("bash", command="echo of-the-terminal; touch allowed.txt; exit 3"),
        after({"text": "Exit code seen."}, "of-the-terminal", "3"),
    )
    assert opened.modes.current_mode_id == "ask", opened
    assert {option.id for option in opened.config_options} >= {"mode", "model"}, opened
    assert await it.prompt(session, "deny") == "end_turn"
    assert len(it.editor.questions) == 1 and not it.editor.terminals
    assert it.call(session, "execute").status == "failed"
    assert not (PROJECT / "denied.txt").exists()

    it.editor.decision = "allow_once"
    assert await it.prompt(session, "allow") == "end_turn"
    assert len(it.editor.questions) == 2 and (PROJECT / "allowed.txt").exists()
    (terminal,) = it.editor.terminals.values()
    await until("the release", lambda: terminal.is_released)
    assert terminal.output == b"of-the-terminal\n", terminal.output
    assert it.text(session).endswith("Exit code seen."), it.text(session)
    updates = [update for update in it.editor.updates if update.session_update == "tool_call_update"]
    assert any(part.type == "terminal" for update in updates for part in update.content or []), updates
    return session


async def files(it):
    """Files are read and written in the client: an unsaved text, and a new file."""
    saved, new = PROJECT / "saved.txt", PROJECT / "new.txt"
    saved.write_text("on the disk\n")
    it.editor.texts[str(saved)] = "unsaved text\n"
    session, _ = await it.open(
        call("read", path="saved.txt"),
        after(call("write", path="new.txt", content="of the agent\n"), "unsaved text"),
        after({"text": "Written."}, "new.txt"),
    )
    assert await it.prompt(session, "files") == "end_turn"
    assert it.editor.texts[str(new)] == "of the agent\n" and not new.exists()
    edit = it.call(session, "edit")
    assert edit.status == "completed" and edit.locations[0].path == str(new), edit
    assert [part.new_text for part in edit.content if part.type == "diff"] == ["of the agent\n"], edit


async def cancel(it):
    """A cancelled command leaves no process, and the session continues."""
    command = f"echo begun; touch begun.txt; sleep {SECONDS}; touch after.txt"
    session, _ = await it.open(call("bash", command=command), {"text": "Continued."})
    it.editor.decision = "allow_once"
    begun = PROJECT / "begun.txt"
    prompt = asyncio.create_task(it.prompt(session, "wait"))
    await until("the start of the command", lambda: begun.exists() and is_running(f"sleep\0{SECONDS}"))
    await it.agent.cancel(session_id=session)
    assert await prompt == "cancelled"
    await until("the end of the command", lambda: not is_running(f"sleep\0{SECONDS}"))
    assert it.call(session, "execute").status == "failed"
    await until("the release", lambda: all(it.is_released for it in it.editor.terminals.values()))
    assert await it.prompt(session, "continue") == "end_turn"
    assert it.text(session).endswith("Continued.")
    begun.unlink()
    assert not (PROJECT / "after.txt").exists()


async def modes(it):
    """Mode and options agree, and mode `plan` runs no command that writes."""
    session, opened = await it.open(call("bash", command="touch planned.txt"), {"text": "Planned."})
    asked = len(it.editor.questions)
    await it.ask(it.agent.set_session_mode(session_id=session, mode_id="plan"))
    await until("the mode", lambda: it.shown(session).current_mode_id == "plan")
    assert await it.prompt(session, "plan") == "end_turn"
    assert len(it.editor.questions) == asked and not (PROJECT / "planned.txt").exists()
    option = {"session_id": session, "config_id": "mode"}
    result = await it.ask(it.agent.set_config_option(**option, value="auto-edit"))
    values = {option.id: option.current_value for option in result.config_options}
    assert values.keys() == {option.id for option in opened.config_options}, values
    assert values["mode"] == "auto-edit", values
    await it.refused(-32602, it.agent.set_config_option(**option, value="none"))


async def malformed(it, received):
    """A line that is not JSON has an error without an id, and the connection continues."""

    def codes():
        return [message["error"]["code"] for message in received if message.get("id", 0) is None]

    it.process.stdin.write(b'{"jsonrpc": "2.0", "id"\n')
    await until("the error", codes)
    assert codes() == [-32700], codes()
    await it.ask(it.agent.list_sessions())


async def first_agent():
    editor = Editor()
    files_and_terminals = schema.ClientCapabilities(
        fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
    )
    received = []
    async with connected(PROGRAM, ROOT, editor, files_and_terminals) as it:
        it.agent._conn.add_observer(lambda event: received.append(event.message))
        session = await permissions(it)
        await files(it)
        await cancel(it)
        await modes(it)
        await malformed(it, received)
    announced = [update for update in editor.updates if update.session_update == "available_commands_update"]
    assert len(announced) == 4, "the commands were not announced"
    print(f"Python: {len(editor.questions)} questions, {len(editor.terminals)} terminals", end="")
    return session


async def second_agent(session):
    """Another process: the stored session, and commands that run in the agent."""
    editor = Editor()
    here = {"cwd": str(PROJECT), "session_id": session, "mcp_servers": []}
    async with connected(PROGRAM, ROOT, editor, schema.ClientCapabilities()) as it:
        listed = (await it.ask(it.agent.list_sessions(cwd=str(PROJECT)))).sessions
        (known,) = [info for info in listed if info.session_id == session]
        assert known.title and known.cwd == str(PROJECT), known
        await it.ask(it.agent.load_session(**here))
        replayed = it.shown(session)
        assert [chunk.content.text for chunk in replayed.user_messages] == ["deny", "allow"], replayed
        calls = replayed.tool_calls.values()
        assert [call.status for call in calls] == ["failed", "completed"], calls
        assert "of-the-terminal" in str(calls) and "terminal_id" not in str(calls), calls
        assert it.text(session) == "Not allowed.Exit code seen.", it.text(session)

        local, _ = await it.open(call("bash", command="echo local > local.txt"), {"text": "Done."})
        editor.decision = "allow_once"
        assert await it.prompt(local, "local") == "end_turn"
        assert (PROJECT / "local.txt").read_text() == "local\n"
        await cancel(it)

        await it.ask(it.agent.close_session(session_id=session))
        await it.refused(-32002, it.agent.prompt(session_id=session, prompt=[text_block("closed")]))
        await it.ask(it.agent.resume_session(**here))
        fork = await it.ask(it.agent.fork_session(**here))
        assert fork.session_id != session
        deleted = await it.ask(it.agent._conn.send_request("session/delete", {"sessionId": session}))
        schema.DeleteSessionResponse.model_validate(deleted)
        left = {info.session_id for info in (await it.ask(it.agent.list_sessions())).sessions}
        assert fork.session_id in left and session not in left, left
        await it.refused(-32002, it.agent.load_session(**here))
    print(f", {len(listed)} stored sessions")


async def main():
    faults = Faults()
    await second_agent(await first_agent())
    faults.check()


asyncio.run(main())
