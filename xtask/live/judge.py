"""Whether the shim of Ollama's API is taken by the official client, for `cargo xtask live`.

python judge.py ADDRESS: fails with what is not as the client expects it.
"""

import sys

import ollama

TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    },
}


def main() -> None:
    client = ollama.Client(host=sys.argv[1], timeout=120)
    models = [model.model for model in client.list().models]
    assert models == ["smollm2:latest"], models
    shown = client.show("smollm2")
    assert {"completion", "tools", "embedding"} <= set(shown.capabilities or []), shown
    try:
        client.show("unknown")
        raise AssertionError("an unknown model is shown")
    except ollama.ResponseError as error:
        assert error.status_code == 404, error

    question = {"role": "user", "content": "What does the file treasure.txt say?"}
    # The newest piece of an answer may hold the call.
    pieces = list(client.chat("smollm2", messages=[question], tools=[TOOL], stream=True))
    assert pieces[-1].done and pieces[-1].prompt_eval_count > 0, pieces[-1]
    calls = [call for piece in pieces for call in piece.message.tool_calls or []]
    assert len(calls) == 1, calls
    assert calls[0].function.name == "read", calls
    assert calls[0].function.arguments == {"path": "treasure.txt"}, calls
    called = {"role": "assistant", "content": "", "tool_calls": calls}
    result = {"role": "tool", "tool_name": "read", "content": "purple elephant"}
    answer = client.chat("smollm2", messages=[question, called, result], tools=[TOOL])
    assert "purple elephant" in (answer.message.content or ""), answer
    assert answer.done_reason == "stop", answer

    vectors = client.embed("smollm2", input=["one", "two words"])
    lengths = {len(vector) for vector in vectors.embeddings}
    assert len(vectors.embeddings) == 2 and lengths == {576}, lengths
    print("the official client takes what the shim says")


main()
