//! `zeph doctor`: checks of the installation.

mod mcp;
mod provider;
pub(super) mod report;

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;
use zeph_tools::plural::counted_as;
use zeph_tools::shell::SandboxMode;
use zeph_tools::shell::sandbox::{Enforcement, NOT_HIDDEN, probe};

use super::args::GlobalArgs;
use super::{Exit, print, print_as_is, with_causes};
use crate::assemble::{
    App, AuditLines, BuildOptions, UserRules, chosen_config, judge, open_store,
    withhold_environment,
};
use crate::config::{Environment, Loaded, load};
use crate::logs;
use crate::output::json_lines;
use crate::telemetry::{Collector, NOT_BUILT_IN};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Warning,
    Failed,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    name: Cow<'static, str>,
    verdict: Verdict,
    detail: String,
}

fn check(name: impl Into<Cow<'static, str>>, verdict: Verdict, detail: impl Into<String>) -> Check {
    Check {
        name: name.into(),
        verdict,
        detail: detail.into(),
    }
}

/// Runs all checks; the exit code is 1 if one failed.
pub(crate) async fn run(global: &GlobalArgs, json: bool) -> anyhow::Result<Exit> {
    let checks = checks(global).await;
    match json {
        true => print_as_is(&json_lines(&checks)?)?,
        false => print(&checks.iter().map(line).collect::<Vec<_>>().join("\n"))?,
    }
    let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn line(check: &Check) -> String {
    let mark = match check.verdict {
        Verdict::Ok => "ok  ",
        Verdict::Warning => "warn",
        Verdict::Failed => "FAIL",
    };
    format!("{mark}  {:<14} {}", check.name, check.detail)
}

async fn checks(global: &GlobalArgs) -> Vec<Check> {
    let env = match Environment::of_process() {
        Ok(env) => env,
        Err(error) => {
            return vec![check("directory", Verdict::Failed, error.to_string())];
        }
    };
    // An error in the configuration may quote a value of the environment.
    withhold_environment(&env);
    let loaded = match load(&env, &global.overrides()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            return vec![check("configuration", Verdict::Failed, errors.to_string())];
        }
    };
    logs::set_format(&loaded.config.log);
    let mut checks = vec![configuration(&loaded), log_file()];
    checks.push(telemetry(&loaded, &env).await);
    checks.push(database(&loaded).await);
    let (tools, hides) = stack(&loaded, &env, global).await;
    checks.push(tools);
    checks.push(filters(&loaded, &env));
    checks.extend(adversarial(&loaded, &env, global).await);
    checks.push(audit(&loaded));
    checks.push(shell(&env));
    checks.push(sandbox(&loaded));
    checks.extend(reading(&loaded, hides));
    checks.extend(provider::checks(&loaded, &env, global).await);
    checks.extend(mcp::checks(&loaded, &env).await);
    checks
}

fn configuration(loaded: &Loaded) -> Check {
    let file = &loaded.paths.user_file;
    match loaded.warnings.as_slice() {
        [] if file.exists() => check("configuration", Verdict::Ok, file.display().to_string()),
        [] => check(
            "configuration",
            Verdict::Ok,
            format!("defaults ({} does not exist)", file.display()),
        ),
        warnings => check("configuration", Verdict::Warning, warnings.join("; ")),
    }
}

async fn database(loaded: &Loaded) -> Check {
    match open_store(loaded).await {
        Ok(store) => match store.close().await {
            Ok(()) => check("database", Verdict::Ok, store.name()),
            Err(error) => check("database", Verdict::Failed, error.to_string()),
        },
        Err(error) => check("database", Verdict::Failed, error.to_string()),
    }
}

/// The log file.
fn log_file() -> Check {
    let place = logs::path().map(|path| path.display().to_string());
    match (logs::try_open(), place) {
        (Ok(size), Some(place)) => {
            let detail = format!("{place}, {} kB", size.div_ceil(1000));
            check("log", Verdict::Ok, detail)
        }
        (Ok(_), None) => check("log", Verdict::Failed, "no directory for it is known"),
        (Err(error), Some(place)) => {
            let folder = Path::new(&place).parent().unwrap_or(Path::new("/"));
            let detail = format!(
                "{place} cannot be written: {error}; make the folder yours: mkdir -p {folder:?} && chmod u+rwx {folder:?}"
            );
            check("log", Verdict::Failed, detail)
        }
        (Err(error), None) => {
            let detail = format!("warnings are not stored: {error}; set HOME");
            check("log", Verdict::Failed, detail)
        }
    }
}

