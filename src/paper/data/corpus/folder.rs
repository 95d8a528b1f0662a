//! A user's own texts: .txt (a document per file), .jsonl (a document per line) and .parquet (a document per row).

use super::schema::{Record, Writer, count_words, urn};
use super::{Config, Summary};
use crate::paper::data::rows::{Columns, Reason, Rows, files_under};
use crate::paper::data::{Error, OnProgress, Progress, Unit};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Collects documents until the configured size is reached.
struct Sink<'a> {
    config: &'a Config,
    writer: &'a mut Writer,
    summary: Summary,
}

impl Sink<'_> {
    fn full(&self) -> bool {
        self.config.bytes > 0 && self.summary.bytes >= self.config.bytes
    }

    /// `place` is the document's name inside the folder: it makes the id, so that copying the folder elsewhere changes nothing.
    fn add(&mut self, place: &str, id: Option<String>, text: String) -> Result<(), Error> {
        self.summary.documents += 1;
        self.summary.bytes += text.len() as u64;
        let id = id.unwrap_or_else(|| urn(&blake3::hash(format!("{place}\0{text}").as_bytes())));
        self.writer.write(Record {
            token_count: count_words(&text),
            id,
            dump: "FOLDER".into(),
            url: format!("file:{place}"),
            file_path: place.to_owned(),
            language_score: 1.0,
            score: 3.0,
            text,
        })
    }
}

pub fn write(config: &Config, folder: &Path, writer: &mut Writer, progress: OnProgress<'_>) -> Result<Summary, Error> {
    let files = files_under(folder)?;
    let total = files.len();
    let mut sink = Sink { config, writer, summary: Summary::default() };
    let mut read = 0;
    for file in &files {
        if sink.full() {
            break;
        }
        let inside = file.strip_prefix(folder).ok().filter(|rest| !rest.as_os_str().is_empty()).unwrap_or(file);
        let place = inside.to_string_lossy().into_owned();
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("txt" | "md") => text(&mut sink, file, &place)?,
            Some("jsonl") => lines(&mut sink, file, &place)?,
            Some("parquet") => rows(&mut sink, folder, file, &place)?,
            _ => continue,
        }
        read += 1;
        progress(Progress { what: "reading texts", done: sink.summary.bytes, total: None, unit: Unit::Bytes });
    }
    if read == 0 && total > 0 || total == 0 {
        return Err(Error::NothingThere {
            path: folder.to_owned(),
            wanted: "texts",
            hint: "it should hold .txt, .md, .jsonl or .parquet files",
        });
    }
    Ok(sink.summary)
}

fn text(sink: &mut Sink<'_>, file: &Path, place: &str) -> Result<(), Error> {
    let bytes = std::fs::read(file).map_err(Error::io("read", file))?;
    match String::from_utf8(bytes) {
        Err(_) => sink.summary.rejects.add(Reason::InvalidUtf8, || place.to_owned()),
        Ok(text) if text.is_empty() => sink.summary.rejects.add(Reason::Empty, || place.to_owned()),
        Ok(text) => sink.add(place, None, text)?,
    }
    Ok(())
}

fn lines(sink: &mut Sink<'_>, file: &Path, place: &str) -> Result<(), Error> {
    let mut reader = BufReader::new(File::open(file).map_err(Error::io("open", file))?);
    let mut raw = Vec::new();
    let mut number = 0;
    loop {
        raw.clear();
        if sink.full() || reader.read_until(b'\n', &mut raw).map_err(Error::io("read", file))? == 0 {
            return Ok(());
        }
        number += 1;
        let here = || format!("{place}, line {number}");
        let Ok(line) = std::str::from_utf8(&raw) else {
            sink.summary.rejects.add(Reason::InvalidUtf8, here);
            continue;
        };
        if line.trim().is_empty() {
            continue;
        }
        let bad = |what: String| Error::BadLine { path: file.to_owned(), line: number, what };
        let value: serde_json::Value = serde_json::from_str(line).map_err(|error| bad(format!("not JSON: {error}")))?;
        let field = &sink.config.text_column;
        let id = value.get("id").and_then(|id| id.as_str()).map(str::to_owned);
        match value.get(field) {
            Some(serde_json::Value::String(text)) if text.is_empty() => sink.summary.rejects.add(Reason::Empty, here),
            Some(serde_json::Value::String(text)) => {
                let text = text.clone();
                sink.add(&here(), id, text)?;
            }
            Some(serde_json::Value::Null) => sink.summary.rejects.add(Reason::NullText, here),
            Some(_) => return Err(bad(format!("field `{field}` is not a text"))),
            None => return Err(bad(format!("no field `{field}`; set `text_column` to the field that holds the text"))),
        }
    }
}

fn rows(sink: &mut Sink<'_>, folder: &Path, file: &Path, place: &str) -> Result<(), Error> {
    let has_id = Rows::column_names(file)?.iter().any(|name| name == "id");
    let columns = Columns { text: sink.config.text_column.clone(), id: has_id.then(|| "id".to_owned()) };
    let mut reader = Rows::open(file, &columns)?.inside(folder);
    let mut number = 0;
    while let Some(batch) = reader.next(1 << 20)? {
        sink.summary.rejects.merge(batch.rejects);
        for row in batch.rows {
            number += 1;
            if sink.full() {
                return Ok(());
            }
            sink.add(&format!("{place}, row {number}"), row.id.clone(), row.text().to_owned())?;
        }
    }
    Ok(())
}
