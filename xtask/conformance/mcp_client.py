# The client that the conformance suite starts: it drives the built binary against the server at the last argument.
# ZEPH is the path of the binary; the suite sets MCP_CONFORMANCE_SCENARIO and MCP_CONFORMANCE_CONTEXT.
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

url = sys.argv[-1]
zeph = os.environ["ZEPH"]
scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
directory = tempfile.TemporaryDirectory(prefix="zeph-conformance-")
home = directory.name
env = {"HOME": home, "XDG_DATA_HOME": home + "/data", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def configure():
    os.makedirs(home + "/.config/zeph")
    oauth = {}
    if context.get("client_id"):
        oauth["client_id"] = context["client_id"]
        if context.get("client_secret"):
            oauth["client_secret"] = context["client_secret"]
    if "cimd" in scenario:
        oauth["client_metadata_url"] = "https://conformance-test.local/client-metadata.json"
    lines = ["[[mcp.servers]]", 'name = "w"', "url = " + json.dumps(url), "connect_timeout_secs = 15"]
    if oauth:
        pairs = ", ".join("%s = %s" % (key, json.dumps(value)) for key, value in oauth.items())
        lines.append("oauth = { %s }" % pairs)
    with open(home + "/.config/zeph/config.toml", "w") as file:
        file.write("\n".join(lines) + "\n")


def run(*arguments):
    print("$ zeph " + " ".join(arguments), file=sys.stderr)
    done = subprocess.run([zeph, *arguments], env=env, cwd=home, capture_output=True, text=True, timeout=60)
    sys.stderr.write(done.stdout[-2000:] + done.stderr[-2000:])
    return done


def login():
    process = subprocess.Popen(
        [zeph, "mcp", "login", "w", "--no-browser"], env=env, cwd=home, stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if line.startswith("http"):
            # The part of the browser.
            try:
                urllib.request.urlopen(line.strip(), timeout=20).read()
            except urllib.error.HTTPError as error:
                print("the browser got %s" % error, file=sys.stderr)
            break
    process.stdout.read()
    return process.wait(timeout=60) == 0


def arguments(tool):
    for call in context.get("toolCalls", []):
        if call.get("name") == tool["name"]:
            return call.get("arguments", {})
    samples = {"string": "x", "number": 5, "integer": 3, "boolean": True, "array": [], "object": {}}
    schema = tool["parameters"]
    needed = schema.get("required", [])
    return {name: samples.get(schema["properties"][name].get("type"), "x") for name in needed}


def with_login(*arguments):
    done = run(*arguments)
    said = done.stdout + done.stderr
    # Errors about a missing login or scope name the command that fixes them.
    if "`zeph mcp login " in said and login():
        done = run(*arguments)
    return done


def calls():
    for server in json.loads(run("mcp", "list", "--json").stdout):
        for tool in server["tools"]:
            for _ in range(2 if "migration" in scenario else 1):
                with_login("mcp", "test", "w")
                with_login("--yes", "tools", "call", tool["id"], json.dumps(arguments(tool)))


configure()
if scenario.startswith("auth/") and not login():
    sys.exit(1)
approved = with_login("mcp", "approve", "w", "--yes")
calls()
sys.exit(approved.returncode)
