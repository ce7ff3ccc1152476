# An MCP server for tests: `server.py DIR [MODE]`. DIR/tools.json is what it lists, DIR/result.json what
# the tool `rich` yields; DIR/log gets a line for each message that came, DIR/pid its process id.
import json
import os
import sys
import time

folder = sys.argv[1]
mode = sys.argv[2] if len(sys.argv) > 2 else ""
# The new revision has no handshake; `REVISION` lists the revisions that a server reports.
new = mode == "new"
revision = os.environ.get("REVISION", "")
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
subscription = None
logged_in = False
CAPABILITIES = {"tools": {"listChanged": True}}
if os.path.exists(os.path.join(folder, "prompts.json")):
    CAPABILITIES.update({"prompts": {}, "resources": {}})
out = sys.stdout


def path(name):
    return os.path.join(folder, name)


def writable(name, mode):
    try:
        return open(path(name), mode)
    except OSError:
        # The OS sandbox leaves only the server's own folder writable.
        return open(os.path.join(os.environ["MCP_SERVER_DIR"], name), mode)


def note(text):
    with writable("log", "a") as log:
        log.write(text + "\n")


def send(message):
    out.write(json.dumps(dict({"jsonrpc": "2.0"}, **message)) + "\n")
    out.flush()


def answer(request, result):
    send({"id": request["id"], "result": complete(result) if "resultType" not in result else result})


def changed():
    message = {"method": "notifications/tools/list_changed"}
    if new:
        message["params"] = {"_meta": {SUBSCRIPTION: subscription}}
    send(message)


