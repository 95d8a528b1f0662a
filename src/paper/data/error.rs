//! What can go wrong on the way from text to batches, and what to do about it.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} `{}`", path.display())]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },

    #[error("`{}`: not a readable Parquet file; it may be cut short: fetch or write it again", path.display())]
    NotParquet { path: PathBuf, source: parquet::errors::ParquetError },

    #[error("`{}`, row group {row_group}: cannot decode column `{column}`; fetch or write the file again", path.display())]
    RowGroup { path: PathBuf, row_group: usize, column: String, source: parquet::errors::ParquetError },

    #[error("`{}`: no column `{column}`; its columns are {}", path.display(), list(found))]
    NoColumn { path: PathBuf, column: String, found: Vec<String> },

    #[error("`{}`: column `{column}` holds {found}, not text", path.display())]
    NotText { path: PathBuf, column: String, found: String },

    #[error("cannot write Parquet `{}`", path.display())]
    WriteParquet { path: PathBuf, source: parquet::errors::ParquetError },

    #[error("`{field}` is {value}, but must be {must}")]
    OutOfRange { field: &'static str, value: String, must: &'static str },

    #[error("`{field}` is needed when `{because}`; {instead}")]
    Missing { field: &'static str, because: &'static str, instead: &'static str },

    #[error("`{}` holds no {wanted}; {hint}", path.display())]
    NothingThere { path: PathBuf, wanted: &'static str, hint: &'static str },

    #[error("`{}`, line {line}: {what}", path.display())]
    BadLine { path: PathBuf, line: usize, what: String },

    #[error("`{}`: {what}", path.display())]
    BadTokenizer { path: PathBuf, what: String },

    #[error("the tokenizer cannot encode document `{document}`: {what}")]
    Encode { document: String, what: String },

    #[error("`{}`: {what}; it is not a token shard of this tool: make it with the tokenize step", path.display())]
    BadShard { path: PathBuf, what: String },

    #[error("all {documents} documents were rejected ({why}); check the text column")]
    NothingLeft { documents: u64, why: String },

    #[error("`{address}`: {what}")]
    BadAddress { address: String, what: String },

    #[error("`{url}`: the server answered {status}{hint}")]
    Status { url: String, status: u16, hint: &'static str },

    #[error(
        "`{url}`: gave up after {attempts} tries in a row without progress, the last because {what}; run it again to continue"
    )]
    GaveUp { url: String, attempts: u32, what: String },

    #[error("a worker thread of {step} stopped without a result; the messages above say why")]
    WorkerDied { step: &'static str },
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".into();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Error {
    /// Whether the user gave something that cannot work, as against something that failed on the way.
    pub fn is_wrong_input(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == std::io::ErrorKind::NotFound,
            Self::WriteParquet { .. }
            | Self::RowGroup { .. }
            | Self::Encode { .. }
            | Self::WorkerDied { .. }
            | Self::GaveUp { .. } => false,
            _ => true,
        }
    }

    /// For `map_err` on file operations: `.map_err(Error::io("read", path))`.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}
