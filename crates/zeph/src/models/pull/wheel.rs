//! One file out of a wheel, which is a ZIP archive (PKWARE APPNOTE 6.3, without ZIP64).

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};

/// The longest end of an archive: its record and a comment.
const MAX_END_BYTES: u64 = 22 + 0xffff;
/// The most bytes that the list of an archive's files may have.
const MAX_LIST_BYTES: u32 = 16 << 20;

/// A file of the archive, to be read once.
pub(super) fn member(archive: &Path, path: &str) -> anyhow::Result<Box<dyn Read>> {
    let mut file = File::open(archive)?;
    let found = find(&mut file, path).context("the wheel is damaged")?;
    let Some((start, length, method)) = found else {
        bail!("the wheel has no {path}");
    };
    file.seek(SeekFrom::Start(start))?;
    let stored = BufReader::with_capacity(1 << 17, file).take(length);
    match method {
        0 => Ok(Box::new(stored)),
        8 => Ok(Box::new(flate2::read::DeflateDecoder::new(stored))),
        other => bail!("{path} is compressed by a method that is not known ({other})"),
    }
}

/// Where the bytes of a file begin, how many they are, and how they are compressed.
fn find(file: &mut (impl Read + Seek), path: &str) -> anyhow::Result<Option<(u64, u64, u16)>> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail_start = length.saturating_sub(MAX_END_BYTES);
    file.seek(SeekFrom::Start(tail_start))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let end = tail
        .windows(22)
        .rposition(|window| window.starts_with(b"PK\x05\x06"))
        .context("it has no end")?;
    let end = tail.get(end..).unwrap_or_default();
    let (size, start) = (long(end, 12)?, long(end, 16)?);
    ensure!(size <= MAX_LIST_BYTES, "its list of files is too long");
    file.seek(SeekFrom::Start(u64::from(start)))?;
    let mut list = vec![0; size as usize];
    file.read_exact(&mut list)?;
    let mut rest = list.as_slice();
    while rest.starts_with(b"PK\x01\x02") {
        let (name, extra, comment) = (short(rest, 28)?, short(rest, 30)?, short(rest, 32)?);
        let name_end = 46 + usize::from(name);
        let is_it = rest.get(46..name_end) == Some(path.as_bytes());
        if is_it {
            let (method, bytes, local) = (short(rest, 10)?, long(rest, 20)?, long(rest, 42)?);
            ensure!(bytes != u32::MAX && local != u32::MAX, "it is a ZIP64");
            let mut header = [0; 30];
            file.seek(SeekFrom::Start(u64::from(local)))?;
            file.read_exact(&mut header)?;
            ensure!(header.starts_with(b"PK\x03\x04"), "a file has no header");
            let before = 30 + u64::from(short(&header, 26)?) + u64::from(short(&header, 28)?);
            return Ok(Some((u64::from(local) + before, u64::from(bytes), method)));
        }
        let next = name_end + usize::from(extra) + usize::from(comment);
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(None)
}

fn short(bytes: &[u8], at: usize) -> anyhow::Result<u16> {
    let bytes = bytes.get(at..).and_then(|it| it.first_chunk::<2>());
    Ok(u16::from_le_bytes(*bytes.context("it is cut off")?))
}

fn long(bytes: &[u8], at: usize) -> anyhow::Result<u32> {
    let bytes = bytes.get(at..).and_then(|it| it.first_chunk::<4>());
    Ok(u32::from_le_bytes(*bytes.context("it is cut off")?))
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// An archive with these files, every second one compressed.
    pub(in super::super) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut out, mut list) = (Vec::new(), Vec::new());
        for (at, (name, content)) in files.iter().enumerate() {
            let offset = out.len() as u32;
            let method: u16 = if at % 2 == 0 { 8 } else { 0 };
            let mut packed = content.to_vec();
            if method == 8 {
                let mut encoder =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(content).unwrap();
                packed = encoder.finish().unwrap();
            }
            let mut common = Vec::new();
            common.extend([20, 0, 0, 0]);
            common.extend(method.to_le_bytes());
            common.extend([0; 8]);
            common.extend((packed.len() as u32).to_le_bytes());
            common.extend((content.len() as u32).to_le_bytes());
            common.extend((name.len() as u16).to_le_bytes());
            common.extend([0, 0]);
            out.extend(b"PK\x03\x04");
            out.extend(&common);
            out.extend(name.as_bytes());
            out.extend(&packed);
            list.extend(b"PK\x01\x02\x14\x00");
            list.extend(&common);
            list.extend([0; 10]);
            list.extend(offset.to_le_bytes());
            list.extend(name.as_bytes());
        }
        let start = out.len() as u32;
        out.extend(&list);
        out.extend(b"PK\x05\x06\0\0\0\0");
        out.extend([(files.len() as u16).to_le_bytes(); 2].concat());
        out.extend((list.len() as u32).to_le_bytes());
        out.extend(start.to_le_bytes());
        out.extend([0, 0]);
        out
    }

    fn read(archive: &[u8], path: &str) -> anyhow::Result<Vec<u8>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), archive).unwrap();
        let mut bytes = Vec::new();
        member(file.path(), path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn files_are_found_by_their_whole_path() {
        let long = vec![7; 100_000];
        let archive = archive(&[("a/x", b"first"), ("x", &long), ("b/x", &long)]);
        assert_eq!(read(&archive, "a/x").unwrap(), b"first");
        assert_eq!(read(&archive, "x").unwrap(), long);
        assert_eq!(read(&archive, "b/x").unwrap(), long);
        let error = read(&archive, "c/x").unwrap_err().to_string();
        assert!(error.contains("has no c/x"), "{error}");
        assert!(read(b"no archive", "x").is_err());
    }

    proptest! {
        #[test]
        fn damage_is_an_error_or_other_bytes(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let mut archive = archive(&[("a", b"some text"), ("b", b"more"), ("c", &[1; 100])]);
            if let Some(place) = archive.get_mut(at) {
                *place = byte;
            }
            archive.truncate(archive.len().saturating_sub(cut));
            for name in ["a", "b", "c"] {
                let _ = read(&archive, name);
            }
        }
    }
}
