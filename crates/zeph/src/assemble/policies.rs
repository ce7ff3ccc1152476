//! `policies.json`: the permanent grants of the user.
//!
//! ```json
//! { "version": 1, "rules": [ { "tool": "bash", "pattern": "cargo test *",
//!   "scope": { "project": "/home/me/project" }, "added": "2026-01-02T03:04:05Z" } ] }
//! ```
//!
//! `scope` is an object as above or `"global"`. The file is in the configuration directory, and only its owner may
//! write to it. It is replaced as a whole, under a lock that each process takes before it reads the file for a
//! change. A file that cannot be parsed is neither used nor overwritten.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use zeph_tools::gate::pattern::{Pattern, PatternKind};
use zeph_tools::gate::{Grant, PathResolver};
use zeph_tools::layers::grants::{GrantScope, GrantStore, PersistedGrant};

use crate::config::{Environment, Paths, project_directory};

/// The most bytes of the file.
const MAX_BYTES: u64 = 1024 * 1024;
const VERSION: u32 = 1;

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    rules: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    tool: String,
    pattern: String,
    scope: Scope,
    /// RFC 3339.
    added: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Scope {
    Project(PathBuf),
    Global,
}

/// The state of a file when it was read. While the state is the same, so is the content.
type FileStamp = Option<(u64, u64, u64, i64, i64, i64, i64)>;

/// The file.
pub(crate) struct Policies {
    file: PathBuf,
    project: PathBuf,
    read: Mutex<Option<(FileStamp, Vec<Entry>)>>,
}

impl Policies {
    /// The file in these paths, which need not exist.
    ///
    /// # Errors
    /// If the project's directory cannot be reached.
    pub(crate) fn new(paths: &Paths, env: &Environment) -> io::Result<Self> {
        Ok(Self::at(paths.policies.clone(), real_project(env)?))
    }

    /// The file at this path, for a project with this real path.
    pub(super) fn at(file: PathBuf, project: PathBuf) -> Self {
        Self {
            file,
            project,
            read: Mutex::default(),
        }
    }

    /// Reads the file and compiles every pattern for its tool; `kind` returns the kind of pattern of an existing
    /// tool.
    ///
    /// # Errors
    /// The error states the problem with the file and the position in it.
    pub(crate) fn check(
        &self,
        kind: impl Fn(&str) -> Option<PatternKind>,
        places: &PathResolver,
    ) -> io::Result<()> {
        for (at, entry) in self.entries()?.iter().enumerate() {
            let kind = kind(&entry.tool).unwrap_or(PatternKind::Text);
            if let Err(error) = Pattern::new(kind, &entry.pattern, places) {
                let what = format!("rules[{at}]: the pattern {:?}: {error}", entry.pattern);
                return Err(self.damaged(&what));
            }
        }
        Ok(())
    }

