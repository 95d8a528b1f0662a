//! Streams documents out of Parquet files, column by column, as raw bytes: whatever a row holds is counted, never skipped in silence.
//! Works below the arrow layer so that one bad byte rejects one document rather than its whole row group.

use super::Error;
use super::at_file::{AtFile, open_parquet, sheltered};
use parquet::basic::{Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Documents that were met but not used, by reason, with a few examples of where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejects {
    pub by_reason: BTreeMap<String, u64>,
    /// The first few of them: `file, row group 3, row 17: empty`.
    pub examples: Vec<String>,
}

const EXAMPLES: usize = 10;

impl Rejects {
    pub fn add(&mut self, reason: Reason, place: impl FnOnce() -> String) {
        *self.by_reason.entry(reason.name().to_owned()).or_default() += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(format!("{}: {}", place(), reason.name()));
        }
    }

    pub fn merge(&mut self, other: Self) {
        for (reason, count) in other.by_reason {
            *self.by_reason.entry(reason).or_default() += count;
        }
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
    }

    pub fn total(&self) -> u64 {
        self.by_reason.values().sum()
    }

    /// `2 empty, 1 null text`, or `none`.
    pub fn told(&self) -> String {
        if self.by_reason.is_empty() {
            return "none".into();
        }
        self.by_reason.iter().map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    NullText,
    Empty,
    InvalidUtf8,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Self::NullText => "null text",
            Self::Empty => "empty",
            Self::InvalidUtf8 => "invalid UTF-8",
        }
    }
}

/// A document of a Parquet file. The bytes are checked UTF-8 and not empty.
#[derive(Clone, Debug)]
pub struct Row {
    /// `None` where the file has no id column, or a null in it.
    pub id: Option<String>,
    text: ByteArray,
}

impl Row {
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.text.data()).expect("rows are checked when they are read")
    }
}

/// Some consecutive documents of one file.
#[derive(Debug, Default)]
pub struct Batch {
    pub rows: Vec<Row>,
    pub bytes: usize,
    pub rejects: Rejects,
    /// Rows met, used or not.
    pub met: u64,
}

/// Which columns hold the text and the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub text: String,
    /// `None`: the files need not have one.
    pub id: Option<String>,
}

/// Reads one file from its first row to its last.
pub struct Rows {
    path: PathBuf,
    /// What the file is called in `rejects`, which go into outputs: those must not know where the corpus lies.
    label: String,
    file: SerializedFileReader<AtFile>,
    columns: Columns,
    text_at: usize,
    id_at: Option<usize>,
    row_group: usize,
    open: Option<OpenGroup>,
}

struct OpenGroup {
    text: ColumnReaderImpl<ByteArrayType>,
    text_nullable: bool,
    id: Option<(ColumnReaderImpl<ByteArrayType>, bool)>,
    left: usize,
    row: usize,
}

/// Rows asked of the decoder at a time.
const STEP: usize = 64;

impl Rows {
    pub fn open(path: &Path, columns: &Columns) -> Result<Self, Error> {
        let file = open_parquet(path)?;
        let text_at = find(&file, path, &columns.text)?;
        let id_at = columns.id.as_ref().map(|id| find(&file, path, id)).transpose()?;
        let label = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { path: path.to_owned(), label, file, columns: columns.clone(), text_at, id_at, row_group: 0, open: None })
    }

    /// Calls the file by its place inside `root`.
    pub fn inside(mut self, root: &Path) -> Self {
        if let Ok(place) = self.path.strip_prefix(root)
            && !place.as_os_str().is_empty()
        {
            self.label = place.to_string_lossy().into_owned();
        }
        self
    }

    /// The names of the top-level columns.
    pub fn column_names(path: &Path) -> Result<Vec<String>, Error> {
        let file = open_parquet(path)?;
        Ok(names(&file))
    }

    /// Documents until about `bytes` of text are together; `None` at the end of the file.
    pub fn next(&mut self, bytes: usize) -> Result<Option<Batch>, Error> {
        let mut batch = Batch::default();
        while batch.bytes < bytes {
            let Some(group) = self.group()? else { break };
            self.step(group, &mut batch)?;
        }
        Ok((batch.met > 0).then_some(batch))
    }

    /// The open row group, or the next one that has rows.
    fn group(&mut self) -> Result<Option<OpenGroup>, Error> {
        loop {
            if let Some(group) = self.open.take() {
                if group.left > 0 {
                    return Ok(Some(group));
                }
                self.row_group += 1;
            }
            if self.row_group >= self.file.num_row_groups() {
                return Ok(None);
            }
            let reader =
                sheltered(|| self.file.get_row_group(self.row_group)).map_err(|source| self.bad(&self.columns.text, source))?;
            let column = |at: usize, name: &str| {
                let reader = sheltered(|| reader.get_column_reader(at)).map_err(|source| self.bad(name, source))?;
                let nullable = self.file.metadata().file_metadata().schema_descr().column(at).max_def_level() > 0;
                match reader {
                    ColumnReader::ByteArrayColumnReader(reader) => Ok((reader, nullable)),
                    _ => unreachable!("`find` let only byte arrays through"),
                }
            };
            let (text, text_nullable) = column(self.text_at, &self.columns.text)?;
            let id = match (self.id_at, &self.columns.id) {
                (Some(at), Some(name)) => Some(column(at, name)?),
                _ => None,
            };
            let left = reader.metadata().num_rows() as usize;
            self.open = Some(OpenGroup { text, text_nullable, id, left, row: 0 });
        }
    }

    fn bad(&self, column: &str, source: parquet::errors::ParquetError) -> Error {
        Error::RowGroup { path: self.path.clone(), row_group: self.row_group, column: column.to_owned(), source }
    }

    fn short(&self, column: &str, got: usize, wanted: usize) -> Error {
        self.bad(column, parquet::errors::ParquetError::EOF(format!("{got} rows where {wanted} were announced")))
    }

    fn step(&mut self, mut group: OpenGroup, batch: &mut Batch) -> Result<(), Error> {
        let wanted = group.left.min(STEP);
        let texts = read(&mut group.text, group.text_nullable, wanted).map_err(|source| self.bad(&self.columns.text, source))?;
        if texts.len() != wanted {
            return Err(self.short(&self.columns.text, texts.len(), wanted));
        }
        let mut ids = vec![None; wanted];
        if let (Some((reader, nullable)), Some(name)) = (&mut group.id, &self.columns.id) {
            ids = read(reader, *nullable, wanted).map_err(|source| self.bad(name, source))?;
            if ids.len() != wanted {
                return Err(self.short(name, ids.len(), wanted));
            }
        }
        for (at, (text, id)) in texts.into_iter().zip(ids).enumerate() {
            batch.met += 1;
            let place = || format!("{}, row group {}, row {}", self.label, self.row_group, group.row + at);
            let Some(text) = text else {
                batch.rejects.add(Reason::NullText, place);
                continue;
            };
            if text.is_empty() {
                batch.rejects.add(Reason::Empty, place);
            } else if std::str::from_utf8(text.data()).is_err() {
                batch.rejects.add(Reason::InvalidUtf8, place);
            } else {
                batch.bytes += text.len();
                let id = id.map(|id: ByteArray| String::from_utf8_lossy(id.data()).into_owned());
                batch.rows.push(Row { id, text });
            }
        }
        group.left -= wanted;
        group.row += wanted;
        self.open = Some(group);
        Ok(())
    }
}

