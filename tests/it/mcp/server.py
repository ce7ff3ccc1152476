# An MCP server for tests: `server.py DIR [MODE]`. DIR/tools.json is what it lists, DIR/result.json what
# the tool `rich` yields; DIR/log gets a line for each message that came, DIR/pid its process id.
import json
import os
import sys
import time

folder = sys.argv[1]
mode = sys.argv[2] if len(sys.argv) > 2 else ""
out = sys.stdout


def path(name):
    return os.path.join(folder, name)


def note(text):
    with open(path("log"), "a") as log:
        log.write(text + "\n")


def send(message):
    out.write(json.dumps(dict({"jsonrpc": "2.0"}, **message)) + "\n")
    out.flush()


def answer(request, result):
    send({"id": request["id"], "result": result})


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
        answer(request, text("\n".join("line %d of what is long" % n for n in range(9000))))
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
        send({"method": "notifications/tools/list_changed"})
        answer(request, text("changed"))
    elif name == "silent":
        pass
    else:
        send({"id": request["id"], "error": {"code": -32602, "message": "no such tool"}})


note("start")
with open(path("pid"), "w") as file:
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
    if method == "initialize":
        answer(request, {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "test", "version": "1"},
        })
    elif method == "tools/list":
        answer(request, tools(request))
    elif method == "tools/call":
        call(request)
    elif "id" in request and method:
        send({"id": request["id"], "error": {"code": -32601, "message": "no " + method}})
