//! The configuration read again while a session runs.
//!
//! The files are looked at before every turn and every call; two or three questions to the file
//! system, nothing when nothing changed. What a new configuration may change is the blocklist of
//! the shell; everything else that differs is named, and holds after a restart.
//!
//! What the model could have written only tightens: a file inside the directories that tools write
//! to (a project's own, above all) cannot loosen the blocklist by being changed, and neither can a
//! file by vanishing. The person can, with `/reload`.

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

/// See the module.
pub(crate) struct Reloader {
    env: Environment,
    flags: FlagOverrides,
    policy: ShellPolicyHandle,
    /// What was answered under the old configuration is not answered under the new one.
    caches: Option<Arc<ResultCaches>>,
    state: Mutex<State>,
}

struct State {
    /// The files when they were last looked at.
    seen: Stamps,
    /// The files when what holds was read.
    taken: Stamps,
    /// What holds.
    config: Config,
    /// Whether the last change was refused.
    refused: bool,
}

/// Who wants the configuration read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// A file changed.
    Change,
    /// The person said so.
    Person,
}

impl Reloader {
    /// Keeps `policy` in step with the files that `loaded` was read from.
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

    /// Reads the files and takes over what they say. `None` when nothing changed by it.
    fn take(&self, state: &mut State, by: By) -> Option<ConfigUpdate> {
        let loaded = match reload(&self.env, &self.flags) {
            Ok(loaded) => loaded,
            Err(errors) => return Some(state.refuse(&errors.to_string())),
        };
        // What was read is at least as new as its stamps: a later change is seen as one.
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
            text = format!("for the calls that follow: {}", words.join("; "));
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
                "the configuration is valid again: nothing else changed".to_owned(),
            )),
            (true, false) => None,
        }
    }

    /// Why a loosened blocklist is not taken over unasked.
    fn suspect(&self, state: &State, loaded: &Loaded) -> Option<String> {
        const ASK: &str = "it may only tighten while a session runs; /reload takes it over";
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

    /// Whether a file lies where the tools write.
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

/// Waits until the files have been left alone for [`SETTLE`]. That is also longer than the clock of
/// a file system may stand still, so that the next change has another time.
async fn settle(stamps: &Stamps) {
    if let Some(age) = stamps.age().filter(|age| *age < SETTLE) {
        tokio::time::sleep(SETTLE.saturating_sub(age)).await;
    }
}

impl State {
    fn refuse(&mut self, why: &str) -> ConfigUpdate {
        self.refused = true;
        ConfigUpdate::Refused(format!(
            "the configuration changed and was not taken over; what held before still holds:\n{why}"
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
