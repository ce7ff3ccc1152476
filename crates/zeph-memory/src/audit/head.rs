//! Heads of chains: the last entry of each chain, stored separately from the entries.
//!
//! The directory `zeph.db-audit` next to the database `zeph.db` has one small file for the chain in the database and
//! one for each JSONL file. Its only line has the version, the name of the chain, the number and the hash of its last
//! entry, and the length of the JSONL file after it.
//!
//! The line has a constant length and is overwritten in place, after the entry is durable. A process that dies
//! between the two leaves a head that is older than its chain, never newer.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zeph_tools::audit::Link;
use zeph_tools::audit::chain::{hex_digest, is_hash};

use crate::store::Store;

/// The prefix of every head: the version of its format.
const VERSION: &str = "1 ";
/// Bytes of a head with its line break.
const LENGTH: usize = 2 + 64 + 1 + 20 + 1 + 64 + 1 + 20 + 1;

/// The last recorded position of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The name of the chain, which precedes its first entry.
    pub chain: String,
    /// Its last entry.
    pub last: Link,
    /// The length of the JSONL file with that entry, in bytes; 0 for a database.
    pub bytes: u64,
}

impl Head {
    fn line(&self) -> String {
        let Self { chain, last, bytes } = self;
        format!(
            "{VERSION}{chain} {:020} {} {bytes:020}\n",
            last.seq, last.hash
        )
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?;
        let mut parts = text.strip_prefix(VERSION)?.strip_suffix('\n')?.split(' ');
        let chain = parts.next().filter(|name| is_hash(name))?.to_owned();
        let seq = parts.next()?.parse().ok()?;
        let hash = parts.next().filter(|hash| is_hash(hash))?.to_owned();
        let bytes = parts.next()?.parse().ok()?;
        let head = Self {
            chain,
            last: Link { seq, hash },
            bytes,
        };
        (head.line().as_bytes() == line).then_some(head)
    }
}

/// The directory of the heads.
#[derive(Debug, Clone)]
pub struct Heads {
    folder: PathBuf,
}

impl Heads {
    /// The heads next to `database`.
    #[must_use]
    pub fn beside(database: &Path) -> Self {
        let mut folder = database.as_os_str().to_owned();
        folder.push("-audit");
        Self {
            folder: folder.into(),
        }
    }

    /// The head of the chain in the database.
    #[must_use]
    pub fn of_database(&self) -> HeadFile {
        HeadFile {
            path: self.folder.join("database.head"),
        }
    }

    /// The head of the chain of this machine on a server, by the name of the server.
    #[must_use]
    pub fn of_server(&self, name: &str) -> HeadFile {
        let digest = hex_digest(name.as_bytes());
        HeadFile {
            path: self.folder.join(format!("server-{}.head", &digest[..16])),
        }
    }

    /// The head of the chain in the JSONL file at `path`.
    #[must_use]
    pub fn of_file(&self, path: &Path) -> HeadFile {
        let digest = hex_digest(path.as_os_str().as_encoded_bytes());
        HeadFile {
            path: self.folder.join(format!("file-{}.head", &digest[..16])),
        }
    }

    /// The head of the chain of this name, regardless of its storage: a copy has the same name.
    #[must_use]
    pub fn of_chain(&self, name: &str) -> Option<Head> {
        let files = fs::read_dir(&self.folder).ok()?;
        files
            .flatten()
            .filter_map(|file| HeadFile { path: file.path() }.read().ok()?)
            .find(|head| head.chain == name)
    }
}

impl Store {
    /// The head of the chain that this machine writes to the store.
    #[must_use]
    pub fn audit_head(&self) -> HeadFile {
        let heads = Heads::beside(self.path());
        match self.is_shared() {
            true => heads.of_server(&self.name()),
            false => heads.of_database(),
        }
    }
}

/// The file of one head.
#[derive(Debug, Clone)]
pub struct HeadFile {
    path: PathBuf,
}

impl HeadFile {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The head; `None` if the file does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid.
    pub fn read(&self) -> io::Result<Option<Head>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match options.custom_flags(flags()).open(&self.path) {
            Ok(file) => read(&regular(file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens it for [`OpenHead::note`], and creates it and its directory if necessary.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn open(&self) -> io::Result<OpenHead> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        options.mode(0o600).custom_flags(flags());
        let file = match options.open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = self.path.parent().unwrap_or(Path::new("/"));
                fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(folder)?;
                options.open(&self.path)?
            }
            opened => opened?,
        };
        Ok(OpenHead {
            file: regular(file)?,
        })
    }
}

/// An open file of a head.
#[derive(Debug)]
pub(super) struct OpenHead {
    file: File,
}

impl OpenHead {
    /// The content; `None` for a new or damaged file.
    pub(super) fn read(&self) -> Option<Head> {
        read(&self.file).ok().flatten()
    }

    /// The head of a chain that begins now, or the one that another process wrote meanwhile.
    pub(super) fn begin(&self) -> io::Result<Head> {
        self.file.lock()?;
        let name = new_name();
        let head = self.read().map_or_else(
            || {
                let head = Head {
                    chain: name.clone(),
                    last: Link { seq: 0, hash: name },
                    bytes: 0,
                };
                self.file
                    .write_all_at(head.line().as_bytes(), 0)
                    .map(|()| head)
            },
            Ok,
        );
        self.file.unlock()?;
        head
    }

    /// Writes `head`, unless another process was faster and is further.
    pub(super) fn note(&self, head: &Head) -> io::Result<()> {
        self.file.lock()?;
        let further = self
            .read()
            .is_some_and(|there| there.last.seq > head.last.seq);
        let written = if further {
            Ok(())
        } else {
            self.file.write_all_at(head.line().as_bytes(), 0)
        };
        self.file.unlock()?;
        written
    }
}

/// Opening a FIFO does not wait for its other end.
fn flags() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

/// The file, if it is a regular one.
fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other(
            "the head of the audit chain is not a regular file",
        ))
    }
}

fn read(file: &File) -> io::Result<Option<Head>> {
    let mut line = [0; LENGTH];
    let mut filled = 0;
    while let Some(rest) = line.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    match filled {
        0 => Ok(None),
        LENGTH => Head::parse(&line).map(Some).ok_or_else(damaged),
        _ => Err(damaged()),
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged")
}

/// The link to which the next entry attaches. `last` is the last existing entry; `on_chain` is whether the head is
/// one of the entries.
///
/// If the entry of the head is missing, the chain continues from the head: the break stays visible permanently.
pub(super) fn attach(head: Option<&Head>, last: Option<Link>, on_chain: bool) -> Link {
    match (head, last) {
        (Some(head), last) if !on_chain => Link {
            seq: head.last.seq.max(last.map_or(0, |last| last.seq)),
            hash: head.last.hash.clone(),
        },
        (_, Some(last)) => last,
        (_, None) => Link {
            seq: 0,
            hash: new_name(),
        },
    }
}

/// A name for a new chain: a random number.
fn new_name() -> String {
    let random = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
    hex_digest(&random.map(uuid::Uuid::into_bytes).concat())
}
