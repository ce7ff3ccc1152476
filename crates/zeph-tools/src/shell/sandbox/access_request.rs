//! The access that a failed command lacked, as a question to the user and as a message for the model.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::caches;
use super::config::{AccessPolicy, SandboxConfig};
use crate::contract::confinement::SandboxAccess;
use crate::shell::command::variable;
use zeph_exec::Plan;
use zeph_exec::sandbox::plan::resolve;
use zeph_exec::sandbox::{Denial, Sockets};

/// The maximum number of directories in one question.
const MAX_DIRECTORIES: usize = 4;
/// Directories whose files programs write if they can, and do without if they cannot.
const OPTIONAL_DIRECTORIES: &[&str] = &["__pycache__"];

/// The accesses that the sandbox refused to a failed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) struct AccessRequest {
    /// The accesses with which the command can run again. Empty if the configuration refuses them.
    pub(in crate::shell) access: Vec<SandboxAccess>,
    /// The message for the model: the refused access, and the setting that allows it.
    pub(in crate::shell) message: String,
}

/// The circumstances of a failed command.
#[derive(Debug, Clone, Copy)]
pub(in crate::shell) struct FailedCommand<'a> {
    /// The limits that it ran with.
    pub(in crate::shell) plan: &'a Plan,
    /// The limits of the session.
    pub(in crate::shell) session: &'a Plan,
    pub(in crate::shell) config: &'a SandboxConfig,
    /// Its environment.
    pub(in crate::shell) env: &'a [(OsString, OsString)],
    pub(in crate::shell) project: &'a Path,
}

/// The request that follows from `denials`. `None` if all of them are refused writes that programs do without.
pub(in crate::shell) fn request(
    denials: &[Denial],
    of: &FailedCommand<'_>,
) -> Option<AccessRequest> {
    let is_cut = denials.contains(&Denial::Network);
    let writes: Vec<(&Path, bool)> = denials
        .iter()
        .filter_map(|denial| match denial {
            Denial::Write(path) => Some((path.as_path(), false)),
            Denial::CreateDirectory(path) => Some((path.as_path(), true)),
            Denial::Network => None,
        })
        .filter(|(path, _)| !is_optional(path, of.env))
        .collect();
    if !is_cut && writes.is_empty() {
        return None;
    }
    let mut access = Vec::new();
    let mut messages = Vec::new();
    if is_cut {
        // The session has the network, and the profile of the command has not.
        let by_mode = of.plan.sockets != Sockets::All && of.session.sockets == Sockets::All;
        if by_mode && of.config.network == AccessPolicy::Ask {
            access.push(SandboxAccess::Network);
        }
        messages.push(format!(
            "the OS sandbox blocked network access of the command; the user can allow it with {}",
            match by_mode {
                true => "`[tools.shell.sandbox] network`",
                false => "`[tools.shell] allow_network`",
            }
        ));
    }
    if let Some((first, _)) = writes.first() {
        let is_denied =
            |path: &Path| of.config.caches == AccessPolicy::Deny && caches::contains(path, of.env);
        if !writes.iter().any(|(path, _)| is_denied(path)) {
            access.extend(writable(&writes, of));
        } else {
            access.clear();
        }
        let key = match caches::contains(first, of.env) {
            true => "`[tools.shell.sandbox] caches` allows the caches of package managers",
            false => "the user can add files and directories in `[tools.shell.sandbox] writable`",
        };
        messages.push(format!(
            "the OS sandbox blocked writing to {}; commands can only write below {}; {key}",
            first.display(),
            directories(of),
        ));
    }
    Some(AccessRequest {
        access,
        message: messages.join("; "),
    })
}

/// The writable paths except devices, for a message. Caches are summarized.
fn directories(of: &FailedCommand<'_>) -> String {
    let paths = of
        .plan
        .writable
        .iter()
        .filter(|path| !path.starts_with("/dev"));
    let (caches, others): (Vec<_>, Vec<_>) = paths.partition(|path| caches::contains(path, of.env));
    let mut names: Vec<String> = others
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if !caches.is_empty() {
        names.push("the caches of package managers".to_owned());
    }
    names.join(", ")
}

fn is_optional(path: &Path, env: &[(OsString, OsString)]) -> bool {
    let optional = |name| {
        OPTIONAL_DIRECTORIES
            .iter()
            .any(|optional| name == *optional)
    };
    path.iter().any(optional) || caches::is_ignored(path, env)
}

/// The directories with which the writes would have succeeded. If one of them is too general, no sandbox.
fn writable(writes: &[(&Path, bool)], of: &FailedCommand<'_>) -> Vec<SandboxAccess> {
    let home = variable(of.env, "HOME").map(|home| resolve(Path::new(home)));
    let mut directories: BTreeSet<PathBuf> = BTreeSet::new();
    for (path, is_directory) in writes {
        match directory(path, *is_directory, home.as_deref(), of.project) {
            Some(directory) => directories.insert(directory),
            None => return vec![SandboxAccess::Everything],
        };
    }
    // A directory covers the directories below it, which follow it in the order.
    let mut kept: Vec<PathBuf> = Vec::new();
    for directory in directories {
        if !kept.iter().any(|above| directory.starts_with(above)) {
            kept.push(directory);
        }
    }
    match kept.len() <= MAX_DIRECTORIES {
        true => kept.into_iter().map(SandboxAccess::Write).collect(),
        false => vec![SandboxAccess::Everything],
    }
}

