//! Rules for the changes that a project's file may make. A cloned repository is not trusted: its file may tighten the
//! protection of the user, never loosen it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use toml::Value;

use super::error::ConfigError;
use super::layer::Layer;
use super::origin::Origin;
use super::paths::absolute;
use super::schema_shape;
use super::values::{exceeds, get_mut, items, number, plain, strings};

/// The change that a project's file may make to a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Set it as it likes.
    Free,
    /// Lower it.
    Lower,
    /// Move it towards the end of this list.
    Towards(&'static [&'static str]),
    /// Name directories inside those that are allowed without it.
    Inside,
    /// Take items away.
    Fewer,
    /// Add items; those of the user remain.
    More,
    /// Insert rules that deny or ask before the user's.
    InFront,
    /// Insert rules that deny before the user's.
    Denials,
    /// Remove items, but not all; any items if there are none, since an empty list means all.
    Narrower,
    /// Nothing.
    Never,
}

/// Switch it on.
const SWITCH_ON: Rule = Rule::Towards(&["false", "true"]);
/// Switch it off.
const SWITCH_OFF: Rule = Rule::Towards(&["true", "false"]);
/// Ask or deny instead of allowing.
const ASK_OR_DENY: Rule = Rule::Towards(&["allow", "ask", "deny"]);

