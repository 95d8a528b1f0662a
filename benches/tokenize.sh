#!/usr/bin/env bash
# The tables of docs/benchmarks.md in one command: ours and the peers in turns, so that a busy machine slows all of them.
# Usage: benches/tokenize.sh [ROUNDS] [GIGABYTES for the memory test, 0 skips it]
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3}
gigabytes=${2:-1}
work=target/peers
tests/peers/prepare-data.sh
step() { cargo bench --quiet --bench data -- "$@"; }

step take-tokenizer "$work/llama3.json" "$work/from-json" >/dev/null
for round in $(seq "$rounds"); do
    echo "round $round"
    step tokenize "$work/prose" "$work/from-json" "$work/shards" 1
    "$work/venv/bin/python" benches/peer_tokenizers.py "$work/prose/prose.parquet" "$work/llama3.json" "$work/llama3.model" "$work/shards"
    step load "$work/shards" 2048 400000000
    step corpus "$work/world" 32
done
if [ "$gigabytes" != 0 ]; then
    echo "memory while tokenizing $gigabytes GB"
    rm -rf "$work/large" "$work/large-shards"
    step corpus "$work/large" $((gigabytes * 1000))
    step tokenize "$work/large" "$work/from-json" "$work/large-shards" 1
    step load "$work/large-shards" 2048 1000000000
    rm -rf "$work/large" "$work/large-shards"
fi