def ask(request, params, method="elicitation/create"):
    # An elicitation request: earlier revisions send it, the new one returns it.
    if new:
        responses = request["params"].get("inputResponses")
        if responses is None:
            wanted = {"q": {"method": method, "params": params}}
            return answer(request, {"resultType": "input_required", "inputRequests": wanted, "requestState": "s-1"})
        note("state " + str(request["params"].get("requestState")))
        return answer(request, text("answered: " + json.dumps(responses["q"], sort_keys=True)))
    send({"id": "ask-1", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "ask-1":
            said = message.get("result", message.get("error"))
            return answer(request, text("answered: " + json.dumps(said, sort_keys=True)))


def complete(result):
    return dict({"resultType": "complete"}, **result) if new else result


def text(said):
    return {"content": [{"type": "text", "text": said}]}


def tools(request):
    cursor = (request.get("params") or {}).get("cursor")
    if mode == "pages":
        n = int(cursor or 0)
        tool = {"name": "t%d" % n, "inputSchema": {"type": "object"}}
        return {"tools": [tool] * (1 if n else 20), "nextCursor": str(n + 1)}
    if mode == "many":
        schema = {"type": "object"}
        return {"tools": [{"name": "t%d" % n, "description": "x" * 3000, "inputSchema": schema} for n in range(3000)]}
    with open(path("tools.json")) as file:
        return {"tools": json.load(file)}


def call(request):
    params = request["params"]
    name, given = params["name"], params.get("arguments") or {}
    if name == "echo":
        answer(request, text("said: " + str(given.get("text"))))
    elif name == "where":
        answer(request, text(json.dumps({"cwd": os.getcwd(), "env": sorted(os.environ), "own": os.environ.get("OWN_KEY")})))
    elif name == "long":
        answer(request, text("\n".join("line %d of a long text" % n for n in range(9000))))
    elif name == "fail":
        answer(request, {"content": [{"type": "text", "text": "the disk is full"}], "isError": True})
    elif name == "refuse":
        send({"id": request["id"], "error": {"code": given.get("code", -32602), "message": "not so"}})
    elif name == "rich":
        with open(path("result.json")) as file:
            answer(request, json.load(file))
    elif name == "die":
        sys.stderr.write("the last words\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "garbage":
        out.write("no json\n{\n[]\n7\n" + '{"jsonrpc": "2.0", "id": 999, "result": {}}\n' + "x" * 100000 + "\n")
        answer(request, text("after garbage"))
    elif name == "endless":
        while True:
            out.write("x" * 65536)
    elif name == "flood":
        while True:
            send({"method": "notifications/tools/list_changed"})
    elif name == "change":
        os.replace(path("next.json"), path("tools.json"))
        changed()
        answer(request, text("changed"))
    elif name == "ask":
        schema = given.get("schema") or {"type": "object", "properties": {}}
        ask(request, {"mode": "form", "message": given.get("message", "Who?"), "requestedSchema": schema})
    elif name == "visit":
        ask(request, {"mode": "url", "message": "Log in.", "url": given["url"], "elicitationId": "v-1"})
    elif name == "login":
        # The error of a server that needs the user at an address first.
        global logged_in
        if logged_in:
            return answer(request, text("logged in"))
        logged_in = not given.get("always")
        visits = [{"mode": "url", "message": "Log in first.", "url": given["url"], "elicitationId": "v-1"}]
        error = {"code": -32042, "message": "not yet", "data": {"elicitations": visits}}
        send({"id": request["id"], "error": error})
    elif name == "think":
        wanted = {"messages": [{"role": "user", "content": {"type": "text", "text": "Say a number."}}], "systemPrompt": "Be\u200b brief.", "maxTokens": 50}
        ask(request, wanted, "sampling/createMessage")
    elif name == "progress":
        token = (params.get("_meta") or {}).get("progressToken")
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 4, "message": "half\u200bway"}})
        answer(request, text("done"))
    elif name == "write":
        try:
            with open(given["path"], "w") as file:
                file.write("x")
            answer(request, text("written"))
        except OSError as error:
            answer(request, text("refused: %s" % error.strerror))
    elif name == "read":
        try:
            with open(given["path"]) as file:
                answer(request, text(file.read()))
        except OSError as error:
            answer(request, text("refused: %s" % error.strerror))
    elif name == "connect":
        import socket
        try:
            socket.create_connection(("127.0.0.1", given["port"]), 5).close()
            answer(request, text("connected"))
        except OSError as error:
            answer(request, text("refused: %s" % error.strerror))
    elif name == "silent":
        pass
    elif name == "research":
        # A tool that runs only as a task.
        global found
        if "task" not in params and given.get("as_result"):
            said = text("MCP error -32601: research runs only as a task")
            return answer(request, dict(said, isError=True))
        if "task" not in params:
            return send({"id": request["id"], "error": {"code": -32601, "message": "research runs only as a task"}})
        found = given.get("found")
        answer(request, {"task": {"taskId": "task-1", "status": "working", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": None}})
    else:
        send({"id": request["id"], "error": {"code": -32602, "message": "no such tool"}})


note("start")
with writable("pid", "w") as file:
    file.write(str(os.getpid()))
if mode == "mute":
    time.sleep(600)
if mode == "exits":
    sys.stderr.write("no configuration\n")
    sys.exit(7)
if mode == "babbles":
    while True:
        out.write("x" * 65536 + "\n")
if mode == "child":
    import subprocess
    subprocess.Popen(["sleep", sys.argv[3]], start_new_session=True)
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method", "")
    note(method + " " + json.dumps(request.get("params") or {}) if method == "tools/call" else method)
    if method == "server/discover" and (new or mode == "discovers"):
        answer(request, {
            "supportedVersions": (revision or "2026-07-28").split(),
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "test", "version": "1"},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        })
    elif method == "server/discover" and mode == "fragile":
        sys.exit(9)
    elif method == "subscriptions/listen":
        subscription = request["id"]
        given = {"notifications": request["params"]["notifications"], "_meta": {SUBSCRIPTION: subscription}}
        send({"method": "notifications/subscriptions/acknowledged", "params": given})
    elif new and "io.modelcontextprotocol/protocolVersion" not in (request["params"].get("_meta") or {}):
        send({"id": request["id"], "error": {"code": -32602, "message": "no revision in _meta"}})
    elif method == "initialize":
        answer(request, {
            "protocolVersion": revision if revision and mode != "discovers" else request["params"]["protocolVersion"],
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "test", "version": "1"},
        })
    elif method == "prompts/list":
        with open(path("prompts.json")) as file:
            answer(request, {"prompts": json.load(file)})
    elif method == "resources/list":
        answer(request, {"resources": [{"uri": "note://one", "name": "One"}]})
    elif method == "prompts/get":
        given = request["params"].get("arguments") or {}
        if given.get("path") == "slow":
            token = (request["params"].get("_meta") or {}).get("progressToken")
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 4, "message": "halfway"}})
        said = "Review " + json.dumps(given, sort_keys=True)
        answer(request, {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]})
    elif method == "resources/read":
        uri = request["params"]["uri"]
        if uri.startswith("note://long"):
            said = "\n".join("line %d of a long text" % n for n in range(9000))
        elif uri.startswith("note://one"):
            said = "The note's text."
        else:
            send({"id": request["id"], "error": {"code": -32002, "message": "no such resource"}})
            continue
        answer(request, {"contents": [{"uri": uri, "mimeType": "text/plain", "text": said}]})
    elif method == "tools/list":
        answer(request, tools(request))
    elif method == "tools/call":
        call(request)
    elif method == "tasks/result" and request["params"]["taskId"] == "task-1":
        # Without a result the task does not end.
        if found is not None:
            answer(request, text("found: " + found))
    elif "id" in request and method:
        send({"id": request["id"], "error": {"code": -32601, "message": "no " + method}})
