"""Gathers real English prose from installed-size Debian packages into one Parquet file with FineWeb-Edu's `text` and `id`.

usage: prose.py FOLDER-OF-UNPACKED-PACKAGES OUT.parquet MEGABYTES
Packages: anarchism (essays); debian-handbook, postgresql-doc-15, python3.11-doc, git-doc, debian-policy (manuals); dict-jargon, dict-foldoc,
dict-gcide (dictionaries with quotations). Essays and manuals come first, the dictionaries fill up the rest, so a package that is missing
only moves the mix. A document is some consecutive paragraphs, like a web page.
"""

import gzip
import html
import pathlib
import re
import sys

import pyarrow as pa
import pyarrow.parquet as pq


def from_html(path):
    text = path.read_text(errors="ignore")
    text = re.sub(r"(?is)<(script|style|head)\b.*?</\1>", " ", text)
    text = re.sub(r"(?i)</?(p|br|div|h\d|li|blockquote|tr)\b[^>]*>", "\n\n", text)
    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    paragraphs = (re.sub(r"\s+", " ", part).strip() for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(part for part in paragraphs if len(part) > 40)


def documents(text, name):
    """Cuts a text at paragraphs into documents of about 4 kB."""
    part, size, number = [], 0, 0
    for paragraph in re.split(r"\n\s*\n", text):
        part.append(paragraph)
        size += len(paragraph)
        if size > 4000:
            yield f"{name}#{number}", "\n\n".join(part)
            part, size, number = [], 0, number + 1
    if part:
        yield f"{name}#{number}", "\n\n".join(part)


def main():
    root, out, megabytes = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    places = ["anarchism/html", "debian-handbook/html/en-US", "postgresql-doc-15/html", "python3.11/html", "git/html", "debian-policy"]
    pages = [path for place in places for path in sorted(root.glob(f"usr/share/doc/{place}/**/*.html")) if path.is_file() and not path.is_symlink()]
    dictionaries = [root / f"usr/share/dictd/{name}.dict.dz" for name in ("jargon", "foldoc", "gcide")]
    ids, texts, size, wanted = [], [], 0, megabytes * 1e6
    for path in pages + dictionaries:
        text = gzip.open(path, "rt", errors="ignore").read() if path.suffix == ".dz" else from_html(path)
        for name, document in documents(text, path.relative_to(root).as_posix()):
            if size >= wanted or not document:
                continue
            ids.append(name)
            texts.append(document)
            size += len(document.encode())
    if size < wanted:
        sys.exit(f"only {size} bytes of prose found, {wanted:.0f} wanted")
    table = pa.table({"text": texts, "id": ids})
    # Row groups of 1000 documents and snappy, as the dataset's own files have.
    pq.write_table(table, out, row_group_size=1000, compression="snappy", use_dictionary=False)
    print(f"prose      {len(texts)} documents, {size} bytes")


main()
