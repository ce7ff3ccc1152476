"""llama.cpp's own HTTP server on loopback, for `cargo xtask live`.

python server.py MODEL TEMPLATE: answers by Chat Completions, Responses and Anthropic's Messages, and makes
embeddings. Prints its address once it answers, and ends when its standard input does.
"""

import sys

from xllamacpp import CommonParams, Server, llama_pooling_type


def main() -> None:
    params = CommonParams()
    params.model.path = sys.argv[1]
    with open(sys.argv[2], encoding="utf-8") as file:
        params.chat_template = file.read()
    params.use_jinja = True
    params.sampling.temp = 0.0
    params.embedding = True
    params.pooling_type = llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    # A text that becomes a vector has to fit into one batch.
    params.n_ubatch = params.n_batch
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 1
    params.n_ctx = 8192
    # A second thread waits for the first in a loop, which a busy machine makes slow.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_gpu_layers = 0
    params.warmup = False
    params.ui = False
    params.verbosity = 0
    params.model_alias = {"smollm2"}
    server = Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
