//! What a record says: enough to put back what was, and to recognize what stands there now.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Mode and owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Permission bits with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// What a file's content is recognized by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Bytes.
    pub len: u64,
    /// SHA-256 in lower-case hex; `None` where there was too much to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The time of the last change in seconds and nanoseconds; stands in for the digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<(i64, i64)>,
}

impl Fingerprint {
    /// Whether both are of one content, as far as they tell.
    #[must_use]
    pub fn is_of(&self, other: &Self) -> bool {
        self.len == other.len
            && match (&self.digest, &other.digest) {
                (Some(digest), Some(other)) => digest == other,
                _ => self.modified.is_some() && self.modified == other.modified,
            }
    }
}

/// What stands at a path, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// Nothing.
    Absent,
    /// A directory, whatever is in it.
    Directory,
    /// A file of this content.
    File(Fingerprint),
    /// A link with this text.
    Link(#[serde(with = "raw_path")] PathBuf),
}

/// What stood at a path, as far as it can be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileBackup {
    /// Nothing.
    Absent,
    /// A directory.
    Directory(Attributes),
    /// A file.
    File {
        /// Where its content begins in [`Change::images`]; it has the fingerprint's length.
        at: usize,
        /// Its content, to recognize it.
        fingerprint: Fingerprint,
        /// Mode and owner.
        attributes: Attributes,
    },
    /// A link with this text.
    Link(#[serde(with = "raw_path")] PathBuf),
}

impl FileBackup {
    /// What is compared of it.
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

/// An entry of a tree that was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// Below the top of the tree; empty for the top itself.
    #[serde(with = "raw_path")]
    pub path: PathBuf,
    /// What stands there.
    pub standing: FileState,
}

/// One step of a change. All paths are canonical and absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A directory is made on the way to something else.
    Parent {
        /// The directory.
        #[serde(with = "raw_path")]
        path: PathBuf,
    },
    /// What stands at a path is replaced.
    Put {
        /// The path.
        #[serde(with = "raw_path")]
        path: PathBuf,
        /// What stood there.
        before: FileBackup,
        /// What stands there then.
        after: FileState,
    },
    /// A tree gets another name.
    Move {
        /// Its old path.
        #[serde(with = "raw_path")]
        from: PathBuf,
        /// Its new path.
        #[serde(with = "raw_path")]
        to: PathBuf,
        /// The tree, directories before what is in them.
        tree: Vec<TreeEntry>,
    },
}

impl Step {
    /// What it changes; of a move, what the tree is called then.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Parent { path } | Self::Put { path, .. } => path,
            Self::Move { to, .. } => to,
        }
    }
}

/// What one call changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Change {
    /// In the order in which they are made.
    pub steps: Vec<Step>,
    /// The contents of files, one after the other.
    #[serde(skip)]
    pub images: Vec<u8>,
}

impl Change {
    /// What it counts against the bound of a journal: the bytes of contents, and the names in
    /// trees.
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

    /// The content that an image names; `None` where the record is damaged.
    #[must_use]
    pub fn content(&self, at: usize, fingerprint: &Fingerprint) -> Option<&[u8]> {
        let len = usize::try_from(fingerprint.len).ok()?;
        self.images.get(at..at.checked_add(len)?)
    }
}

/// Paths as text where they are UTF-8, as bytes where they are not.
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
    fn any_path_survives_the_record() {
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
    fn contents_are_told_apart() {
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
        // Without a digest on both sides only a time can tell.
        check(&digest, &of(1, None, Some((1, 2))), false);
        let stamp = of(1, None, Some((1, 2)));
        check(&stamp, &of(1, None, Some((1, 2))), true);
        check(&stamp, &of(1, None, Some((1, 3))), false);
        check(&of(1, None, None), &of(1, None, None), false);
    }
}
