//! A compressed tar archive whose bytes depend on names, modes and contents alone.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// Writes `folder` as the folder `name` of the archive `to`. All entries belong to user 0 and have the time `epoch`.
///
/// # Errors
/// A file cannot be read, or the archive cannot be written.
pub(super) fn write(
    folder: &Path,
    name: &str,
    epoch: u64,
    compression: Compression,
    to: &Path,
) -> Result<()> {
    let file = File::create(to).with_context(|| to.display().to_string())?;
    // The header of gzip has neither a time nor a name nor a system.
    let zip = GzBuilder::new()
        .operating_system(255)
        .write(file, compression);
    let mut tar = Builder::new(zip);
    for path in entries(folder)? {
        let below = path.strip_prefix(folder)?;
        let mut header = Header::new_gnu();
        header.set_mtime(epoch);
        header.set_uid(0);
        header.set_gid(0);
        let inside = Path::new(name).join(below);
        if path.is_dir() {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            tar.append_data(&mut header, inside, std::io::empty())?;
        } else {
            let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
            header.set_entry_type(EntryType::Regular);
            header.set_mode(if below == Path::new("zeph") {
                0o755
            } else {
                0o644
            });
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, inside, bytes.as_slice())?;
        }
    }
    tar.into_inner()?.finish()?;
    Ok(())
}

/// The folder and everything below it, sorted by path.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![folder.to_path_buf()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                found.push(entry?.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PKG-4: the archive has the same bytes for any times and any order of the files.
    #[test]
    fn archive_of_equal_files_has_equal_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let written = |names: &[&str], out: &str| {
            let folder = dir.path().join(format!("{out}.d"));
            std::fs::create_dir_all(folder.join("man")).unwrap();
            for name in names {
                std::fs::write(folder.join(name), format!("content of {name}")).unwrap();
            }
            let to = dir.path().join(out);
            write(&folder, "zeph-1", 1_000_000, Compression::best(), &to).unwrap();
            std::fs::read(to).unwrap()
        };
        let first = written(&["zeph", "README.md", "man/zeph.1"], "a");
        let second = written(&["man/zeph.1", "README.md", "zeph"], "b");
        assert!(first == second);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(first.as_slice()));
        let found: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(header.mtime().unwrap(), 1_000_000);
                let path = entry.path().unwrap().display().to_string();
                (path, header.mode().unwrap())
            })
            .collect();
        let expect = [
            ("zeph-1/", 0o755),
            ("zeph-1/README.md", 0o644),
            ("zeph-1/man", 0o755),
            ("zeph-1/man/zeph.1", 0o644),
            ("zeph-1/zeph", 0o755),
        ];
        assert_eq!(found, expect.map(|(path, mode)| (path.to_owned(), mode)));
    }
}