/// Every setting with its rule; one that is missing here is refused.
const RULES: &[(&str, Rule)] = &[
    // A repository must not spend more of the user's money and time.
    ("agent.max_tool_iterations", Rule::Lower),
    ("agent.max_iterations_per_turn", Rule::Lower),
    ("agent.max_calls_per_iteration", Rule::Lower),
    ("agent.max_parallel_calls", Rule::Lower),
    ("agent.context_budget_tokens", Rule::Lower),
    ("agent.max_cost_usd", Rule::Lower),
    ("agent.max_tokens_per_session", Rule::Lower),
    ("agent.max_reflections", Rule::Lower),
    ("agent.hallucination_detection", SWITCH_ON),
    ("agent.reasoning_model_detection", SWITCH_ON),
    ("acp.terminal_timeout_secs", Rule::Lower),
    // It belongs to the user's editor, not to a project.
    ("acp.unread_timeout_secs", Rule::Never),
    // It would choose who receives the conversation.
    ("agent.compress_provider", Rule::Never),
    ("agent.compaction.enabled", SWITCH_OFF),
    // Early and often would cost requests.
    ("agent.compaction.threshold", Rule::Never),
    ("agent.compaction.keep_recent", Rule::Free),
    // They decide which tools the model sees, not which it may call.
    ("agent.tool_filter.enabled", Rule::Free),
    ("agent.tool_filter.top_k", Rule::Free),
    ("agent.tool_filter.min_description_words", Rule::Free),
    // Tools that the model always sees are also free of requirements.
    ("agent.tool_filter.always_on", Rule::Fewer),
    ("tools.tafc.enabled", Rule::Free),
    ("tools.tafc.complexity_threshold", Rule::Free),
    // It may switch the user's requirements on, and change none.
    ("tools.dependencies.enabled", SWITCH_ON),
    ("tools.dependencies.mode", Rule::Free),
    ("tools.dependencies.boost_per_dep", Rule::Free),
    ("tools.dependencies.max_total_boost", Rule::Free),
    ("tools.dependencies.rules", Rule::Never),
    // It would choose who receives the conversation, even among the user's own providers.
    ("llm.default", Rule::Never),
    ("llm.fallback", Rule::Never),
    // It chooses a provider that receives text of the user outside the conversation.
    ("llm.embed_provider", Rule::Never),
    // It could name its own server, and the user's key.
    ("llm.local_servers", Rule::Never),
    ("llm.providers", Rule::Never),
    ("llm.retry.max_attempts", Rule::Lower),
    ("llm.retry.budget_secs", Rule::Lower),
    ("llm.retry.connect_timeout_secs", Rule::Lower),
    ("llm.retry.read_timeout_secs", Rule::Lower),
    // They are programs that run.
    ("hooks", Rule::Never),
    // The log belongs to the user.
    ("log.format", Rule::Never),
    ("mcp.start_wait_ms", Rule::Lower),
    // They are programs that run.
    ("mcp.servers", Rule::Never),
    // They decide which tasks run unattended.
    ("scheduler.grace_secs", Rule::Never),
    ("scheduler.run_missed", Rule::Never),
    ("scheduler.skip_questions", Rule::Never),
    // They choose who receives the data of the user, and how much of it.
    ("telemetry.endpoint", Rule::Never),
    ("telemetry.headers", Rule::Never),
    ("telemetry.content", Rule::Never),
    // They belong to the user's terminal, not to a project.
    ("terminal.keys", Rule::Never),
    ("terminal.notify", Rule::Never),
    ("terminal.notify_after_secs", Rule::Never),
    ("terminal.title", Rule::Never),
    // It could write into any file, or bring its own history.
    ("memory.path", Rule::Never),
    // It could send conversations to its own server.
    ("memory.url", Rule::Never),
    ("memory.wait_secs", Rule::Lower),
    ("memory.synchronous", Rule::Towards(&["normal", "full"])),
    ("tools.enabled", SWITCH_OFF),
    (
        "tools.mode",
        Rule::Towards(&["full", "auto", "auto-edit", "ask", "plan"]),
    ),
    ("tools.max_tool_calls_per_session", Rule::Lower),
    // It changes the form of results for the model, not its permissions.
    ("tools.result_format", Rule::Free),
    ("tools.permissions", Rule::InFront),
    ("tools.policy.enabled", SWITCH_ON),
    (
        "tools.policy.default_effect",
        Rule::Towards(&["allow", "deny"]),
    ),
    ("tools.policy.rules", Rule::Denials),
    ("tools.authorization.enabled", SWITCH_ON),
    ("tools.authorization.rules", Rule::Denials),
    ("tools.file.allowed_paths", Rule::Inside),
    ("tools.file.deny_read", Rule::More),
    ("tools.file.allow_read", Rule::Narrower),
    ("tools.file.read_before_write", SWITCH_ON),
    // `max_timeout` bounds it.
    ("tools.shell.timeout", Rule::Free),
    ("tools.shell.max_timeout", Rule::Lower),
    ("tools.shell.allowed_paths", Rule::Inside),
    ("tools.shell.blocked_commands", Rule::More),
    ("tools.shell.confirm_patterns", Rule::More),
    ("tools.shell.blocked_constructs", Rule::More),
    ("tools.shell.allow_network", SWITCH_OFF),
    ("tools.shell.transactional", SWITCH_ON),
    ("tools.shell.transaction_scope", Rule::More),
    ("tools.shell.auto_rollback", SWITCH_ON),
    ("tools.shell.auto_rollback_exit_codes", Rule::More),
    ("tools.shell.snapshot_required", SWITCH_ON),
    // Less would leave commands without a snapshot, more could fill the user's disk.
    ("tools.shell.max_snapshot_bytes", Rule::Never),
    ("tools.shell.env.pass", Rule::Fewer),
    ("tools.shell.env.block", Rule::More),
    // It could set `PATH` or `LD_PRELOAD`.
    ("tools.shell.env.set", Rule::Never),
    (
        "tools.shell.sandbox.mode",
        Rule::Towards(&["off", "best-effort", "required"]),
    ),
    // It could let its own build write into the user's home.
    ("tools.shell.sandbox.writable", Rule::Never),
    ("tools.shell.sandbox.caches", ASK_OR_DENY),
    ("tools.shell.sandbox.network", ASK_OR_DENY),
    // Without them the model reads more, and the user pays for it.
    ("tools.filters.enabled", SWITCH_ON),
    // A project's own rules are trusted one by one, by their content.
    ("tools.filters.filters_path", Rule::Never),
    // A rule that is disabled costs the user more, and a small limit hides facts.
    ("tools.filters.rules", Rule::Never),
    ("tools.diagnostics.max_diagnostics", Rule::Lower),
    // Without it the model and its provider would read the user's secrets.
    ("tools.filters.security.redact", SWITCH_ON),
    ("tools.filters.security.extra_patterns", Rule::More),
    // More would cost more of the user's money.
    ("tools.overflow.threshold", Rule::Lower),
    // The storage is shared by all projects; and 0 means no limit.
    ("tools.overflow.retention_days", Rule::Never),
    ("tools.overflow.max_overflow_bytes", Rule::Never),
    // Each summary costs a request, and the provider receives the output.
    ("tools.overflow.summarize", SWITCH_OFF),
    ("tools.overflow.summary_provider", Rule::Never),
    // Less would take from the user's safety, more from the user's disk.
    ("tools.undo.max_bytes", Rule::Never),
    ("tools.result_cache.enabled", SWITCH_OFF),
    // 0 means no limit; and a larger value would take the user's memory.
    ("tools.result_cache.ttl_secs", Rule::Never),
    ("tools.result_cache.max_bytes", Rule::Lower),
    ("tools.retry.max_attempts", Rule::Lower),
    // `max_ms` bounds it.
    ("tools.retry.base_ms", Rule::Free),
    ("tools.retry.max_ms", Rule::Lower),
    ("tools.retry.budget_secs", Rule::Lower),
    // It would choose who receives arguments of calls.
    ("tools.retry.parameter_reformat_provider", Rule::Never),
    // A project may add policies, which are judged separately from the user's, and remove exemptions. `check_judge`
    // decides whether it may enable the gate: judging costs the user's money.
    ("tools.adversarial_policy.enabled", SWITCH_ON),
    ("tools.adversarial_policy.policies", Rule::More),
    ("tools.adversarial_policy.exempt_tools", Rule::Fewer),
    // A project could name a judge that allows every call, or leave it no time while `fail_open` is set.
    ("tools.adversarial_policy.provider", Rule::Never),
    ("tools.adversarial_policy.timeout_ms", Rule::Never),
    ("tools.adversarial_policy.fail_open", SWITCH_OFF),
    // It may have more blocked, never less.
    ("tools.anomaly.enabled", SWITCH_ON),
    ("tools.anomaly.window_size", Rule::Never),
    ("tools.anomaly.failure_threshold", Rule::Lower),
    ("tools.anomaly.auto_block", SWITCH_ON),
    ("tools.utility.enabled", SWITCH_ON),
    ("tools.utility.threshold", Rule::Never),
    ("tools.utility.exempt_tools", Rule::Fewer),
    // A project may ask for more audit sinks, never for fewer, and not for one on the user's own output.
    ("tools.audit.sqlite", SWITCH_ON),
    ("tools.audit.jsonl", SWITCH_ON),
    ("tools.audit.stdout", Rule::Never),
    ("tools.audit.path", Rule::Never),
    ("tools.audit.required", SWITCH_ON),
    ("tools.scrape.timeout", Rule::Lower),
    ("tools.scrape.max_body_bytes", Rule::Lower),
    // An empty list allows every domain, so that taking items away may loosen it.
    ("tools.scrape.allowed_domains", Rule::Never),
    ("tools.scrape.denied_domains", Rule::More),
];

