//! The committed corpora.

use crate::Input;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{error::Error, fs};
use uet_packet_io::hex::Hex;
use uet_wire::Start;
use uet_wire::outer::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};

/// One input of a target.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Name of the file: a hash, or a description of the defect for a regression.
    pub name: String,
    /// Bytes for [`Target::run`](crate::Target::run).
    pub data: Vec<u8>,
}

/// Returns the folder `corpora/` of this repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpora")
}

/// Reads the seeds of a target from `corpora/TARGET_seed_corpus.zip`, in the order of the file.
pub fn seeds(target: &str) -> Result<Vec<Seed>, Box<dyn Error>> {
    let path = root().join(format!("{target}_seed_corpus.zip"));
    read_zip(&path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn read_zip(path: &Path) -> Result<Vec<Seed>, Box<dyn Error>> {
    let mut archive = zip::ZipArchive::new(io::BufReader::new(fs::File::open(path)?))?;
    let mut seeds = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let mut file = archive.by_index(index)?;
        let mut data = Vec::new();
        file.read_to_end(&mut data)?;
        seeds.push(Seed { name: file.name().to_owned(), data });
    }
    Ok(seeds)
}

/// Reads the regressions of a target, which are plain files in `corpora/TARGET/regressions`.
pub fn regressions(target: &str) -> io::Result<Vec<Seed>> {
    let directory = root().join(target).join("regressions");
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut seeds = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        seeds.push(Seed { name, data: fs::read(entry.path())? });
    }
    Ok(seeds)
}

/// Formats the packets among some seeds as `uet corpus export` keeps them: one line each, with the first layer and
/// the bytes in hexadecimal.
pub fn packets(seeds: &[Seed]) -> String {
    let mut lines = Vec::new();
    for seed in seeds {
        let start = Input::split(&seed.data).map(|input| (input.start, input.bytes));
        let (start, bytes) = match start {
            Some((Start::Eth, bytes)) => ("eth", bytes),
            Some((Start::Ip | Start::EtherType(ETHERTYPE_IPV4 | ETHERTYPE_IPV6), bytes)) => ("ip", bytes),
            Some((Start::Udp, bytes)) => ("udp", bytes),
            Some((Start::Uet, bytes)) => ("uet", bytes),
            _ => continue,
        };
        if !bytes.is_empty() {
            lines.push(format!("{start} {}\n", Hex(bytes)));
        }
    }
    lines.sort();
    lines.dedup();
    lines.concat()
}
