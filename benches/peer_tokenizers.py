"""Tokenizes the same documents with HF tokenizers and tiktoken (Python), times them, and compares every id with our shards.

usage: peer_tokenizers.py TEXT.parquet TOKENIZER.json TIKTOKEN.model SHARDS-FOLDER [--check]
The peers get the texts in memory and write nothing; ours is timed from Parquet to Parquet by benches/data.rs.
"""

import base64
import glob
import os
import resource
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import tiktoken
import tokenizers

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def timed(name, megabytes, work):
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    result = work()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tokens = sum(len(ids) for ids in result)
    print(f"{name:24} {megabytes / wall:6.1f} MB/s  {wall:6.2f} s  {cpu:6.2f} s CPU  {tokens} tokens", flush=True)
    return result


def main():
    text, json, model, shards = sys.argv[1:5]
    table = pq.read_table(text)
    ids, texts = table["id"].to_pylist(), table["text"].to_pylist()
    megabytes = sum(len(text.encode()) for text in texts) / 1e6

    reference = tokenizers.Tokenizer.from_file(json)
    reference.encode_special_tokens = True
    by_hf = timed(f"tokenizers {tokenizers.__version__}", megabytes, lambda: [
        encoding.ids for encoding in reference.encode_batch_fast(texts, add_special_tokens=False)
    ])
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in open(model, "rb"))}
    encoding = tiktoken.Encoding("llama3", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    by_tiktoken = timed(f"tiktoken {tiktoken.__version__}", megabytes, lambda: encoding.encode_ordinary_batch(texts, num_threads=os.cpu_count()))

    if "--check" in sys.argv:
        ours = {}
        for path in sorted(glob.glob(f"{shards}/*/*.parquet")):
            shard = pq.read_table(path)
            values, offsets = shard["input_ids"].combine_chunks().flatten().to_numpy(), 0
            for name, count in zip(shard["doc_id"].to_pylist(), shard["n_tokens"].to_pylist()):
                ours[name] = values[offsets + 1 : offsets + count]
                offsets += count
        assert len(ours) == len(ids), (len(ours), len(ids))
        for name, hf, tt in zip(ids, by_hf, by_tiktoken):
            assert np.array_equal(ours[name], np.array(hf, dtype=np.uint32)), f"{name}: differs from tokenizers"
            assert np.array_equal(ours[name], np.array(tt, dtype=np.uint32)), f"{name}: differs from tiktoken"
        print(f"every id of {len(ids)} documents is the same by our shards, tokenizers and tiktoken")


main()