/// The directory to grant for a change of `path`: the nearest existing one, or the first missing one below it if that is
/// too general. `None` if no directory fits.
fn directory(
    path: &Path,
    is_directory: bool,
    home: Option<&Path>,
    project: &Path,
) -> Option<PathBuf> {
    let above = match path.is_dir() {
        true => path,
        false => path.ancestors().skip(1).find(|above| above.is_dir())?,
    };
    if !is_broad(above, home, project) {
        return Some(above.to_owned());
    }
    let missing = path.strip_prefix(above).ok()?.iter().next()?;
    let first = above.join(missing);
    (is_directory || first != path).then_some(first)
}

/// Whether a directory is too general to be granted as a whole: the root, a home directory, or a parent of `project`.
fn is_broad(directory: &Path, home: Option<&Path>, project: &Path) -> bool {
    directory.components().count() < 3
        || home.is_some_and(|home| home.starts_with(directory))
        || project.starts_with(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        dir: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for path in ["home/.config/app", "home/work/project", "srv/data"] {
                std::fs::create_dir_all(dir.path().join(path)).unwrap();
            }
            Self { dir }
        }

        fn at(&self, path: &str) -> PathBuf {
            resolve(self.dir.path()).join(path)
        }

        fn request(&self, denials: &[Denial], config: &SandboxConfig) -> Option<AccessRequest> {
            let plan = |sockets| Plan {
                writable: vec![self.at("home/work/project")],
                sockets,
                ..Plan::nothing()
            };
            request(
                denials,
                &FailedCommand {
                    plan: &plan(Sockets::Local),
                    session: &plan(Sockets::All),
                    config,
                    env: &[("HOME".into(), self.at("home").into())],
                    project: &self.at("home/work/project"),
                },
            )
        }
    }

    /// Proves SH-22: the request names the nearest directory that is not too general.
    #[test]
    fn request_names_the_directory_to_grant() {
        let world = World::new();
        let config = SandboxConfig::default();
        let check = |denials: &[Denial], expect: &[SandboxAccess]| {
            let request = world.request(denials, &config);
            assert_eq!(
                request.map_or(Vec::new(), |it| it.access),
                expect,
                "{denials:?}"
            );
        };
        let write = |path: &str| Denial::Write(world.at(path));
        let create = |path: &str| Denial::CreateDirectory(world.at(path));
        let grant = |path: &str| SandboxAccess::Write(world.at(path));
        check(&[write("home/.config/app/x")], &[grant("home/.config/app")]);
        check(
            &[write("home/.config/app/new/deep/x")],
            &[grant("home/.config/app")],
        );
        check(&[create("home/.npm")], &[grant("home/.npm")]);
        check(&[write("home/.npm/a/b")], &[grant("home/.npm")]);
        check(&[write("home/.rc")], &[SandboxAccess::Everything]);
        check(&[write("home/work/other")], &[SandboxAccess::Everything]);
        check(&[create("home/work/other")], &[grant("home/work/other")]);
        check(
            &[Denial::Network, write("srv/data/x"), write("srv/data/y/z")],
            &[SandboxAccess::Network, grant("srv/data")],
        );
        check(&[write("srv/data/__pycache__/x.pyc")], &[]);
        check(&[write("home/.cargo/.global-cache")], &[]);
        check(&[], &[]);
    }

    /// Proves SH-21: the message names the path or the network, and the key that allows it.
    #[test]
    fn message_names_the_path_and_the_key() {
        let world = World::new();
        let message = |denial: Denial| {
            let request = world.request(&[denial], &SandboxConfig::default());
            request.unwrap().message
        };
        let path = world.at("srv/data/x");
        let text = message(Denial::Write(path.clone()));
        assert!(
            text.contains(&path.display().to_string()) && text.contains("writable`"),
            "{text}"
        );
        assert!(message(Denial::Network).contains("`[tools.shell.sandbox] network`"));
        let cache = message(Denial::Write(world.at("home/.npm/_cacache/x")));
        assert!(cache.contains("`[tools.shell.sandbox] caches`"), "{cache}");
    }

    /// Proves SH-20: a denied access is refused without a question.
    #[test]
    fn denied_access_is_not_offered() {
        let world = World::new();
        let config = SandboxConfig {
            caches: AccessPolicy::Deny,
            network: AccessPolicy::Deny,
            ..SandboxConfig::default()
        };
        for denial in [
            Denial::Network,
            Denial::Write(world.at("home/.npm/_cacache/x")),
        ] {
            let request = world.request(&[denial], &config).unwrap();
            assert_eq!(request.access, [], "{}", request.message);
        }
    }
}
