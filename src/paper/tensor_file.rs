//! Writes safetensors files one tensor at a time: whole or absent, the same bytes for the same numbers, and never more than
//! one tensor in memory twice.

use super::metrics::sync_dir;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A tensor of f32 whose numbers are asked for when it is its turn.
pub struct Entry<'a> {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Box<dyn Fn() -> Vec<f32> + 'a>,
}

/// Writes `entries` in order of their names. One note at most, because safetensors does not order its notes.
pub fn write(path: &Path, note: Option<(&str, String)>, mut entries: Vec<Entry>) -> io::Result<()> {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let mut end = 0;
    let mut info = |shape: &[usize]| {
        let start = end;
        end += 4 * shape.iter().product::<usize>();
        TensorInfo { dtype: Dtype::F32, shape: shape.to_vec(), data_offsets: (start, end) }
    };
    let infos = entries.iter().map(|e| (e.name.clone(), info(&e.shape))).collect();
    let notes = note.map(|(key, text)| HashMap::from([(key.to_owned(), text)]));
    let metadata = Metadata::new(notes, infos).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&metadata)?;
    header.resize(header.len().next_multiple_of(8), b' ');

    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = dir.join(format!(".tmp-{name}"));
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&temporary)?);
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;
    for entry in &entries {
        for value in (entry.values)() {
            out.write_all(&value.to_le_bytes())?;
        }
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&temporary, path)?;
    sync_dir(dir)
}