    /// The current content of the file.
    fn entries(&self) -> io::Result<Vec<Entry>> {
        let now = match fs::symlink_metadata(&self.file) {
            Ok(found) => stamp(&found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.said(&error)),
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, entries)) = &*read
            && *then == now
        {
            return Ok(entries.clone());
        }
        *read = None;
        let (found, entries) = self.load()?;
        *read = Some((found, entries.clone()));
        Ok(entries)
    }

    fn load(&self) -> io::Result<(FileStamp, Vec<Entry>)> {
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let opened = match options.open(&self.file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, Vec::new())),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                return Err(self.damaged("it is a link; replace it with the file"));
            }
            Err(error) => return Err(self.said(&error)),
        };
        let found = opened.metadata().map_err(|error| self.said(&error))?;
        self.check_owner(&found)?;
        let mut bytes = Vec::new();
        opened
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.said(&error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(self.damaged("it has more than 1 MiB"));
        }
        Ok((stamp(&found), self.parse(&bytes)?))
    }

    /// Checks the owner and the mode: any user who can write the file can let any call run.
    fn check_owner(&self, found: &Metadata) -> io::Result<()> {
        if !found.is_file() {
            return Err(self.damaged("it is not a regular file"));
        }
        let own = rustix::process::geteuid().as_raw();
        if found.uid() != own && found.uid() != 0 {
            return Err(self.damaged("it belongs to another user"));
        }
        if found.mode() & 0o022 != 0 {
            return Err(self.damaged("other users can write it; run chmod 600"));
        }
        Ok(())
    }

    fn parse(&self, bytes: &[u8]) -> io::Result<Vec<Entry>> {
        let document: Document = serde_json::from_slice(bytes).map_err(|error| {
            let place = format!("{}:{}", error.line(), error.column());
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            self.damaged_at(&place, text)
        })?;
        if document.version != VERSION {
            return Err(self.damaged(&format!(
                "its version is {}, and this program supports {VERSION}",
                document.version
            )));
        }
        for (at, entry) in document.rules.iter().enumerate() {
            let why = match &entry.scope {
                _ if entry.tool.is_empty() => "the tool has no name",
                Scope::Project(path) if !path.is_absolute() => {
                    "the project is not an absolute \
                    path"
                }
                _ if entry.added.parse::<Timestamp>().is_err() => {
                    "`added` is not a time (RFC \
                    3339)"
                }
                _ => continue,
            };
            return Err(self.damaged(&format!("rules[{at}]: {why}")));
        }
        Ok(document.rules)
    }

    fn damaged(&self, why: &str) -> io::Error {
        self.fault(&self.file.display().to_string(), why)
    }

    fn damaged_at(&self, place: &str, why: &str) -> io::Error {
        self.fault(&format!("{}:{place}", self.file.display()), why)
    }

    fn fault(&self, place: &str, why: &str) -> io::Error {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{place}: {why}\n  help: correct the file, or move it away; Zeph then asks again \
                 for all permanent approvals"
            ),
        )
    }

    fn said(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.file.display()))
    }

    /// Changes the content of the file, under the lock.
    fn change(&self, change: impl FnOnce(&mut Vec<Entry>) -> bool) -> io::Result<bool> {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| self.said(&error))?;
        let mut options = OpenOptions::new();
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.write(true).create(true).mode(0o600);
        options.custom_flags(flags.bits().cast_signed());
        let lock = options
            .open(self.lock_file())
            .map_err(|error| self.said(&error))?;
        // The lock ends with the handle.
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| self.said(&error.into()))?;
        let (_, mut entries) = self.load()?;
        if !change(&mut entries) {
            return Ok(false);
        }
        let document = Document {
            version: VERSION,
            rules: entries,
        };
        let mut text = serde_json::to_vec_pretty(&document)?;
        text.push(b'\n');
        if text.len() as u64 > MAX_BYTES {
            return Err(self.damaged("it would have more than 1 MiB"));
        }
        self.replace(folder, &text)
            .map_err(|error| self.said(&error))?;
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(true)
    }

    fn replace(&self, folder: &Path, text: &[u8]) -> io::Result<()> {
        // Temporary files have mode 0600.
        let mut temporary = tempfile::Builder::new()
            .prefix("policies.json-")
            .tempfile_in(folder)?;
        temporary.write_all(text)?;
        temporary.as_file().sync_all()?;
        temporary.persist(&self.file).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    }

    fn lock_file(&self) -> PathBuf {
        self.file.with_file_name("policies.json-lock")
    }
}

fn stamp(found: &Metadata) -> FileStamp {
    Some((
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ))
}

/// The real path of the current project, which scopes its grants.
///
/// # Errors
/// If the directory cannot be reached.
#[allow(
    clippy::disallowed_methods,
    reason = "a project is known by its real path; nothing is opened by it"
)]
pub(super) fn real_project(env: &Environment) -> io::Result<PathBuf> {
    project_directory(env).canonicalize()
}

/// The parts that block.
impl Policies {
    /// The grants that apply to this project.
    fn here(&self) -> io::Result<Vec<Grant>> {
        let entries = self.entries()?.into_iter();
        let here = entries.filter(|entry| match &entry.scope {
            Scope::Global => true,
            Scope::Project(project) => *project == self.project,
        });
        Ok(here.map(Entry::into_grant).collect())
    }

    fn list(&self) -> io::Result<Vec<PersistedGrant>> {
        let entries = self.entries()?.into_iter();
        Ok(entries.map(PersistedGrant::from).collect())
    }