/// The collector of traces and metrics.
async fn telemetry(loaded: &Loaded, env: &Environment) -> Check {
    const NAME: &str = "telemetry";
    let collector = match Collector::choose(&loaded.config.telemetry, env) {
        Ok(Some(collector)) => collector,
        Ok(None) => return check(NAME, Verdict::Ok, "off: no endpoint is set"),
        Err(error) => return check(NAME, Verdict::Failed, error),
    };
    if !cfg!(feature = "otel") {
        return check(NAME, Verdict::Failed, NOT_BUILT_IN);
    }
    let place = collector.shown();
    match provider::reach(&place).await {
        Ok(()) => {
            let content = match collector.content {
                true => "with the content of prompts and calls",
                false => "without content",
            };
            check(NAME, Verdict::Ok, format!("{place}, {content}"))
        }
        Err(error) => {
            let detail = format!(
                "{place} cannot be reached: {error}; check that the collector is running and \
                 `[telemetry] endpoint` is correct"
            );
            check(NAME, Verdict::Failed, detail)
        }
    }
}

/// The sinks of the audit trail.
fn audit(loaded: &Loaded) -> Check {
    let audit = &loaded.config.tools.audit;
    if audit.is_off() {
        let detail = "calls have no entries: every sink of `[tools.audit]` is off";
        return check("audit", Verdict::Warning, detail);
    }
    let log = loaded.paths.audit_log.display().to_string();
    let sinks = [
        (audit.sqlite, "the database"),
        (audit.jsonl, log.as_str()),
        (audit.stdout, "the output"),
    ];
    let on: Vec<&str> = sinks
        .into_iter()
        .filter_map(|(on, name)| on.then_some(name))
        .collect();
    let required = match audit.required {
        true => "; a call without an entry does not run",
        false => "",
    };
    let detail = format!("entries go to {}{required}", on.join(", "));
    check("audit", Verdict::Ok, detail)
}

/// Checks the tools, and returns whether files denied by `deny_read` are hidden from commands.
async fn stack(loaded: &Loaded, env: &Environment, global: &GlobalArgs) -> (Check, bool) {
    // A separate check covers the rules of filters.
    let options = BuildOptions {
        quiet: true,
        ..global.build_options()
    };
    match App::new(loaded.clone(), env.clone(), options, AuditLines::Stderr).await {
        Ok(assembly) => {
            let layers = assembly.stack.layer_names().join(" → ");
            let hides = assembly.hides_denied().await;
            let _ = assembly.close().await;
            let tools = check("tools", Verdict::Ok, format!("layers: {layers}"));
            (tools, hides)
        }
        Err(error) => (check("tools", Verdict::Failed, with_causes(&error)), false),
    }
}

/// The judge of calls, its number of policies, and the result for calls without a verdict; `None` if the gate is off.
async fn adversarial(loaded: &Loaded, env: &Environment, global: &GlobalArgs) -> Option<Check> {
    const NAME: &str = "adversarial";
    let policy = &loaded.config.tools.adversarial_policy;
    if !policy.enabled {
        return None;
    }
    let otherwise = match policy.fail_open {
        true => "calls without a decision RUN (`fail_open = true`)",
        false => "calls without a decision are refused (`fail_open = false`)",
    };
    let provider = match judge(loaded, env, global.model.as_deref()) {
        Ok(provider) => provider,
        Err(why) => {
            let detail = format!("calls cannot be checked: {why}; {otherwise}");
            return Some(check(NAME, Verdict::Failed, detail));
        }
    };
    let (name, model) = (provider.name(), provider.model());
    let detail = format!(
        "{name} ({model}) checks calls against {}; {otherwise}",
        counted_as(policy.policies.len(), "policy", "policies")
    );
    let mut configured = loaded.config.llm.providers.iter();
    let url = match configured.find(|config| config.name == name) {
        Some(config) => provider::server(config),
        None => chosen_config(loaded, env, None)
            .ok()
            .and_then(|config| provider::server(&config)),
    };
    let verdict = match policy.fail_open {
        true => Verdict::Warning,
        false => Verdict::Ok,
    };
    Some(match url {
        None => check(NAME, verdict, detail),
        Some(url) => match provider::reach(&url).await {
            Ok(()) => check(NAME, verdict, detail),
            Err(error) => {
                let detail = format!("{detail}; {url} cannot be reached: {error}");
                check(NAME, Verdict::Failed, detail)
            }
        },
    })
}

