//! Expected and existing files.

use crate::families;
use crate::{capture, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the directory of the vectors.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the expected contents of every generated file, by path below the root.
pub fn wanted() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut names = BTreeSet::new();
    for family in families::all() {
        let mut lines = String::new();
        for vector in &family.vectors {
            assert!(names.insert(vector.name().to_owned()), "two vectors have the name {}", vector.name());
            lines += &json(vector);
            lines.push('\n');
        }
        files.insert(PathBuf::from(format!("{}.jsonl", family.name)), lines.into_bytes());
        files.insert(PathBuf::from(format!("pcap/{}.pcapng", family.name)), capture::of(&family));
    }
    files
}

/// Reads the existing generated files: the vectors in the root, and the captures in `pcap`.
pub fn found(root: &Path) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for (folder, kind) in [("", "jsonl"), ("pcap", "pcapng")] {
        for entry in fs::read_dir(root.join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == kind) {
                files.insert(path.strip_prefix(root).unwrap_or(&path).to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(files)
}

/// Differences between existing and expected files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Missing files.
    pub missing: Vec<PathBuf>,
    /// Files with other contents.
    pub changed: Vec<PathBuf>,
    /// Files that no case generates.
    pub stale: Vec<PathBuf>,
}

impl Difference {
    /// Returns whether there is no difference.
    pub fn is_none(&self) -> bool {
        *self == Difference::default()
    }
}

/// Compares existing with expected files.
pub fn difference(found: &BTreeMap<PathBuf, Vec<u8>>, wanted: &BTreeMap<PathBuf, Vec<u8>>) -> Difference {
    let mut difference = Difference::default();
    for (path, bytes) in wanted {
        match found.get(path) {
            None => difference.missing.push(path.clone()),
            Some(old) if old != bytes => difference.changed.push(path.clone()),
            Some(_) => {}
        }
    }
    difference.stale.extend(found.keys().filter(|path| !wanted.contains_key(*path)).cloned());
    difference
}

/// Writes the expected files. Leaves correct files untouched.
pub fn write(root: &Path) -> io::Result<Difference> {
    let wanted = wanted();
    let difference = difference(&found(root)?, &wanted);
    for path in difference.missing.iter().chain(&difference.changed) {
        fs::write(root.join(path), &wanted[path])?;
    }
    for path in &difference.stale {
        fs::remove_file(root.join(path))?;
    }
    Ok(difference)
}
