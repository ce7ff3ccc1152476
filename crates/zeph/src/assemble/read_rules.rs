//! The rules of reading: for file tools, for commands, and for Zeph's own data.

use std::path::PathBuf;

use zeph_tools::file::{ReadRules, RuleError, literal};
use zeph_tools::shell::ReadGuard;

use crate::config::{Environment, Loaded};

/// Which files may be read, by file tools and by commands.
pub(super) fn read_rules(loaded: &Loaded, env: &Environment) -> Result<ReadRules, RuleError> {
    let tools = &loaded.config.tools;
    let mut denied = tools.file.deny_read.clone();
    if tools.shell.transactional && !denied.is_empty() {
        // The snapshots hold copies of denied files.
        denied.push(literal(&snapshots(loaded)));
    }
    ReadRules::new(&denied, &tools.file.allow_read, env.home().as_deref())
}

/// The folder for snapshots of files while commands run.
pub(super) fn snapshots(loaded: &Loaded) -> PathBuf {
    loaded.paths.data_dir.join("snapshots")
}

/// The user's read rules for processes. Denied files are searched below the directories of file tools and of commands.
pub(super) fn user_reads(loaded: &Loaded, env: &Environment, rules: ReadRules) -> ReadGuard {
    let tools = &loaded.config.tools;
    let configured = [&tools.file.allowed_paths, &tools.shell.allowed_paths];
    let roots = configured.into_iter().flatten();
    let roots = roots.map(|root| env.cwd.join(root));
    ReadGuard::new(rules, roots.chain([env.cwd.clone()]), env.home())
}

/// The read rules for commands, with those for Zeph's own data.
pub(super) fn reads(loaded: &Loaded, env: &Environment, rules: ReadRules) -> ReadGuard {
    let reads = user_reads(loaded, env, rules).with_private(own_data(loaded));
    // After a failed rollback, the user restores files from the snapshots. Without `deny_read` they hold no denied
    // file.
    match loaded.config.tools.file.deny_read.is_empty() {
        true => reads.with_shared([snapshots(loaded)]),
        false => reads,
    }
}

/// The files of Zeph itself that no command reads: they hold conversations and copies of files, denied ones too.
pub(super) fn own_data(loaded: &Loaded) -> impl Iterator<Item = PathBuf> {
    let paths = &loaded.paths;
    let beside_database = ["", "-wal", "-shm", "-journal", "-audit"].map(|ending| {
        let mut file = paths.database.clone().into_os_string();
        file.push(ending);
        PathBuf::from(file)
    });
    std::iter::once(paths.data_dir.clone()).chain(beside_database)
}