/// The rules that filter command output, and those that are not used.
fn filters(loaded: &Loaded, env: &Environment) -> Check {
    if !loaded.config.tools.filters.enabled {
        let detail = "off (`[tools.filters] enabled`): the model receives the unfiltered output of \
            commands";
        return check("filters", Verdict::Ok, detail);
    }
    let added = UserRules::load(loaded, env);
    let not_used = added.not_used();
    let (user, project) = (added.user.len(), added.project.len());
    let all = added.book().rules().count();
    let mut detail = format!("{all} rules, of which {user} are yours and {project} this project's");
    for text in &not_used {
        detail.push_str("; ");
        detail.push_str(&text.trim_end().replace('\n', " "));
    }
    let verdict = match not_used.is_empty() {
        true => Verdict::Ok,
        false => Verdict::Warning,
    };
    check("filters", verdict, detail)
}

fn shell(env: &Environment) -> Check {
    match zeph_tools::shell::program::find_shell(env.var("PATH")) {
        Some(path) if path.ends_with("bash") => {
            check("shell", Verdict::Ok, path.display().to_string())
        }
        Some(path) => check(
            "shell",
            Verdict::Warning,
            format!("{} (no bash on PATH: commands run with sh)", path.display()),
        ),
        None => check(
            "shell",
            Verdict::Failed,
            "neither bash nor sh is on PATH: the bash tool cannot run commands",
        ),
    }
}

/// The restrictions that the operating system enforces on commands.
fn sandbox(loaded: &Loaded) -> Check {
    if cfg!(target_os = "linux") && !Path::new("/proc/self/fd").exists() {
        return check(
            "sandbox",
            Verdict::Warning,
            "/proc is not mounted: orphaned grandchildren of commands cannot be found",
        );
    }
    let shell = &loaded.config.tools.shell;
    let mode = shell.sandbox.mode;
    match probe() {
        Err(error) => check(
            "sandbox",
            Verdict::Failed,
            format!("the OS sandbox cannot be set up, so commands are refused: {error}"),
        ),
        Ok(found) => {
            let (verdict, detail) = sandbox_words(mode, shell.allow_network, found);
            check("sandbox", verdict, detail)
        }
    }
}

fn sandbox_words(mode: SandboxMode, network: bool, found: Enforcement) -> (Verdict, String) {
    if mode == SandboxMode::Off {
        let has = if found.confines_writes() {
            "off (`[tools.shell.sandbox] mode`), but this system supports it"
        } else {
            "off (`[tools.shell.sandbox] mode`)"
        };
        let detail = format!("commands run without an OS sandbox: {has}");
        return (Verdict::Warning, detail);
    }
    match (found.lacks(network), mode) {
        (None, _) => {
            let by = match found.landlock {
                Some(version) => format!("Landlock version {version}"),
                None => "Seatbelt".to_owned(),
            };
            let network = if network {
                "commands can use the network"
            } else if found.seatbelt {
                "Seatbelt blocks the network"
            } else {
                "seccomp blocks the network"
            };
            let questions = if found.seatbelt || found.seccomp {
                "read-only commands and mode auto need no confirmation"
            } else {
                "without seccomp, read-only commands and commands in mode auto need confirmation"
            };
            let detail = format!(
                "commands can only write below their directories ({by}); {network}; {questions}"
            );
            (Verdict::Ok, detail)
        }
        (Some(lack), SandboxMode::Required) => (
            Verdict::Failed,
            format!("{lack}; `[tools.shell.sandbox] mode` is \"required\": no command runs"),
        ),
        (Some(lack), _) => (
            Verdict::Warning,
            format!("{lack}; commands run without this protection"),
        ),
    }
}