    fn insert(&self, grants: &[Grant], scope: &GrantScope) -> io::Result<()> {
        let scope = Scope::from(scope);
        let added = Timestamp::now();
        let added = added.round(jiff::Unit::Second).unwrap_or(added).to_string();
        self.change(|entries| {
            for grant in grants {
                let entry = Entry {
                    tool: grant.tool.clone(),
                    pattern: grant.pattern.clone(),
                    scope: scope.clone(),
                    added: added.clone(),
                };
                let same = |kept: &Entry| {
                    (&kept.tool, &kept.pattern, &kept.scope)
                        == (&entry.tool, &entry.pattern, &entry.scope)
                };
                if !entries.iter().any(same) {
                    entries.push(entry);
                }
            }
            true
        })?;
        Ok(())
    }

    fn delete(&self, kept: &PersistedGrant) -> io::Result<bool> {
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| PersistedGrant::from(entry.clone()) != *kept);
            entries.len() < before
        })
    }
}

/// The file as a store, whose changes run on threads of their own.
pub(super) struct FileGrants(pub(super) Arc<Policies>);

#[async_trait]
impl GrantStore for FileGrants {
    async fn refresh(&self) -> io::Result<()> {
        self.0.entries().map(drop)
    }

    fn holding(&self) -> io::Result<Vec<Grant>> {
        self.0.here()
    }

    async fn all(&self) -> io::Result<Vec<PersistedGrant>> {
        let file = Arc::clone(&self.0);
        blocking(move || file.list()).await
    }

    async fn keep(&self, grants: &[Grant], scope: &GrantScope) -> io::Result<()> {
        let (file, grants, scope) = (Arc::clone(&self.0), grants.to_vec(), scope.clone());
        blocking(move || file.insert(&grants, &scope)).await
    }

    async fn remove(&self, kept: &PersistedGrant) -> io::Result<bool> {
        let (file, kept) = (Arc::clone(&self.0), kept.clone());
        blocking(move || file.delete(&kept)).await
    }

    fn project(&self) -> PathBuf {
        self.0.project.clone()
    }

    fn place(&self) -> String {
        self.0.file.display().to_string()
    }

