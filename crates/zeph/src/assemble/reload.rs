//! Reload of the configuration while a session runs.
//!
//! The files are checked before every turn and every call, with two or three file system calls. A new configuration
//! changes only the blocklist of the shell. All other differences are listed, and apply after a restart.
//!
//! A change of a file in a directory that tools write to, such as the project's file, can only tighten the blocklist:
//! the model could have written it. A removed file cannot loosen it either. The user can loosen it with `/reload`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use zeph_core::{ConfigReload, ConfigUpdate};
use zeph_tools::cache::ResultCaches;
use zeph_tools::shell::ShellPolicyHandle;

use crate::config::{
    Config, Environment, FlagOverrides, Loaded, Paths, Stamp, Stamped, Stamps, after_restart,
    loosened, reload, take_over, tightened,
};

/// How long a file has to be left alone before it is read: an editor may first empty it.
const SETTLE: Duration = Duration::from_millis(50);

/// Applies changes of the configuration files to the running session.
pub(crate) struct Reloader {
    env: Environment,
    flags: FlagOverrides,
    policy: ShellPolicyHandle,
    /// Results under the old configuration are not reused under the new one.
    caches: Option<Arc<ResultCaches>>,
    state: Mutex<State>,
}

struct State {
    /// The files at the time of the last check.
    seen: Stamps,
    /// The files from which the active configuration was read.
    taken: Stamps,
    /// The active configuration.
    config: Config,
    /// Whether the last change was refused.
    refused: bool,
}

/// Who wants the configuration read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// A file changed.
    Change,
    /// The user asked for it.
    Person,
}

impl Reloader {
    /// Creates a reloader that updates `policy` from the files of `loaded`.
    pub(crate) fn new(
        loaded: &Loaded,
        env: &Environment,
        flags: FlagOverrides,
        policy: ShellPolicyHandle,
        caches: Option<Arc<ResultCaches>>,
    ) -> Self {
        Self {
            env: env.clone(),
            flags,
            policy,
            caches,
            state: Mutex::new(State {
                seen: loaded.stamps.clone(),
                taken: loaded.stamps.clone(),
                config: loaded.config.clone(),
                refused: false,
            }),
        }
    }

    fn stamps(&self) -> Option<Stamps> {
        let paths = Paths::locate(&self.env, self.flags.config.as_deref());
        paths.ok().map(|paths| Stamps::of(&paths))
    }

    /// Reads the files and applies them. `None` if nothing changed.
    fn take(&self, state: &mut State, by: By) -> Option<ConfigUpdate> {
        let loaded = match reload(&self.env, &self.flags) {
            Ok(loaded) => loaded,
            Err(errors) => return Some(state.refuse(&errors.to_string())),
        };
        // The content is at least as new as its stamps, so a later change is detected.
        state.seen = loaded.stamps.clone();
        let (old, new) = (&state.config.tools.shell, &loaded.config.tools.shell);
        let mut words = tightened(old, new);
        let looser = loosened(old, new);
        if by == By::Change
            && !looser.is_empty()
            && let Some(why) = self.suspect(state, &loaded)
        {
            return Some(state.refuse(&format!("{why} ({})", looser.join("; "))));
        }
        words.extend(looser);
        if let Err(errors) = self.policy.rebuild(new) {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Some(state.refuse(&format!("[tools.shell]: {}", errors.join("; "))));
        }
        if let Some(caches) = &self.caches {
            caches.forget_all();
        }
        take_over(&mut state.config.tools.shell, new);
        state.taken = loaded.stamps;
        let was_refused = std::mem::take(&mut state.refused);
        let later = after_restart(&state.config, &loaded.config);
        let mut text = String::new();
        if !words.is_empty() {
            text = format!("for the following calls: {}", words.join("; "));
        }
        if !later.is_empty() {
            let separator = if text.is_empty() { "" } else { "; " };
            text = format!("{text}{separator}after a restart: {}", later.join(", "));
        }
        match (text.is_empty(), was_refused) {
            (false, _) => Some(ConfigUpdate::Taken(format!(
                "the configuration was read again: {text}"
            ))),
            (true, true) => Some(ConfigUpdate::Taken(
                "the configuration is valid again, and nothing else changed".to_owned(),
            )),
            (true, false) => None,
        }
    }

    /// Why a loosened blocklist is not taken over unasked.
    fn suspect(&self, state: &State, loaded: &Loaded) -> Option<String> {
        const ASK: &str = "a running session only accepts stricter settings; /reload applies it";
        let (old, new) = (&state.taken, &loaded.stamps);
        if old.user.stamp != Stamp::Absent && new.user.stamp == Stamp::Absent {
            let file = old.user.path.display();
            return Some(format!(
                "{file} is gone, including its blocklist entries; {ASK}"
            ));
        }
        let changed = |old: Option<&Stamped>, new: Option<&Stamped>| {
            (old != new).then(|| new.or(old).map(|file| file.path.clone()))?
        };
        let project = changed(old.project.as_ref(), new.project.as_ref());
        let user = changed(Some(&old.user), Some(&new.user))
            .filter(|file| self.is_within_reach(file, &loaded.config));
        let file = project.or(user)?;
        Some(format!("{} loosens the blocklist; {ASK}", file.display()))
    }

    /// Whether a file is in a directory that tools write to.
    fn is_within_reach(&self, file: &PathBuf, config: &Config) -> bool {
        #[allow(
            clippy::disallowed_methods,
            reason = "the user's own file is judged where its links lead; nothing is opened by it"
        )]
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let tools = &config.tools;
        let named = tools
            .file
            .allowed_paths
            .iter()
            .chain(&tools.shell.allowed_paths);
        let mut roots = named.chain([&self.env.cwd]);
        let file = real(file);
        roots.any(|root| file.starts_with(real(root)))
    }
}

/// Waits until the files have been unchanged for [`SETTLE`]. That is also longer than the clock resolution of a file
/// system, so that the next change has another time.
async fn settle(stamps: &Stamps) {
    if let Some(age) = stamps.age().filter(|age| *age < SETTLE) {
        tokio::time::sleep(SETTLE.saturating_sub(age)).await;
    }
}

impl State {
    fn refuse(&mut self, why: &str) -> ConfigUpdate {
        self.refused = true;
        ConfigUpdate::Refused(format!(
            "the changed configuration is invalid and was not applied; the previous one stays in \
             effect:\n{why}"
        ))
    }
}

#[async_trait]
impl ConfigReload for Reloader {
    async fn refresh(&self) -> Option<ConfigUpdate> {
        let mut state = self.state.lock().await;
        let stamps = self.stamps()?;
        if stamps == state.seen {
            return None;
        }
        settle(&stamps).await;
        state.seen = stamps;
        self.take(&mut state, By::Change)
    }

    async fn reload(&self) -> ConfigUpdate {
        let mut state = self.state.lock().await;
        if let Some(stamps) = self.stamps() {
            settle(&stamps).await;
            state.seen = stamps;
        }
        self.take(&mut state, By::Person).unwrap_or_else(|| {
            ConfigUpdate::Taken("the configuration was read again: nothing changed".to_owned())
        })
    }
}