/// The effect of the read rules on commands; `None` if there are no rules.
fn reading(loaded: &Loaded, hides: bool) -> Option<Check> {
    let file = &loaded.config.tools.file;
    if file.deny_read.is_empty() && file.allow_read.is_empty() {
        return None;
    }
    let mode = loaded.config.tools.shell.sandbox.mode;
    let denies = !file.deny_read.is_empty();
    let (verdict, detail) = reading_words(mode, denies, !file.allow_read.is_empty(), hides);
    Some(check("reading", verdict, detail))
}

fn reading_words(mode: SandboxMode, denies: bool, allows: bool, hides: bool) -> (Verdict, String) {
    let (verdict, mut detail) = match (denies, hides, mode) {
        (false, ..) => (Verdict::Ok, String::new()),
        (true, true, _) => (
            Verdict::Ok,
            "`deny_read` applies to commands: a command that names a denied path is refused, and \
             paths that exist at its start are hidden from it"
                .to_owned(),
        ),
        (true, false, SandboxMode::Off) => (
            Verdict::Warning,
            "`deny_read` applies to commands in part: a command that names a denied path is \
             refused, but other commands can read the path (`[tools.shell.sandbox] mode` is \"off\")"
                .to_owned(),
        ),
        (true, false, SandboxMode::Required) => (
            Verdict::Failed,
            format!("{NOT_HIDDEN}; `[tools.shell.sandbox] mode` is \"required\": no command runs"),
        ),
        (true, false, SandboxMode::BestEffort) => (Verdict::Warning, NOT_HIDDEN.to_owned()),
    };
    if allows {
        if denies {
            detail.push_str("; ");
        }
        detail.push_str("`allow_read` only applies to commands that name a file");
    }
    (verdict, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-20.
    #[test]
    fn sandbox_line_describes_the_enforcement_of_this_machine() {
        use SandboxMode::{BestEffort, Off, Required};
        let check = |mode, network, landlock, seccomp, verdict, words: &[&str]| {
            let found = Enforcement {
                landlock,
                seccomp,
                seatbelt: false,
            };
            let (said, detail) = sandbox_words(mode, network, found);
            assert_eq!(said, verdict, "{detail}");
            for word in words {
                assert!(detail.contains(word), "{word}: {detail}");
            }
        };
        use Verdict::{Failed, Ok, Warning};
        check(
            BestEffort,
            true,
            Some(7),
            true,
            Ok,
            &["version 7", "can use the network"],
        );
        check(Required, false, Some(5), true, Ok, &["seccomp blocks"]);
        check(BestEffort, true, None, true, Warning, &["no Landlock"]);
        check(BestEffort, false, Some(7), false, Warning, &["no seccomp"]);
        check(Required, true, None, true, Failed, &["no command runs"]);
        check(
            Off,
            true,
            Some(7),
            true,
            Warning,
            &["without an OS", "supports it"],
        );
        check(Off, true, None, false, Warning, &["without an OS sandbox"]);
    }

    /// Proves SH-20a.
    #[test]
    fn reading_line_describes_the_rules_for_commands() {
        use SandboxMode::{BestEffort, Off, Required};
        use Verdict::{Failed, Ok, Warning};
        let check = |mode, denies, allows, hides, verdict, words: &[&str]| {
            let (said, detail) = reading_words(mode, denies, allows, hides);
            assert_eq!(said, verdict, "{detail}");
            for word in words {
                assert!(detail.contains(word), "{word}: {detail}");
            }
        };
        check(BestEffort, true, false, true, Ok, &["are hidden"]);
        check(Required, true, false, true, Ok, &["are hidden"]);
        check(BestEffort, true, false, false, Warning, &["only commands"]);
        check(Required, true, false, false, Failed, &["no command runs"]);
        check(Off, true, false, false, Warning, &["in part", "off"]);
        check(Off, false, true, false, Ok, &["`allow_read` only applies"]);
        check(
            BestEffort,
            true,
            true,
            true,
            Ok,
            &["hidden", "; `allow_read`"],
        );
    }
}