    fn is_shared(&self) -> bool {
        false
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

impl Entry {
    fn into_grant(self) -> Grant {
        Grant {
            tool: self.tool,
            pattern: self.pattern,
        }
    }
}

impl From<Entry> for PersistedGrant {
    fn from(entry: Entry) -> Self {
        Self {
            scope: match &entry.scope {
                Scope::Project(project) => GrantScope::Project(project.clone()),
                Scope::Global => GrantScope::Global,
            },
            added: entry.added.clone(),
            grant: entry.into_grant(),
        }
    }
}

impl From<&GrantScope> for Scope {
    fn from(scope: &GrantScope) -> Self {
        match scope {
            GrantScope::Project(project) => Self::Project(project.clone()),
            GrantScope::Global => Self::Global,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn policies(folder: &Path) -> Policies {
        Policies::at(folder.join("zeph/policies.json"), "/here".into())
    }

    fn grant(pattern: &str) -> Grant {
        Grant {
            tool: "bash".to_owned(),
            pattern: pattern.to_owned(),
        }
    }

    /// Proves PERM-7 for the file: other processes see a stored grant, in its project or everywhere, in a file of
    /// mode 0600, until it is removed.
    #[test]
    fn grants_are_stored() {
        let temp = tempfile::tempdir().unwrap();
        let one = policies(temp.path());
        let other = Policies {
            project: PathBuf::from("/there"),
            ..policies(temp.path())
        };
        assert_eq!(one.here().unwrap(), []);
        let here = GrantScope::Project("/here".into());
        one.insert(&[grant("a"), grant("b")], &here).unwrap();
        one.insert(&[grant("a")], &here).unwrap();
        other.insert(&[grant("c")], &GrantScope::Global).unwrap();
        assert_eq!(one.here().unwrap(), [grant("a"), grant("b"), grant("c")]);
        assert_eq!(other.here().unwrap(), [grant("c")]);
        let mode = fs::metadata(&one.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let all = other.list().unwrap();
        assert_eq!(all.len(), 3);
        assert!(all[0].added.ends_with('Z'), "{}", all[0].added);
        assert!(other.delete(&all[0]).unwrap());
        assert!(!one.delete(&all[0]).unwrap());
        assert_eq!(one.here().unwrap(), [grant("b"), grant("c")]);
        let left: Vec<_> = fs::read_dir(temp.path().join("zeph")).unwrap().collect();
        assert_eq!(left.len(), 2, "the file and its lock: {left:?}");
    }

    /// Proves PERM-7: writers at the same time lose nothing of each other.
    #[test]
    fn concurrent_writers_wait() {
        let temp = tempfile::tempdir().unwrap();
        let folder: Arc<Path> = temp.path().into();
        let writers = (0..4).map(|writer| {
            let folder = Arc::clone(&folder);
            std::thread::spawn(move || {
                // Each with its own lock, as processes have.
                let policies = policies(&folder);
                for number in 0..8 {
                    let grant = grant(&format!("{writer}-{number}"));
                    policies.insert(&[grant], &GrantScope::Global).unwrap();
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.join().unwrap();
        }
        assert_eq!(policies(&folder).list().unwrap().len(), 32);
    }

    /// Proves PERM-7: an invalid entry is reported with its position; the file is neither used nor overwritten.
    #[test]
    fn damaged_file_is_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let policies = policies(temp.path());
        let folder = policies.file.parent().unwrap().to_owned();
        fs::create_dir(&folder).unwrap();
        let check = |text: &str, mode: u32, expect: &str| {
            fs::write(&policies.file, text).unwrap();
            fs::set_permissions(&policies.file, fs::Permissions::from_mode(mode)).unwrap();
            let error = policies.here().unwrap_err().to_string();
            assert!(
                error.contains("policies.json") && error.contains(expect),
                "{error}"
            );
            let error = policies
                .insert(&[grant("a")], &GrantScope::Global)
                .unwrap_err();
            assert!(error.to_string().contains(expect), "{error}");
            assert_eq!(fs::read_to_string(&policies.file).unwrap(), text);
        };
        let rule = |tool: &str, scope: &str, added: &str| {
            format!(
                "{{\"version\": 1, \"rules\": [{{\"tool\": \"{tool}\", \"pattern\": \"x\",\n \
                 \"scope\": {scope}, \"added\": \"{added}\"}}]}}"
            )
        };
        let time = "2026-01-02T03:04:05Z";
        check("", 0o600, "policies.json:1:0");
        check(
            "{\"version\": 1,\n \"rules\": [}",
            0o600,
            "policies.json:2:",
        );
        check("{\"version\": 2, \"rules\": []}", 0o600, "version is 2");
        check(
            "{\"version\": 1, \"rules\": [], \"x\": 1}",
            0o600,
            "unknown field `x`",
        );
        check(
            &rule("bash", "\"everywhere\"", time),
            0o600,
            "policies.json:2:",
        );
        check(
            &rule("bash", "\"global\"", "now"),
            0o600,
            "rules[0]: `added`",
        );
        check(
            &rule("bash", "{\"project\": \"x\"}", time),
            0o600,
            "rules[0]",
        );
        check(&rule("", "\"global\"", time), 0o600, "rules[0]");
        check(
            &rule("bash", "\"global\"", time),
            0o620,
            "other users can write it",
        );
        check(&" ".repeat(1024 * 1024 + 1), 0o600, "more than 1 MiB");
        fs::write(&policies.file, rule("bash", "\"global\"", time)).unwrap();
        fs::set_permissions(&policies.file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(policies.here().unwrap().len(), 1);
        fs::rename(&policies.file, folder.join("real")).unwrap();
        std::os::unix::fs::symlink("real", &policies.file).unwrap();
        let error = policies.here().unwrap_err().to_string();
        assert!(error.contains("it is a link"), "{error}");
        assert!(policies.insert(&[grant("a")], &GrantScope::Global).is_err());
    }

    #[test]
    fn patterns_are_compiled_at_the_start() {
        let temp = tempfile::tempdir().unwrap();
        let policies = policies(temp.path());
        let places = PathResolver::new(Path::new("/"), None, &[]);
        policies.insert(&[grant("[")], &GrantScope::Global).unwrap();
        let kind = |kind| move |_: &str| Some(kind);
        policies.check(kind(PatternKind::Text), &places).unwrap();
        let error = policies
            .check(kind(PatternKind::Path), &places)
            .unwrap_err();
        assert!(
            error.to_string().contains("rules[0]: the pattern \"[\""),
            "{error}"
        );
    }
}
