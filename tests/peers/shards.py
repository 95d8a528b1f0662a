"""Reads token shards with pyarrow and checks schema, counts and sums against what our own reader printed.

usage: shards.py SHARDS-FOLDER SUMS-FILE
"""

import glob
import json
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

EXPECTED = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("n_tokens", pa.uint32(), nullable=False),
        pa.field("input_ids", pa.list_(pa.field("element", pa.uint32(), nullable=False)), nullable=False),
    ]
)


def main():
    folder, sums = sys.argv[1], sys.argv[2]
    for line in open(sums):
        split, documents, tokens, total = line.split()
        documents, tokens, total = int(documents), int(tokens), int(total)
        found = [0, 0, 0]
        for path in sorted(glob.glob(f"{folder}/{split}/*.parquet")):
            file = pq.ParquetFile(path)
            assert file.schema_arrow.remove_metadata().equals(EXPECTED), f"{path}: schema {file.schema_arrow}"
            facts = json.loads(file.metadata.metadata[b"repro.shard"])
            assert facts["split"] == split, facts
            table = file.read()
            lengths = pc.list_value_length(table["input_ids"])
            assert pc.all(pc.equal(pc.cast(lengths, pa.uint32()), table["n_tokens"])).as_py(), f"{path}: n_tokens"
            ids = table["input_ids"].combine_chunks().flatten()
            assert pc.max(ids).as_py() < facts["vocabulary"]
            firsts = pc.list_element(table["input_ids"], 0)
            assert pc.all(pc.equal(firsts, facts["bos_id"])).as_py(), f"{path}: begin-of-text"
            assert (facts["documents"], facts["tokens"]) == (len(table), len(ids)), facts
            groups = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
            assert groups == [documents for documents, _ in facts["row_groups"]], facts
            found[0] += len(table)
            found[1] += len(ids)
            found[2] += pc.sum(pc.cast(ids, pa.uint64())).as_py() or 0
        assert found == [documents, tokens, total], (split, found, line)
        print(f"pyarrow    {split}: {documents} documents, {tokens} tokens, sum {total}: agrees")


main()