fn names(file: &SerializedFileReader<AtFile>) -> Vec<String> {
    let schema = file.metadata().file_metadata().schema_descr();
    schema.root_schema().get_fields().iter().map(|field| field.name().to_owned()).collect()
}

/// The leaf of a top-level text column.
fn find(file: &SerializedFileReader<AtFile>, path: &Path, column: &str) -> Result<usize, Error> {
    let schema = file.metadata().file_metadata().schema_descr();
    let leaf = (0..schema.num_columns()).find(|&at| schema.get_column_root(at).name() == column);
    let leaf = leaf.ok_or_else(|| Error::NoColumn { path: path.to_owned(), column: column.to_owned(), found: names(file) })?;
    let root = schema.get_column_root(leaf);
    let repeated = !root.is_primitive() || root.get_basic_info().repetition() == Repetition::REPEATED;
    if repeated || schema.column(leaf).physical_type() != Physical::BYTE_ARRAY {
        let found = if repeated { "a nested type".to_owned() } else { format!("{:?}", schema.column(leaf).physical_type()) };
        return Err(Error::NotText { path: path.to_owned(), column: column.to_owned(), found });
    }
    Ok(leaf)
}

/// Up to `wanted` rows of a column, a null as `None`.
fn read(
    reader: &mut ColumnReaderImpl<ByteArrayType>,
    nullable: bool,
    wanted: usize,
) -> Result<Vec<Option<ByteArray>>, parquet::errors::ParquetError> {
    let (mut present, mut values) = (Vec::with_capacity(wanted), Vec::with_capacity(wanted));
    let mut met = 0;
    while met < wanted {
        let levels = if nullable { Some(&mut present) } else { None };
        let (records, _, _) = sheltered(|| reader.read_records(wanted - met, levels, None, &mut values))?;
        if records == 0 {
            break;
        }
        met += records;
    }
    if !nullable {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(present.into_iter().map(|level| if level == 0 { None } else { values.next() }).collect())
}

/// The Parquet files under a folder (or the file itself), in the order of their names.
pub fn parquet_files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = files_under(path)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "parquet"));
    if files.is_empty() {
        return Err(Error::NothingThere {
            path: path.to_owned(),
            wanted: "Parquet files",
            hint: "point the step at a folder of .parquet, or turn texts into one with the corpus step",
        });
    }
    Ok(files)
}

/// Every file under a folder, sorted by path; a file stands for itself. Names that begin with a dot are left out.
pub fn files_under(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let kind = std::fs::metadata(path).map_err(Error::io("read", path))?;
    if kind.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(Error::io("list", &folder))? {
            let entry = entry.map_err(Error::io("list", &folder))?.path();
            if entry.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
                continue;
            }
            if entry.is_dir() {
                folders.push(entry);
            } else {
                found.push(entry);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Removes the numbered Parquet files an earlier run left in an output folder: `{prefix}00017.parquet` and nothing else.
/// They would otherwise pass for part of a shorter output.
pub fn clear(folder: &Path, prefix: &str) -> Result<(), Error> {
    for entry in std::fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let path = entry.map_err(Error::io("list", folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(".parquet"));
        if number.is_some_and(|number| number.len() == 5 && number.bytes().all(|byte| byte.is_ascii_digit())) {
            std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}
