"""The part of Ollama's API that Zeph uses, over a server that speaks Chat Completions, for `cargo xtask live`.

python ollama_shim.py ADDRESS: ADDRESS is that of the server behind it. Prints its own address, and ends
when its standard input does. Only the standard library is used.
"""

import datetime
import hashlib
import itertools
import json
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEHIND = sys.argv[1]
MODEL = "smollm2:latest"
DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "134.52M",
    "quantization_level": "Q4_1",
}
# Seconds that the server behind may be silent.
PATIENCE = 120


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def ask(path: str, body: dict):
    """Sends a request to the server behind; the response, to be read."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(BEHIND + path, data, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=PATIENCE)


def messages_behind(messages: list) -> list:
    """Messages as Chat Completions has them: calls have ids, which results answer in their order."""
    out, open_calls, made = [], [], 0
    for message in messages:
        role, content = message["role"], message.get("content") or ""
        if role == "tool":
            name = message.get("tool_name") or message.get("name")
            at = next((i for i, call in enumerate(open_calls) if call[1] == name), 0)
            if not open_calls:
                raise ValueError("a result answers no call")
            out.append({"role": "tool", "tool_call_id": open_calls.pop(at)[0], "content": content})
            continue
        calls = []
        for call in message.get("tool_calls") or []:
            function, made = call["function"], made + 1
            if not isinstance(function["arguments"], dict):
                raise ValueError("the arguments of a call are an object")
            open_calls.append((f"call_{made}", function["name"]))
            calls.append(
                {
                    "id": f"call_{made}",
                    "type": "function",
                    "function": {"name": function["name"], "arguments": json.dumps(function["arguments"])},
                }
            )
        out.append({"role": role, "content": content, **({"tool_calls": calls} if calls else {})})
    return out


def request_behind(asked: dict) -> dict:
    options = asked.get("options") or {}
    body = {"model": asked["model"], "messages": messages_behind(asked["messages"]), "stream": True}
    body["stream_options"] = {"include_usage": True}
    if asked.get("tools"):
        body["tools"] = asked["tools"]
    if options.get("num_predict", -1) > 0:
        body["max_tokens"] = options["num_predict"]
    if asked.get("format") == "json":
        body["response_format"] = {"type": "json_object"}
    elif asked.get("format"):
        schema = {"name": "answer", "schema": asked["format"]}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def events(response):
    """The data of each event of a stream, until its end."""
    for line in response:
        line = line.decode().strip()
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line[len("data: ") :])


def answer(asked: dict):
    """The lines of an answer: text as it comes, calls whole, and the end with its counts."""
    calls, reason, usage = {}, "stop", {}

    def line(message: dict, **more) -> dict:
        return {"model": asked["model"], "created_at": now(), "message": message, "done": False, **more}

    with ask("/v1/chat/completions", request_behind(asked)) as response:
        for event in events(response):
            usage = event.get("usage") or usage
            for choice in event.get("choices") or []:
                delta = choice.get("delta") or {}
                if delta.get("content"):
                    yield line({"role": "assistant", "content": delta["content"]})
                for piece in delta.get("tool_calls") or []:
                    call = calls.setdefault(piece["index"], ["", ""])
                    function = piece.get("function") or {}
                    call[0] += function.get("name") or ""
                    call[1] += function.get("arguments") or ""
                reason = choice.get("finish_reason") or reason
    for name, arguments in calls.values():
        function = {"name": name, "arguments": json.loads(arguments or "{}")}
        yield line({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})
    yield line(
        {"role": "assistant", "content": ""},
        done=True,
        done_reason="length" if reason == "length" else "stop",
        total_duration=1,
        load_duration=1,
        prompt_eval_count=usage.get("prompt_tokens", 0),
        prompt_eval_duration=1,
        eval_count=usage.get("completion_tokens", 0),
        eval_duration=1,
    )


def whole(lines: list) -> dict:
    """The lines of an answer as one."""
    message = {"role": "assistant", "content": "".join(line["message"]["content"] for line in lines)}
    calls = [call for line in lines for call in line["message"].get("tool_calls", [])]
    if calls:
        message["tool_calls"] = calls
    return {**lines[-1], "message": message}


def embed(asked: dict) -> dict:
    texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
    with ask("/v1/embeddings", {"model": asked["model"], "input": texts}) as response:
        made = json.load(response)
    data = sorted(made["data"], key=lambda item: item["index"])
    return {
        "model": asked["model"],
        "embeddings": [item["embedding"] for item in data],
        "total_duration": 1,
        "load_duration": 1,
        "prompt_eval_count": made["usage"]["prompt_tokens"],
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args) -> None:
        pass

    def send(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, lines) -> None:
        # The first one tells whether there is an answer at all.
        first = next(lines)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in itertools.chain([first], lines):
            data = json.dumps(line).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self) -> None:
        if self.path == "/api/version":
            self.send(200, {"version": "0.12.0"})
        elif self.path == "/api/tags":
            digest = hashlib.sha256(MODEL.encode()).hexdigest()
            model = {"name": MODEL, "model": MODEL, "modified_at": now(), "size": 98362432}
            self.send(200, {"models": [{**model, "digest": digest, "details": DETAILS}]})
        else:
            self.send(404, {"error": "404 page not found"})

    def do_POST(self) -> None:
        try:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            name = asked.get("model", "")
            if name not in (MODEL, MODEL.split(":")[0]):
                self.send(404, {"error": f'model "{name}" not found, try pulling it first'})
            elif self.path == "/api/show":
                shown = {"modelfile": "", "parameters": "", "template": "", "details": DETAILS}
                info = {"general.architecture": "llama", "llama.context_length": 8192}
                able = ["completion", "tools", "embedding"]
                self.send(200, {**shown, "model_info": info, "capabilities": able})
            elif self.path == "/api/embed":
                self.send(200, embed(asked))
            elif self.path == "/api/chat" and asked.get("stream", True):
                self.stream(answer(asked))
            elif self.path == "/api/chat":
                self.send(200, whole(list(answer(asked))))
            else:
                self.send(404, {"error": "404 page not found"})
        except urllib.error.HTTPError as error:
            self.send(error.code, {"error": error.read().decode(errors="replace")})
        except (KeyError, ValueError, TypeError) as error:
            self.send(400, {"error": f"{type(error).__name__}: {error}"})


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


main()
