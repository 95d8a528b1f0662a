//! Content digests of files and trees. Reads bytes; remembers nothing (that is the index' work).

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A blake3 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
    /// Enough of it for people.
    pub fn short(&self) -> String {
        self.hex()[..12].to_string()
    }
    pub fn parse(text: &str) -> Option<Digest> {
        blake3::Hash::from_hex(text).ok().map(|hash| Digest(*hash.as_bytes()))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        Digest::parse(text).ok_or_else(|| serde::de::Error::custom("not a digest"))
    }
}

/// The digest of a file's bytes.
pub fn of_file(path: &Path) -> io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let size = file.metadata()?.len();
    let mut buffer = vec![0; size.clamp(4096, 256 * 1024) as usize];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Digest(*hasher.finalize().as_bytes())),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
    }
}

/// A file below a directory: its path relative to it, with `/`.
pub struct Entry {
    pub relative: String,
    pub path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    #[error("`{}` cannot be read", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` has a name that is not UTF-8; rename it", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("`{}` is a link to a directory; name the directory itself", path.display())]
    LinkedDirectory { path: PathBuf },
    #[error("`{}` is a symbolic link; write the file itself", path.display())]
    Link { path: PathBuf },
    #[error("`{}` is neither a file nor a directory", path.display())]
    Special { path: PathBuf },
}

/// All files below a directory, sorted by relative path. `follow` allows links to files.
pub fn walk(root: &Path, follow: bool) -> Result<Vec<Entry>, WalkError> {
    let mut found = Vec::new();
    let mut waiting = vec![(root.to_path_buf(), String::new())];
    while let Some((folder, prefix)) = waiting.pop() {
        let fail = |source| WalkError::Io { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let path = entry.path();
            let name = entry.file_name().into_string().map_err(|_| WalkError::NotUtf8 { path: path.clone() })?;
            let relative = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            let kind = entry.file_type().map_err(|source| WalkError::Io { path: path.clone(), source })?;
            if kind.is_dir() {
                waiting.push((path, relative));
            } else if kind.is_file() {
                found.push(Entry { relative, path });
            } else if kind.is_symlink() {
                if !follow {
                    return Err(WalkError::Link { path });
                }
                let target = fs::metadata(&path).map_err(|source| WalkError::Io { path: path.clone(), source })?;
                if target.is_dir() {
                    return Err(WalkError::LinkedDirectory { path });
                }
                found.push(Entry { relative, path });
            } else {
                return Err(WalkError::Special { path });
            }
        }
    }
    found.sort_by(|left, right| left.relative.cmp(&right.relative));
    Ok(found)
}

/// The digest of a tree: names, contents and executable bits of its files.
pub fn of_tree<'a>(files: impl Iterator<Item = (&'a str, Digest, bool)>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for (relative, digest, executable) in files {
        hasher.update(&(relative.len() as u64).to_le_bytes()).update(relative.as_bytes());
        hasher.update(&digest.0).update(&[u8::from(executable)]);
    }
    Digest(*hasher.finalize().as_bytes())
}
