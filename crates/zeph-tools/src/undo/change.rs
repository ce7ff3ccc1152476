//! The record of a change: the data to restore the previous state and to recognize the current one.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The mode and the owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Permission bits with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// The fingerprint of the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The size in bytes.
    pub len: u64,
    /// The SHA-256 in lower-case hex; `None` if the file was too large to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The modification time in seconds and nanoseconds; used if the digest is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<(i64, i64)>,
}

impl Fingerprint {
    /// Whether both fingerprints are of the same content, according to the available data.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        self.len == other.len
            && match (&self.digest, &other.digest) {
                (Some(digest), Some(other)) => digest == other,
                _ => self.modified.is_some() && self.modified == other.modified,
            }
    }
}

/// The state of a path, for comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// The path does not exist.
    Absent,
    /// A directory with any contents.
    Directory,
    /// A file with this content.
    File(Fingerprint),
    /// A link with this target text.
    Link(#[serde(with = "raw_path")] PathBuf),
}

/// The previous state of a path, for restoration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileBackup {
    /// The path did not exist.
    Absent,
    /// A directory.
    Directory(Attributes),
    /// A file.
    File {
        /// The start of its content in [`Change::images`]; the length is in the fingerprint.
        at: usize,
        /// The fingerprint of its content.
        fingerprint: Fingerprint,
        /// The mode and the owner.
        attributes: Attributes,
    },
    /// A link with this target text.
    Link(#[serde(with = "raw_path")] PathBuf),
}

impl FileBackup {
    /// Returns the state for comparison.
    #[must_use]
    pub fn standing(&self) -> FileState {
        match self {
            Self::Absent => FileState::Absent,
            Self::Directory(_) => FileState::Directory,
            Self::File { fingerprint, .. } => FileState::File(fingerprint.clone()),
            Self::Link(target) => FileState::Link(target.clone()),
        }
    }
}

/// An entry of a moved tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// The path relative to the root of the tree; empty for the root itself.
    #[serde(with = "raw_path")]
    pub path: PathBuf,
    /// The state of the entry.
    pub standing: FileState,
}

/// A step of a change. All paths are canonical and absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The creation of a parent directory.
    Parent {
        /// The directory.
        #[serde(with = "raw_path")]
        path: PathBuf,
    },
    /// The replacement of the state of a path.
    Put {
        /// The path.
        #[serde(with = "raw_path")]
        path: PathBuf,
        /// The previous state.
        before: FileBackup,
        /// The new state.
        after: FileState,
    },
    /// The move of a tree to another path.
    Move {
        /// Its old path.
        #[serde(with = "raw_path")]
        from: PathBuf,
        /// Its new path.
        #[serde(with = "raw_path")]
        to: PathBuf,
        /// The tree, with directories before their contents.
        tree: Vec<TreeEntry>,
    },
}

impl Step {
    /// Returns the changed path; for a move, the new path of the tree.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Parent { path } | Self::Put { path, .. } => path,
            Self::Move { to, .. } => to,
        }
    }
}

/// The changes of one call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Change {
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// The contents of files, concatenated.
    #[serde(skip)]
    pub images: Vec<u8>,
}

impl Change {
    /// Returns the size that counts for the limit of a journal: the bytes of contents and of the names in trees.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let names: usize = self
            .steps
            .iter()
            .skip(1)
            .map(|step| step.path().as_os_str().len())
            .chain(self.steps.iter().flat_map(|step| {
                match step {
                    Step::Move { tree, .. } => tree.as_slice(),
                    Step::Parent { .. } | Step::Put { .. } => &[],
                }
                .iter()
                .map(|listed| listed.path.as_os_str().len())
            }))
            .sum();
        (names + self.images.len()) as u64
    }

    /// Returns the content of a file; `None` if the record is damaged.
    #[must_use]
    pub fn content(&self, at: usize, fingerprint: &Fingerprint) -> Option<&[u8]> {
        let len = usize::try_from(fingerprint.len).ok()?;
        self.images.get(at..at.checked_add(len)?)
    }
}

/// Serialization of paths: as text if they are UTF-8, else as bytes.
mod raw_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Raw<'a> {
        Text(std::borrow::Cow<'a, str>),
        Bytes(std::borrow::Cow<'a, [u8]>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => Raw::Text(text.into()),
            None => Raw::Bytes(path.as_os_str().as_bytes().into()),
        }
        .serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Raw::deserialize(from)? {
            Raw::Text(text) => PathBuf::from(text.into_owned()),
            Raw::Bytes(bytes) => OsString::from_vec(bytes.into_owned()).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn any_path_is_restored_from_its_record() {
        for bytes in [
            b"/a/b".to_vec(),
            b"/a/\xff\xfe".to_vec(),
            b"/a\n\"".to_vec(),
        ] {
            let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
            let change = Change {
                steps: vec![Step::Put {
                    path: path.clone(),
                    before: FileBackup::Link(path),
                    after: FileState::Absent,
                }],
                images: Vec::new(),
            };
            let text = serde_json::to_string(&change).expect("JSON");
            let read: Change = serde_json::from_str(&text).expect("a change");
            assert_eq!(read, change, "{text}");
        }
    }

    #[test]
    fn fingerprints_are_compared() {
        let of = |len, digest: Option<&str>, modified| Fingerprint {
            len,
            digest: digest.map(str::to_owned),
            modified,
        };
        let check = |a: &Fingerprint, b: &Fingerprint, expect| {
            assert_eq!(a.is_of(b), expect, "{a:?} {b:?}");
            assert_eq!(b.is_of(a), expect, "{b:?} {a:?}");
        };
        let digest = of(1, Some("aa"), None);
        check(&digest, &of(1, Some("aa"), Some((1, 2))), true);
        check(&digest, &of(1, Some("ab"), None), false);
        check(&digest, &of(2, Some("aa"), None), false);
        // Without digests on both sides, only the time can distinguish them.
        check(&digest, &of(1, None, Some((1, 2))), false);
        let stamp = of(1, None, Some((1, 2)));
        check(&stamp, &of(1, None, Some((1, 2))), true);
        check(&stamp, &of(1, None, Some((1, 3))), false);
        check(&of(1, None, None), &of(1, None, None), false);
    }
}