impl Rule {
    /// The rule of a setting.
    pub(crate) fn of(key: &str) -> Self {
        RULES
            .iter()
            .find(|(name, _)| *name == key)
            .map_or(Self::Never, |(_, rule)| *rule)
    }

    /// "may only lower it".
    pub(crate) fn explanation(self) -> String {
        match self {
            Self::Free => "may set it".to_owned(),
            Self::Lower => "may only lower it".to_owned(),
            Self::Towards(order) => {
                let order: Vec<String> = order.iter().map(|name| format!("`{name}`")).collect();
                format!("may only select a later value of: {}", order.join(" → "))
            }
            Self::Inside => "may only name directories inside the allowed ones".to_owned(),
            Self::Fewer => "may only remove items".to_owned(),
            Self::More => "only adds items".to_owned(),
            Self::InFront => "may only add rules that deny or ask".to_owned(),
            Self::Denials => "may only add rules that deny".to_owned(),
            Self::Narrower => "may only remove items, or name the first".to_owned(),
            Self::Never => "may not set it".to_owned(),
        }
    }
}

/// The context of the rules.
pub(crate) struct Bounds<'a> {
    /// The values that hold without the project: defaults and the user's file.
    pub(crate) base: &'a Layer,
    /// The project's directory.
    pub(crate) root: &'a Path,
    /// The working directory.
    pub(crate) cwd: &'a Path,
    /// The user's home.
    pub(crate) home: Option<&'a Path>,
    /// The user's file, in which the user may set the refused keys.
    pub(crate) user_file: &'a Path,
    /// Follows links: the real path of one that exists.
    pub(crate) resolve: &'a dyn Fn(&Path) -> io::Result<PathBuf>,
}

