#!/usr/bin/env bash
# The optional suite of the data side, against independent implementations. Fails loudly; takes a few minutes.
#   1. Our encoder gives the ids of the `tokenizers` 0.23 crate on all of 48 MB, the tiktoken file gives the same, and the texts come back.
#   2. pyarrow reads our shards: schema, counts, sums.
#   3. Python's tokenizers and tiktoken give the ids that stand in our shards, document by document.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=target/peers
tests/peers/prepare-data.sh
step() { cargo bench --quiet --bench data -- "$@"; }

step take-tokenizer "$work/llama3.json" "$work/from-json"
step take-tokenizer "$work/llama3.model" "$work/from-model"
step reference "$work/prose" "$work/from-json"
step same "$work/prose" "$work/from-json" "$work/from-model"
step tokenize "$work/prose" "$work/from-json" "$work/shards" 1
step sums "$work/shards" >"$work/sums.txt"
"$work/venv/bin/python" tests/peers/shards.py "$work/shards" "$work/sums.txt"
"$work/venv/bin/python" benches/peer_tokenizers.py "$work/prose/prose.parquet" "$work/llama3.json" "$work/llama3.model" "$work/shards" --check

# The built-in corpus as well: other row groups, a tokenizer of our own, a held-out split with something in it.
step corpus "$work/world" 20
step tokenizer "$work/world" "$work/world-tokenizer" 2048
step tokenize "$work/world" "$work/world-tokenizer" "$work/world-shards" 1
step sums "$work/world-shards" >"$work/world-sums.txt"
"$work/venv/bin/python" tests/peers/shards.py "$work/world-shards" "$work/world-sums.txt"
echo "data peers: all agree"
