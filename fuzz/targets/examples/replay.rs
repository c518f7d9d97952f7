//! Runs a target over files and directories: `cargo run -p uet-fuzz --example replay TARGET PATH...`. Coverage is
//! measured with this program.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let target = uet_fuzz::target(&name).ok_or_else(|| io::Error::other(format!("no target {name:?}")))?;
    for path in arguments.map(PathBuf::from) {
        visit(&path, &mut |data| (target.run)(data))?;
    }
    Ok(())
}

fn visit(path: &Path, run: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            visit(&entry?.path(), run)?;
        }
    } else {
        run(&fs::read(path)?);
    }
    Ok(())
}
