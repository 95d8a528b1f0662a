//! The files a run leaves behind, one JSON object per line. `metrics.jsonl` and `probes.jsonl` hold nothing that depends on
//! time or machine: the same run writes the same bytes. Speed goes to `timing.jsonl`.

use super::tensorboard::EventWriter;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub const CHECKPOINT: &str = "checkpoint.safetensors";
pub const RESULT: &str = "result.json";
pub const METRICS: &str = "metrics.jsonl";
pub const PROBES: &str = "probes.jsonl";
const TIMING: &str = "timing.jsonl";

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("cannot write `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("`{dir}` already holds a run; pass `--resume` to continue it, or choose another folder")]
    Occupied { dir: PathBuf },
    #[error("`{path}` is shorter than its checkpoint says; the run cannot be continued")]
    Shorter { path: PathBuf },
}

/// One step, as written to `metrics.jsonl`. A loss that is not a number is written as null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepMetrics {
    /// Steps done, this one included.
    pub step: u64,
    pub loss: f64,
    /// Base learning rate times the schedule.
    pub lr: f64,
    /// Before clipping.
    pub grad_norm: f64,
    pub tokens_seen: u64,
}

/// How long the files were when a checkpoint was made, so that a resumed run continues them where it continues itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    pub metrics: u64,
    pub probes: u64,
}

struct Lines {
    path: PathBuf,
    out: BufWriter<File>,
    length: u64,
}

impl Lines {
    fn open(path: PathBuf, keep: Option<u64>) -> Result<Self, FilesError> {
        let cause = |path: &Path| {
            let path = path.to_owned();
            move |cause| FilesError::Write { path, cause }
        };
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(cause(&path))?;
        let mut length = file.metadata().map_err(cause(&path))?.len();
        if let Some(keep) = keep {
            if length < keep {
                return Err(FilesError::Shorter { path });
            }
            file.set_len(keep).map_err(cause(&path))?;
            length = keep;
        }
        Ok(Self { path, out: BufWriter::new(file), length })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), FilesError> {
        let mut bytes = serde_json::to_vec(line).expect("metrics are plain numbers and names");
        bytes.push(b'\n');
        self.length += bytes.len() as u64;
        self.out.write_all(&bytes).map_err(|cause| FilesError::Write { path: self.path.clone(), cause })
    }

    /// After this the lines survive the process.
    fn sync(&mut self) -> Result<(), FilesError> {
        let cause = |cause| FilesError::Write { path: self.path.clone(), cause };
        self.out.flush().map_err(cause)?;
        self.out.get_ref().sync_data().map_err(cause)
    }
}

pub struct RunFiles {
    pub dir: PathBuf,
    metrics: Lines,
    probes: Option<Lines>,
    timing: Lines,
    events: Option<EventWriter>,
}

/// Whether a folder holds what a run writes.
pub fn occupied(dir: &Path) -> bool {
    [CHECKPOINT, METRICS, RESULT].iter().any(|name| dir.join(name).exists())
}

impl RunFiles {
    /// Opens the files of a run that begins, or continues after a checkpoint which saw them this long.
    pub fn open(dir: &Path, keep: Lengths, probes: bool, tensorboard: bool) -> Result<Self, FilesError> {
        let write = |path: &Path| {
            let path = path.to_owned();
            move |cause| FilesError::Write { path, cause }
        };
        fs::create_dir_all(dir).map_err(write(dir))?;
        // A killed process may leave a half-written checkpoint under a temporary name.
        for entry in fs::read_dir(dir).map_err(write(dir))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(".tmp") {
                fs::remove_file(entry.path()).map_err(write(&entry.path()))?;
            }
        }
        let events = if tensorboard { Some(EventWriter::create(&dir.join("tensorboard")).map_err(write(dir))?) } else { None };
        Ok(Self {
            dir: dir.to_owned(),
            metrics: Lines::open(dir.join(METRICS), Some(keep.metrics))?,
            probes: if probes { Some(Lines::open(dir.join(PROBES), Some(keep.probes))?) } else { None },
            timing: Lines::open(dir.join(TIMING), None)?,
            events,
        })
    }

    pub fn step(&mut self, metrics: &StepMetrics) -> Result<(), FilesError> {
        self.scalars(metrics.step, &[("loss", metrics.loss), ("lr", metrics.lr), ("grad_norm", metrics.grad_norm)])?;
        self.metrics.write(metrics)
    }

    pub fn eval(&mut self, step: u64, eval_loss: f64) -> Result<(), FilesError> {
        #[derive(Serialize)]
        struct Line {
            step: u64,
            eval_loss: f64,
        }
        self.scalars(step, &[("eval_loss", eval_loss)])?;
        self.metrics.write(&Line { step, eval_loss })
    }

    pub fn probe(&mut self, line: &impl Serialize) -> Result<(), FilesError> {
        self.probes.as_mut().map_or(Ok(()), |lines| lines.write(line))
    }

    pub fn timing(&mut self, step: u64, seconds: f64, tokens: u64) -> Result<(), FilesError> {
        #[derive(Serialize)]
        struct Line {
            step: u64,
            seconds: f64,
            tokens_per_second: f64,
        }
        self.timing.write(&Line { step, seconds, tokens_per_second: tokens as f64 / seconds })
    }

    fn scalars(&mut self, step: u64, values: &[(&str, f64)]) -> Result<(), FilesError> {
        let Some(events) = &mut self.events else {
            return Ok(());
        };
        for &(name, value) in values {
            let write = events.scalar(step, name, value as f32);
            write.map_err(|cause| FilesError::Write { path: self.dir.join("tensorboard"), cause })?;
        }
        Ok(())
    }

    /// Makes everything written so far durable and says how long it is.
    pub fn sync(&mut self) -> Result<Lengths, FilesError> {
        self.metrics.sync()?;
        self.timing.sync()?;
        if let Some(probes) = &mut self.probes {
            probes.sync()?;
        }
        if let Some(events) = &mut self.events {
            events.flush().map_err(|cause| FilesError::Write { path: self.dir.join("tensorboard"), cause })?;
        }
        Ok(Lengths { metrics: self.metrics.length, probes: self.probes.as_ref().map_or(0, |p| p.length) })
    }
}

/// Writes a whole file under a temporary name and moves it into place.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), FilesError> {
    let cause = |cause| FilesError::Write { path: path.to_owned(), cause };
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = dir.join(format!(".tmp-{name}"));
    let mut out = File::create(&temporary).map_err(cause)?;
    out.write_all(bytes).map_err(cause)?;
    out.sync_all().map_err(cause)?;
    fs::rename(&temporary, path).map_err(cause)?;
    sync_dir(dir).map_err(cause)
}

/// Makes a rename inside `dir` durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