impl Bounds<'_> {
    /// Judges every setting of a project's layer. Directories in it become real paths, so that a
    /// link cannot point elsewhere later on; lists that only add become the union.
    pub(crate) fn enforce(&self, project: &mut Layer) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for (key, _) in schema_shape::root().settings() {
            let Some(value) = project.get(&key) else {
                continue;
            };
            let rule = Rule::of(&key);
            match self.judge(rule, self.base.get(&key), value) {
                Ok(None) => {}
                Ok(Some(value)) => {
                    if rule == Rule::More {
                        self.keep_places(&key, &value, project);
                    }
                    if let Some(place) = get_mut(&mut project.table, &key) {
                        *place = value;
                    }
                }
                Err(why) => {
                    let origin = project.provenance.of(&key).clone();
                    let origin = match (&origin, value) {
                        // A table of free keys has no position; that of its first key is used.
                        (Origin::Default, Value::Table(table)) => table
                            .keys()
                            .next()
                            .map(|first| {
                                project
                                    .provenance
                                    .of(&schema_shape::join(&key, first))
                                    .clone()
                            })
                            .unwrap_or(origin),
                        _ => origin,
                    };
                    let message =
                        format!("a project's file {} (`{key}`): {why}", rule.explanation());
                    let help = format!(
                        "remove it there; if you want it, set it in {}",
                        self.user_file.display()
                    );
                    errors.push(ConfigError::new(origin, message).help(help));
                }
            }
        }
        errors
    }

    /// Records the position of each item of a union.
    fn keep_places(&self, key: &str, union: &Value, project: &mut Layer) {
        let places: Vec<(String, Origin)> = items(Some(union))
            .iter()
            .enumerate()
            .filter_map(|(at, item)| {
                let within = |layer: &Layer| {
                    let place = items(layer.get(key)).iter().position(|own| own == item)?;
                    Some(layer.provenance.of(&format!("{key}[{place}]")).clone())
                };
                Some((
                    format!("{key}[{at}]"),
                    within(self.base).or_else(|| within(project))?,
                ))
            })
            .collect();
        for (item, origin) in places {
            project.provenance.set(&item, origin);
        }
    }

    /// `Ok` with the replacement of the value, if there is one; `Err` with the reason.
    fn judge(
        &self,
        rule: Rule,
        base: Option<&Value>,
        value: &Value,
    ) -> Result<Option<Value>, String> {
        match rule {
            // The merge of the rules judges them.
            Rule::Free | Rule::InFront | Rule::Denials => Ok(None),
            Rule::Never => match value {
                // An empty table of free keys changes nothing.
                Value::Table(table) if table.is_empty() => Ok(None),
                _ => Err("a cloned repository could misuse it".to_owned()),
            },
            Rule::Lower => match (base, number(value)) {
                (None, Some(_)) => Ok(None),
                (Some(base), Some(given)) if number(base).is_some_and(|base| given <= base) => {
                    Ok(None)
                }
                (base, _) => Err(exceeds(value, base)),
            },
            Rule::Towards(order) => {
                let rank = |value: &Value| order.iter().position(|name| *name == plain(value));
                match (base.and_then(rank), rank(value)) {
                    (Some(base), Some(given)) if given >= base => Ok(None),
                    _ => Err(format!(
                        "{value} is looser than {}",
                        base.map_or_else(|| "the default".to_owned(), Value::to_string)
                    )),
                }
            }
            Rule::Inside => self.inside(base, value).map(Some),
            Rule::Fewer => {
                let base: BTreeSet<&str> = strings(base).collect();
                match strings(Some(value)).find(|item| !base.contains(item)) {
                    Some(item) => Err(format!("{item:?} is not in the list without it")),
                    None => Ok(None),
                }
            }
            Rule::Narrower => {
                let base: BTreeSet<&str> = strings(base).collect();
                if base.is_empty() {
                    return Ok(None);
                }
                if strings(Some(value)).next().is_none() {
                    return Err("an empty list would allow everything".to_owned());
                }
                match strings(Some(value)).find(|item| !base.contains(item)) {
                    Some(item) => Err(format!("{item:?} is not in the list without it")),
                    None => Ok(None),
                }
            }
            Rule::More => {
                let mut union: Vec<Value> = items(base).to_vec();
                let new = items(Some(value)).iter();
                union.extend(new.filter(|item| !items(base).contains(item)).cloned());
                Ok(Some(union.into()))
            }
        }
    }

    /// The real paths of the project's directories, if each is inside an allowed one.
    fn inside(&self, base: Option<&Value>, value: &Value) -> Result<Value, String> {
        let allowed: Vec<PathBuf> = self
            .directories(base, self.cwd)
            .filter_map(|path| (self.resolve)(&path.ok()?).ok())
            .collect();
        let mut real = Vec::new();
        for path in self.directories(Some(value), self.root) {
            let path = path?;
            let found = (self.resolve)(&path)
                .map_err(|error| format!("{} cannot be examined: {error}", path.display()))?;
            if !allowed.iter().any(|allowed| found.starts_with(allowed)) {
                return Err(format!(
                    "{} is outside; allowed without it: {}",
                    found.display(),
                    allowed
                        .iter()
                        .map(|path| path.display().to_string())
                        .collect::<Vec<_>>()
                        .join(", ")
                ));
            }
            let text = found
                .to_str()
                .ok_or_else(|| format!("{} is not UTF-8", found.display()))?;
            real.push(text.to_owned());
        }
        Ok(real.into())
    }

    /// The directories of a list; an empty one means the working directory.
    fn directories<'b>(
        &'b self,
        list: Option<&'b Value>,
        start: &'b Path,
    ) -> impl Iterator<Item = Result<PathBuf, String>> + 'b {
        let empty = strings(list).next().is_none();
        let default = empty.then(|| Ok(self.cwd.to_owned()));
        let named = strings(list).map(move |text| absolute(Path::new(text), start, self.home));
        default.into_iter().chain(named)
    }
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    use crate::config::Config;
    use crate::config::layer::FileLayer;

    fn layer(text: &str, which: FileLayer) -> Layer {
        let mut errors = Vec::new();
        let layer = Layer::from_toml(text, Path::new("c.toml"), which, &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        layer
    }

    fn enforce(user: &str, project: &str) -> Result<Table, String> {
        let mut base = Layer {
            table: Table::try_from(Config::default()).unwrap(),
            ..Layer::default()
        };
        base.merge(layer(user, FileLayer::User));
        let mut project = layer(project, FileLayer::Project);
        project.replace_ollama(&mut Vec::new());
        // `/repo/link` resolves to `/etc`.
        let resolve = |path: &Path| match path.to_str() {
            Some("/repo/link") => Ok(PathBuf::from("/etc")),
            Some("/repo/missing") => Err(io::ErrorKind::NotFound.into()),
            Some("/repo/src/../..") => Ok(PathBuf::from("/")),
            _ => Ok(path.to_owned()),
        };
        let bounds = Bounds {
            base: &base,
            root: Path::new("/repo"),
            cwd: Path::new("/repo"),
            home: Some(Path::new("/h")),
            user_file: Path::new("/user.toml"),
            resolve: &resolve,
        };
        let errors = bounds.enforce(&mut project);
        match errors.as_slice() {
            [] => Ok(project.table),
            errors => Err(errors
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")),
        }
    }

    /// Proves CFG-1, FILE-4: a project may add denied files and remove allowed ones.
    #[test]
    fn project_read_rules_only_tighten() {
        let check = |user: &str, project: &str, expect: Result<&str, &str>| match (
            enforce(user, project),
            expect,
        ) {
            (Ok(found), Ok(expect)) => assert_eq!(found, expect.parse().unwrap(), "{project}"),
            (Err(found), Err(expect)) => assert!(found.contains(expect), "{found}"),
            (found, _) => panic!("{project}: {found:?}"),
        };
        check(
            "tools.file.deny_read = ['/a']",
            "tools.file.deny_read = ['/b', '/a']",
            Ok("tools.file.deny_read = ['/a', '/b']"),
        );
        check(
            "tools.file.deny_read = ['/a']",
            "tools.file.deny_read = []",
            Ok("tools.file.deny_read = ['/a']"),
        );
        let allow = "tools.file.allow_read = ['/a/**', '/b/**']";
        check(
            allow,
            "tools.file.allow_read = ['/b/**']",
            Ok("tools.file.allow_read = ['/b/**']"),
        );
        check(
            allow,
            "tools.file.allow_read = []",
            Err("would allow everything"),
        );
        check(
            allow,
            "tools.file.allow_read = ['/b/**', '/c']",
            Err("\"/c\" is not in the list"),
        );
    }

    /// Proves CFG-1: the table has every setting.
    #[test]
    fn every_setting_has_a_rule() {
        let settings: BTreeSet<String> = schema_shape::root()
            .settings()
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        let ruled: BTreeSet<String> = RULES.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(settings, ruled, "RULES must name each setting");
        assert_eq!(ruled.len(), RULES.len(), "RULES names a setting twice");
        assert_eq!(Rule::of("tools.new"), Rule::Never);
    }

    /// Proves CFG-1: a project chooses no provider, address, program, environment or file. A new setting with a text
    /// value must be added to one of the lists.
    #[test]
    fn recipient_and_program_settings_belong_to_the_user() {
        const OF_THE_USER: &[&str] = &[
            "agent.compress_provider",
            "hooks",
            "llm.default",
            "llm.embed_provider",
            "llm.fallback",
            "llm.local_servers",
            "llm.providers",
            "mcp.servers",
            "memory.path",
            "memory.url",
            "telemetry.endpoint",
            "telemetry.headers",
            "tools.adversarial_policy.provider",
            "tools.audit.path",
            "tools.dependencies.rules",
            "tools.filters.filters_path",
            "tools.filters.rules",
            "tools.overflow.summary_provider",
            "tools.retry.parameter_reformat_provider",
            "tools.scrape.allowed_domains",
            "tools.shell.env.set",
            "tools.shell.sandbox.writable",
        ];
        const ONLY_TIGHTENED: &[&str] = &[
            "agent.tool_filter.always_on",
            "tools.adversarial_policy.exempt_tools",
            "tools.adversarial_policy.policies",
            "tools.authorization.rules",
            "tools.file.allow_read",
            "tools.file.allowed_paths",
            "tools.file.deny_read",
            "tools.filters.security.extra_patterns",
            "tools.permissions",
            "tools.policy.rules",
            "tools.scrape.denied_domains",
            "tools.shell.allowed_paths",
            "tools.shell.auto_rollback_exit_codes",
            "tools.shell.blocked_commands",
            "tools.shell.blocked_constructs",
            "tools.shell.confirm_patterns",
            "tools.shell.env.block",
            "tools.shell.env.pass",
            "tools.shell.transaction_scope",
            "tools.utility.exempt_tools",
        ];
        for key in OF_THE_USER {
            assert_eq!(Rule::of(key), Rule::Never, "{key}");
        }
        for key in ONLY_TIGHTENED {
            let rule = Rule::of(key);
            assert!(!matches!(rule, Rule::Never | Rule::Free), "{key}: {rule:?}");
        }
        for (key, field) in schema_shape::root().settings() {
            use schema_shape::Shape;
            let is_plain = matches!(
                field.shape,
                Shape::Boolean | Shape::Integer(..) | Shape::Number(..) | Shape::Choice(_)
            );
            let listed = OF_THE_USER.iter().chain(ONLY_TIGHTENED);
            let is_listed = listed.into_iter().any(|listed| *listed == key);
            assert!(
                is_plain || is_listed,
                "{key} holds text and is in neither list"
            );
        }
    }

    /// Proves CFG-1: the recipients of a conversation are the user's choice, under old names as well.
    #[test]
    fn project_never_chooses_a_recipient() {
        for text in [
            "llm.default = 'other'",
            "llm.fallback = ['other']",
            "llm.fallback = []",
            "llm.embed_provider = 'other'",
            "agent.compress_provider = 'other'",
            "agent.parameter_reformat_provider = 'other'",
            "tools.retry.parameter_reformat_provider = 'other'",
            "tools.adversarial_policy.provider = 'other'",
            "tools.overflow.summary_provider = 'other'",
            "llm.ollama.base_url = 'http://evil.example'",
            "llm.ollama = {}",
            "llm.providers = []",
            "[[llm.providers]]\nname = 'ollama'\ntype = 'ollama'",
            "[[mcp.servers]]\nname = 'x'\nurl = 'http://evil.example'",
        ] {
            let error = enforce("", text).expect_err(text);
            assert!(error.contains("may not set it"), "{text}: {error}");
        }
    }

    /// Proves CFG-1: the orders name all values of their setting.
    #[test]
    fn orders_are_complete() {
        for (key, field) in schema_shape::root().settings() {
            if let (Rule::Towards(order), schema_shape::Shape::Choice(names)) =
                (Rule::of(&key), &field.shape)
            {
                let order: BTreeSet<&str> = order.iter().copied().collect();
                assert_eq!(order, names.iter().map(String::as_str).collect(), "{key}");
            }
        }
    }

    /// Proves CFG-1.
    #[test]
    fn project_can_tighten() {
        let check = |user: &str, project: &str, expect: &str| {
            let found = enforce(user, project).unwrap_or_else(|error| panic!("{project}: {error}"));
            assert_eq!(found, expect.parse().unwrap(), "{project}");
        };
        for same in [
            "tools.mode = 'plan'",
            "tools.mode = 'ask'",
            "tools.shell.sandbox.mode = 'required'",
            "agent.max_tool_iterations = 3",
            "agent.context_budget_tokens = 100",
            "agent.max_cost_usd = 0.5",
            "agent.max_tokens_per_session = 100",
            "memory.synchronous = 'full'",
            "tools.shell.timeout = 500",
            "tools.shell.env.set = {}",
            "tools.file.allowed_paths = ['/repo/src']",
            "tools.file.allow_read = ['/repo/**']",
        ] {
            check("", same, same);
        }
        check(
            "tools.mode = 'full'",
            "tools.mode = 'auto-edit'",
            "tools.mode = 'auto-edit'",
        );
        check(
            "",
            "tools.file.allowed_paths = ['src', './a']",
            "tools.file.allowed_paths = ['/repo/src', '/repo/a']",
        );
        check(
            "tools.file.allowed_paths = ['/', '~']",
            "tools.file.allowed_paths = ['~/x']",
            "tools.file.allowed_paths = ['/h/x']",
        );
        check(
            "",
            "tools.shell.allowed_paths = []",
            "tools.shell.allowed_paths = ['/repo']",
        );
        check(
            "tools.shell.blocked_constructs = ['eval']",
            "tools.shell.blocked_constructs = ['backticks']",
            "tools.shell.blocked_constructs = ['eval', 'backticks']",
        );
        check(
            "tools.shell.env.pass = ['A', 'B']",
            "tools.shell.env.pass = ['B']",
            "tools.shell.env.pass = ['B']",
        );
        check(
            "tools.shell.env.block = ['A']",
            "tools.shell.env.block = ['B', 'A']",
            "tools.shell.env.block = ['A', 'B']",
        );
        check(
            "tools.shell.blocked_commands = ['a b']",
            "tools.shell.blocked_commands = ['c']",
            "tools.shell.blocked_commands = ['a b', 'c']",
        );
        check(
            "",
            "tools.shell.allow_network = false",
            "tools.shell.allow_network = false",
        );
        check(
            "agent.max_tool_iterations = 50",
            "agent.max_tool_iterations = 50",
            "agent.max_tool_iterations = 50",
        );
    }

    /// Proves CFG-1.
    #[test]
    fn project_cannot_loosen() {
        let check = |user: &str, project: &str, expect: &str| {
            let error = enforce(user, project).expect_err(project);
            assert!(error.starts_with("c.toml:1:"), "{error}");
            assert!(error.contains(expect), "{error}");
            assert!(error.ends_with("set it in /user.toml"), "{error}");
        };
        check("", "tools.mode = 'full'", "\"full\" is looser than \"ask\"");
        check(
            "tools.mode = 'plan'",
            "tools.mode = 'ask'",
            "\"ask\" is looser than \"plan\"",
        );
        check("", "agent.max_tool_iterations = 11", "11 is more than 10");
        check(
            "memory.synchronous = 'full'",
            "memory.synchronous = 'normal'",
            "looser",
        );
        check("", "memory.path = 'x.db'", "may not set it");
        check("", "llm.providers = []", "may not set it");
        check(
            "",
            "[[llm.providers]]\nname = 'x'\ntype = 'openai'",
            "(`llm.providers`)",
        );
        check(
            "",
            "tools.shell.env.set = { LD_PRELOAD = 'x.so' }",
            "(`tools.shell.env.set`)",
        );
        check(
            "",
            "tools.shell.env.pass = ['*']",
            "\"*\" is not in the list",
        );
        check(
            "",
            "tools.file.allowed_paths = ['/']",
            "/ is outside; allowed without it: /repo",
        );

        check(
            "",
            "tools.file.allowed_paths = ['src/../..']",
            "/ is outside",
        );
        check("", "tools.file.allowed_paths = ['link']", "/etc is outside");
        check(
            "",
            "tools.file.allowed_paths = ['/repository']",
            "is outside",
        );
        check("", "tools.file.allowed_paths = ['~']", "/h is outside");
        check(
            "",
            "tools.shell.allowed_paths = ['missing']",
            "cannot be examined",
        );
        check(
            "tools.file.allowed_paths = ['/a']",
            "tools.file.allowed_paths = []",
            "/repo is outside",
        );
        check(
            "tools.shell.allow_network = false",
            "tools.shell.allow_network = true",
            "looser",
        );
        check("", "tools.shell.max_timeout = 601", "601 is more than 600");
        check("", "tools.shell.sandbox.mode = 'off'", "\"off\" is looser");
        check(
            "tools.shell.sandbox.mode = 'required'",
            "tools.shell.sandbox.mode = 'best-effort'",
            "looser than \"required\"",
        );
        check(
            "tools.shell.sandbox.writable = ['~/.cargo']",
            "tools.shell.sandbox.writable = ['~/.cargo']",
            "may not set it",
        );
    }
}
