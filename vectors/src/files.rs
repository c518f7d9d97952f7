//! Expected and existing files.

use crate::families;
use crate::{capture, json};
use std::collections::BTreeMap;
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
    for family in families::all() {
        for vector in &family.vectors {
            let path = PathBuf::from(format!("{}.json", vector.name()));
            let before = files.insert(path, json(vector).into_bytes());
            assert!(before.is_none(), "two vectors have the name {}", vector.name());
        }
        files.insert(PathBuf::from(format!("pcap/{}.pcapng", family.name)), capture::of(&family));
    }
    files
}

/// Reads the existing generated files: all vectors and captures in directories below the root, except those of the
/// generator.
pub fn found(root: &Path) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let by_hand = ["src", "tests"].iter().any(|name| entry.file_name() == *name);
        if entry.file_type()?.is_dir() && !by_hand {
            read(root, &entry.path(), &mut files)?;
        }
    }
    Ok(files)
}

fn read(root: &Path, directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            read(root, &path, files)?;
        } else if path.extension().is_some_and(|kind| kind == "json" || kind == "pcapng") {
            let below = path.strip_prefix(root).unwrap_or(&path).to_owned();
            files.insert(below, fs::read(&path)?);
        }
    }
    Ok(())
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
        let target = root.join(path);
        if let Some(directory) = target.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(target, &wanted[path])?;
    }
    for path in &difference.stale {
        fs::remove_file(root.join(path))?;
        // A directory is removed with its last file; a directory with other files stays.
        if let Some(directory) = root.join(path).parent() {
            let _ = fs::remove_dir(directory);
        }
    }
    Ok(difference)
}
