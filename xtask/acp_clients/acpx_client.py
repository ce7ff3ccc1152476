"""acpx, a command-line client of the Agent Client Protocol, with `zeph acp`.

Arguments: the program, a folder with an empty project and the file of the scripted provider, and the command that starts
acpx. acpx prints each message as a line of JSON. A session has a process of acpx in the background. No process is left at
the end.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM, ROOT, ACPX = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
PROJECT = ROOT / "project"
# The time limit of each step, in seconds.
STEP = 60
SECONDS = f"99{os.getpid()}"
AGENT = f"{shlex.quote(PROGRAM)} acp"
# The exit code of acpx after a turn in which it rejected a call.
DENIED = 5


def call(tool, **arguments):
    return {"calls": [{"tool": tool, "input": arguments}]}


def scenario(*steps):
    """Sets the responses of the model for the sessions that open from now on."""
    (ROOT / "scenario.json").write_text(json.dumps({"steps": steps}))


def command(*arguments, agent=AGENT, policy="--approve-all"):
    options = ["--agent", agent, "--cwd", str(PROJECT), "--format", "json", "--ttl", "60", "--timeout", str(STEP)]
    return [*ACPX, *options, policy, *arguments]


def acpx(*arguments, code=0, **options):
    """Runs acpx, and returns the objects that it prints."""
    # Not pipes, which a process in the background could hold open.
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        started = command(*arguments, **options)
        done = subprocess.run(started, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, timeout=STEP)
        printed, said = (file.seek(0) or file.read() for file in [stdout, stderr])
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{printed[-2000:]}{said[-2000:]}"
    return [json.loads(line) for line in printed.splitlines()]


def requests(messages, method):
    return [message for message in messages if message.get("method") == method]


def updates(messages, kind):
    found = [message["params"]["update"] for message in requests(messages, "session/update")]
    return [update for update in found if update["sessionUpdate"] == kind]


def text(messages):
    return "".join(update["content"]["text"] for update in updates(messages, "agent_message_chunk"))


def stop_reason(messages):
    reasons = [message["result"]["stopReason"] for message in messages if "stopReason" in (message.get("result") or {})]
    assert len(reasons) == 1, messages
    return reasons[0]


def until(name, check):
    start = time.monotonic()
    while not check():
        assert time.monotonic() - start < STEP, f"{name} did not happen within {STEP} s"
        time.sleep(0.02)


def processes():
    """The other processes with this home directory, by id."""
    mark = f"HOME={os.environ['HOME']}\0".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if entry.name != str(os.getpid()) and mark in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    return found


def is_sleeping():
    return any(line.startswith(f"sleep {SECONDS}") for line in processes().values())


def permissions():
    """A rejected command does not run; an approved one runs in a terminal of the client."""
    steps = [call("bash", command="echo of-the-terminal; touch made.txt"), {"text": "Done."}]
    scenario(*steps)
    denied = acpx("exec", "go", policy="--deny-all", code=DENIED)
    assert len(requests(denied, "session/request_permission")) == 1, denied
    assert updates(denied, "tool_call_update")[-1]["status"] == "failed", denied
    assert not (PROJECT / "made.txt").exists() and stop_reason(denied) == "end_turn"

    steps[1]["expect"] = {"tool_result_contains": "of-the-terminal"}
    scenario(*steps)
    allowed = acpx("exec", "go")
    assert (PROJECT / "made.txt").exists() and text(allowed) == "Done.", allowed
    for method in ["create", "wait_for_exit", "output", "release"]:
        assert len(requests(allowed, f"terminal/{method}")) == 1, method


def files():
    """Files are read and written by the client. A line that is not JSON precedes its first message."""
    (PROJECT / "old.txt").write_text("old text\n")
    scenario(
        call("read", path="old.txt"),
        {**call("write", path="new.txt", content="new text\n"), "expect": {"tool_result_contains": "old text"}},
        {"text": "Written."},
    )
    agent = ROOT / "agent.sh"
    agent.write_text(f"""#!/bin/sh\n{{ echo '{{"jsonrpc": "2.0", "id"'; cat; }} | {AGENT}\n""")
    agent.chmod(0o755)
    messages = acpx("exec", "go", agent=str(agent))
    errors = [message["error"]["code"] for message in messages if message.get("id", 0) is None]
    assert errors == [-32700], errors
    assert requests(messages, "fs/read_text_file") and requests(messages, "fs/write_text_file"), messages
    assert (PROJECT / "new.txt").read_text() == "new text\n" and text(messages) == "Written."


def cancel():
    """A cancelled command leaves no process, and the session continues in the same process."""
    scenario(call("bash", command=f"echo begun; sleep {SECONDS}; touch after.txt"), {"text": "Continued."})
    session = acpx("sessions", "new")[0]["acpxSessionId"]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command("prompt", "wait"), **output) as prompt:
        until("the start of the command", is_sleeping)
        assert acpx("cancel")[0]["cancelled"]
        printed, _ = prompt.communicate(timeout=STEP)
    messages = [json.loads(line) for line in printed.splitlines()]
    assert stop_reason(messages) == "cancelled", messages
    assert updates(messages, "tool_call_update")[-1]["status"] == "failed", messages
    until("the end of the command", lambda: not is_sleeping())
    assert text(acpx("prompt", "continue")) == "Continued."
    assert not (PROJECT / "after.txt").exists()
    return session


def sessions(session):
    """Modes and options, and the session in another process of the agent."""
    assert acpx("set-mode", "plan")[0]["modeId"] == "plan"
    (changed,) = acpx("set", "mode", "auto-edit")
    assert changed["configOptions"][0]["currentValue"] == "auto-edit", changed
    listed = {info["sessionId"]: info for info in acpx("sessions", "list")[0]["sessions"]}
    assert listed[session]["title"] == "wait", listed
    os.kill(acpx("status")[0]["pid"], signal.SIGTERM)
    until("the end of the process", lambda: not processes())
    scenario({"text": "In another process."})
    messages = acpx("prompt", "again")
    assert text(messages) == "In another process.", messages
    assert requests(messages, "session/resume") or requests(messages, "session/load"), messages
    assert acpx("sessions", "close")[0]["acpxSessionId"] == session
    return len(listed)


try:
    permissions()
    files()
    print(f"sessions: {sessions(cancel())} listed")
    until("the end of all processes", lambda: not processes())
finally:
    for process in processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
