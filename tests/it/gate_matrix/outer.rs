//! Rows of the outer gates: audit, reputation, known, quota, blocklist, policy, adversarial.

use serde_json::{Value, json};

use super::case::{Case, Entry, Expect, ONE_CALL, OWN, Outcome, Say, bash, read, touch};
use crate::rig::{Home, Reply, execute};

/// A configuration that allows commands, so that only the tested gate decides.
macro_rules! allowing {
    ($config:expr) => {
        concat!(
            $config,
            "\n[[tools.permissions.bash]]\npattern = \"*\"\naction = \"allow\"\n"
        )
    };
}
pub(super) use allowing;

/// The reason for a row that no sub-agent reaches.
const REFUSED_START: &str = "the call that starts the sub-agent is refused already";

/// The only text that the model receives about a policy denial.
const DENIED: &str = "policy denied this call";

/// Creates the database.
fn open(home: &Home) {
    home.zeph(["tools", "list"]).code(0);
}

pub(super) fn audit() -> Vec<Case> {
    let case = |outcome, what| Case::new("audit", outcome, what);
    let blocked = Expect::blocked()
        .model_reads(&["no audit entry can be written"])
        .user_reads(&["bash did not run"]);
    vec![
        case(Outcome::Allowed, "a sink that stores the entry")
            .config(allowing!("[tools.audit]\nrequired = true"))
            .expect(Expect::runs()),
        case(Outcome::Fault, "one of two required sinks cannot be written")
            .config(allowing!(
                "[tools.audit]\nrequired = true\njsonl = true\npath = \"/dev/full\""
            ))
            .not_at(&[Entry::SubAgent], REFUSED_START)
            .expect(blocked.clone()),
        case(Outcome::Fault, "the one required sink cannot be written")
            .config(allowing!("[tools.audit]\nrequired = true"))
            .prepare(|home| {
                open(home);
                execute(
                    &home.database(),
                    "CREATE TRIGGER no BEFORE INSERT ON tool_audit_intent BEGIN SELECT RAISE(ABORT, 'no'); END; \
                     CREATE TRIGGER never BEFORE INSERT ON tool_audit BEGIN SELECT RAISE(ABORT, 'no'); END",
                );
            })
            .not_at(&[Entry::SubAgent], REFUSED_START)
            .expect(blocked.without_entry()),
    ]
}

pub(super) fn reputation() -> Vec<Case> {
    vec![
        Case::new(
            "reputation",
            Outcome::Allowed,
            "a tool with an invalid call before",
        )
        .config(allowing!(""))
        .before(("bash", json!({ "cmd_wrong": 1 })))
        .reformat(|| Reply::text("null"))
        .expect(Expect::runs()),
    ]
}

pub(super) fn known() -> Vec<Case> {
    let case = |outcome, what| Case::new("known", outcome, what).config(allowing!(""));
    let misfit = || ("bash", json!({ "comand_line": ["touch ran"] }));
    let reformatted = || Reply::text(r#"{"command": "touch ran"}"#);
    let unfit = Expect::fails("invalid_parameters").model_reads(&["category: invalid_parameters"]);
    vec![
        case(Outcome::Allowed, "arguments that fit").expect(Expect::runs()),
        case(Outcome::Allowed, "an alias with repaired arguments")
            .call(("bash", json!({ "cmd": "touch ran" })))
            .not_at(&[Entry::Typed], "the typed text is the command")
            .expect(Expect::runs()),
        case(Outcome::Allowed, "arguments that a model repaired")
            .call(misfit())
            .reformat(reformatted)
            .expect(Expect::runs().model_reads(&["the arguments did not match"]))
            .not_at(&[Entry::Typed], "the typed text is the command")
            .at(&OWN, &unfit)
            .at(&[Entry::McpServe], &unfit),
        case(Outcome::Denied, "no such tool")
            .call(("bahs", json!({ "command": "touch ran" })))
            .expect(Expect::fails("tool_not_found").model_reads(&["did you mean bash?"])),
        case(Outcome::Denied, "arguments that do not fit")
            .call(misfit())
            .reformat(|| Reply::text("null"))
            .not_at(&[Entry::Typed], "the typed text is the command")
            .expect(unfit.clone()),
        case(Outcome::Denied, "arguments that are not JSON")
            .call(("bash", Value::String("touch ran".to_owned())))
            .reformat(|| Reply::text("null"))
            .expect(unfit.clone()),
        Case::new(
            "known",
            Outcome::Denied,
            "repaired arguments that rules deny",
        )
        .config("[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"")
        .call(misfit())
        .reformat(reformatted)
        .expect(Expect::blocked().model_reads(&["says deny"]))
        .not_at(&[Entry::Typed], "the typed text is the command")
        .at(&OWN, &unfit)
        .at(&[Entry::McpServe], &unfit),
        case(Outcome::Fault, "the repair request fails")
            .call(misfit())
            .reformat(|| Reply::error(500, "oops", "broken"))
            .not_at(&OWN, "arguments of the user are not repaired")
            .expect(unfit.clone()),
        case(Outcome::Fault, "the repair response is prose")
            .call(misfit())
            .reformat(|| Reply::text("Sure! I would run touch ran."))
            .not_at(&OWN, "arguments of the user are not repaired")
            .expect(unfit),
    ]
}

pub(super) fn quota() -> Vec<Case> {
    let case = |outcome, what| Case::new("quota", outcome, what);
    let blocked = Expect::blocked().turn_ends(4);
    let uncounted = Expect::blocked().model_reads(&["cannot be counted"]);
    vec![
        // The call that starts a sub-agent counts too.
        case(Outcome::Allowed, "a call within the limit")
            .config(allowing!("[tools]\nmax_tool_calls_per_session = 3"))
            .before(("list_tasks", json!({})))
            .expect(Expect::runs()),
        case(Outcome::Denied, "the limit is 0")
            .config(allowing!("[tools]\nmax_tool_calls_per_session = 0"))
            .not_at(&[Entry::SubAgent], REFUSED_START)
            .expect(blocked.clone().model_reads(&["quota_blocked: 0 of 0"])),
        case(Outcome::Denied, "the limit is reached")
            .config(allowing!("[tools]\nmax_tool_calls_per_session = 1"))
            .before(("list_tasks", json!({})))
            .not_at(&[Entry::SubAgent], "the next row has its count")
            .expect(blocked.clone().model_reads(&["quota_blocked: 1 of 1"])),
        case(Outcome::Denied, "the start of a sub-agent is the last allowed call")
            .config(allowing!("[tools]\nmax_tool_calls_per_session = 1"))
            .only_at(Entry::SubAgent, "no sub-agent is started")
            .expect(blocked.model_reads(&["quota_blocked: 1 of 1"])),
        case(Outcome::Fault, "the count is missing")
            .config(allowing!("[tools]\nmax_tool_calls_per_session = 9"))
            .prepare(|home| {
                open(home);
                execute(&home.database(), "DROP TABLE call_quota");
            })
            .not_at(&[Entry::SubAgent], REFUSED_START)
            .expect(uncounted.clone()),
        case(Outcome::Fault, "the count disappears while the session runs")
            .config(allowing!("[tools]\nmax_tool_calls_per_session = 9"))
            .before(("list_tasks", json!({})))
            .meanwhile(|home| execute(&home.database(), "DROP TABLE call_quota"))
            .expect(uncounted.clone()),
        case(Outcome::Fault, "the count cannot be written")
            .config(allowing!("[tools]\nmax_tool_calls_per_session = 9"))
            .prepare(|home| {
                open(home);
                execute(
                    &home.database(),
                    "CREATE TRIGGER a BEFORE INSERT ON call_quota BEGIN SELECT RAISE(ABORT, 'no'); END; \
                     CREATE TRIGGER b BEFORE UPDATE ON call_quota BEGIN SELECT RAISE(ABORT, 'no'); END",
                );
            })
            .not_at(&[Entry::SubAgent], REFUSED_START)
            .expect(uncounted),
    ]
}

pub(super) fn blocklist() -> Vec<Case> {
    let case = |outcome, what| Case::new("blocklist", outcome, what);
    let refused = Expect::blocked().model_reads(&["the shell's blocklist refuses this command"]);
    vec![
        case(Outcome::Allowed, "an ordinary command")
            .config(allowing!(""))
            .expect(Expect::runs()),
        case(Outcome::Denied, "a part of the command is listed")
            .config(allowing!(""))
            .args(&["--yes"])
            .call(bash("touch ran; sudo true"))
            .not_at(&[Entry::Typed], "it depends on whether sudo is installed")
            .expect(refused.clone().model_reads(&["`sudo` is on the blocklist"])),
        case(Outcome::Denied, "an entry of the configuration")
            .config(allowing!("[tools.shell]\nblocked_commands = [\"touch\"]"))
            .args(&["--yes"])
            .expect(refused.clone()),
        case(Outcome::Asked, "an undetermined word: no")
            .config(allowing!(""))
            .call(bash("X=touch; $X ran"))
            .say(Say::No)
            .expect(Expect::unasked())
            .at(
                &[Entry::Terminal],
                &Expect::blocked().model_reads(&["the user refused this call"]),
            ),
        case(Outcome::Asked, "an undetermined word: yes")
            .config(allowing!(""))
            .call(bash("X=touch; $X ran"))
            .say(Say::Yes)
            .at(&[Entry::Scheduled], &Expect::unasked())
            .expect(Expect::runs().by("user")),
        case(Outcome::Fault, "a command that cannot be parsed")
            .config(allowing!(""))
            .args(&["--yes"])
            .call(bash("touch ran; \"open"))
            .not_at(&[Entry::Typed], "the shell parses the typed text")
            .expect(refused.model_reads(&["the command cannot be parsed, so it does not run"])),
        case(Outcome::Fault, "an invalid entry")
            .config(allowing!("[tools.shell]\nblocked_commands = [\"\"]"))
            .expect(Expect::no_start(&["blocked_commands"])),
    ]
}

pub(super) fn policy() -> Vec<Case> {
    let case = |outcome, what| Case::new("policy", outcome, what);
    let denied = Expect::blocked()
        .model_reads(&[DENIED])
        .hides(&["tools.policy", "config.toml", "touch"])
        .user_reads(&["the policy denied bash", "config.toml"]);
    vec![
        case(Outcome::Allowed, "a rule that allows")
            .config(allowing!(
                "[tools.policy]\nenabled = true\nrules = [{ effect = \"allow\", tools = [\"bash\", \"task\"] }]"
            ))
            .expect(Expect::runs().matched("tools.policy.rules[0]")),
        case(Outcome::Denied, "a rule that denies regardless of approvals")
            .config(allowing!(
                "[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n\
                 rules = [{ effect = \"deny\", tools = [\"bash\"], args_match = \"touch\" }]"
            ))
            .args(&["--yes"])
            .expect(denied.clone().matched("tools.policy.rules[0]")),
        case(Outcome::Denied, "a rule of authorization")
            .config(allowing!(
                "[tools.authorization]\nenabled = true\n\
                 rules = [{ action = \"deny\", tool = \"bash\", paths = [\"**/ran\"] }, \
                 { action = \"allow\", tool = \"task\" }]"
            ))
            .call(bash("touch ./ran"))
            .args(&["--mode", "auto-edit"])
            .expect(denied.matched("tools.authorization.rules[0]")),
        case(Outcome::Denied, "no rule matches")
            .config(allowing!(
                "[tools.policy]\nenabled = true\nrules = [{ effect = \"allow\", tools = [\"task\"] }]"
            ))
            .expect(
                Expect::blocked()
                    .model_reads(&[DENIED])
                    .hides(&["default_effect"])
                    .matched("default_effect"),
            ),
        case(Outcome::Fault, "an invalid glob")
            .config(allowing!(
                "[tools.policy]\nenabled = true\nrules = [{ effect = \"allow\", tools = [\"bash\"], paths = [\"[\"] }]"
            ))
            .expect(Expect::no_start(&["config.toml:3", "tools.policy.rules[0]"])),
        case(Outcome::Fault, "an invalid expression")
            .config(allowing!(
                "[tools.policy]\nenabled = true\nrules = [{ effect = \"deny\", tools = [\"bash\"], args_match = \"(\" }]"
            ))
            .expect(Expect::no_start(&["config.toml:3", "tools.policy.rules[0]"])),
        case(Outcome::Fault, "the rules file disappears while the session runs")
            .config(allowing!(
                "[tools.policy]\nenabled = true\ndefault_effect = \"allow\"\n\
                 rules = [{ effect = \"deny\", tools = [\"bash\"] }]"
            ))
            .before(read("a.txt"))
            .meanwhile(|home| std::fs::remove_file(home.config_file()).unwrap())
            .expect(Expect::blocked().model_reads(&[DENIED]).matched("tools.policy.rules[0]"))
            .not_at(&ONE_CALL, "each call reads the rules again"),
    ]
}

/// A failure of a judge: its cause, its reply, and the texts in the trail.
type Failure = (&'static str, fn() -> Reply, &'static str, &'static str);

const FAILURES: [Failure; 4] = [
    (
        "the judge responds with prose",
        || Reply::text("Sure, that is fine: ALLOW"),
        "deny (fail_closed: no_answer)",
        "allow (fail_open: no_answer)",
    ),
    (
        "the judge fails",
        || Reply::error(500, "oops", "broken"),
        "deny (fail_closed: error)",
        "allow (fail_open: error)",
    ),
    (
        "the response of the judge is unreadable",
        || Reply::raw(200, "text/event-stream", "nonsense\n\n"),
        "deny (fail_closed: error)",
        "allow (fail_open: error)",
    ),
    (
        "the judge does not respond",
        Reply::hang,
        "deny (fail_closed: timeout)",
        "allow (fail_open: timeout)",
    ),
];

pub(super) fn dependencies() -> Vec<Case> {
    let case = |outcome, what| Case::new("dependencies", outcome, what);
    let unmet =
        Expect::blocked().model_reads(&["bash needs a successful call of list_tasks first"]);
    let unknown = Expect::blocked().model_reads(&["the tools that succeeded in this session"]);
    vec![
        case(Outcome::Allowed, "the required tool succeeded")
            .config(allowing!(
                "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.bash]\nrequires = [\"list_tasks\"]"
            ))
            .before(("list_tasks", json!({})))
            .expect(Expect::runs()),
        case(Outcome::Denied, "the required tool was not called")
            .config(allowing!(
                "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.bash]\nrequires = [\"list_tasks\"]"
            ))
            .expect(unmet.clone()),
        case(Outcome::Denied, "the required tool failed")
            .config(allowing!(
                "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.bash]\nrequires = [\"read\"]"
            ))
            .before(read("missing.txt"))
            .expect(Expect::blocked().model_reads(&["a successful call of read first"])),
        case(Outcome::Fault, "the successes cannot be read")
            .config(allowing!(
                "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.bash]\nrequires = [\"list_tasks\"]"
            ))
            .prepare(|home| {
                open(home);
                execute(&home.database(), "DROP TABLE completed_tools");
            })
            .not_at(&[Entry::SubAgent], REFUSED_START)
            .expect(unknown),
        case(Outcome::Fault, "a success cannot be stored")
            .config(allowing!(
                "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.bash]\nrequires = [\"list_tasks\"]"
            ))
            .prepare(|home| {
                open(home);
                execute(
                    &home.database(),
                    "CREATE TRIGGER a BEFORE INSERT ON completed_tools BEGIN SELECT RAISE(ABORT, 'no'); END",
                );
            })
            .before(("list_tasks", json!({})))
            .expect(unmet),
    ]
}

pub(super) fn adversarial() -> Vec<Case> {
    const ON: &str = allowing!(
        "[tools.adversarial_policy]\nenabled = true\npolicies = [\"Nothing is touched.\"]\nexempt_tools = [\"task\"]\n\
         timeout_ms = 300"
    );
    const OPEN: &str = allowing!(
        "[tools.adversarial_policy]\nenabled = true\npolicies = [\"Nothing is touched.\"]\nexempt_tools = [\"task\"]\n\
         timeout_ms = 300\nfail_open = true"
    );
    let case = |outcome, what| Case::new("adversarial", outcome, what).config(ON);
    let denied = Expect::blocked()
        .model_reads(&[DENIED])
        .hides(&["adversarial"]);
    let mut cases = vec![
        case(Outcome::Allowed, "the judge allows")
            .judge(|| Reply::text("ALLOW"))
            .expect(Expect::runs().judged("allow")),
        case(Outcome::Allowed, "an exempt tool")
            .config(allowing!(
                "[tools.adversarial_policy]\nenabled = true\npolicies = [\"Nothing is touched.\"]\nexempt_tools = [\"bash\", \"task\"]"
            ))
            .expect(Expect::runs()),
        case(Outcome::Denied, "the judge denies regardless of approvals")
            .args(&["--yes"])
            .judge(|| Reply::text("DENY"))
            .expect(
                denied
                    .clone()
                    .judged("deny")
                    .user_reads(&["the adversarial policy denied it"]),
            ),
        case(Outcome::Fault, "the judge is unknown")
            .config(allowing!(
                "[tools.adversarial_policy]\nenabled = true\npolicies = [\"Nothing is touched.\"]\nprovider = \"locl\""
            ))
            .expect(Expect::no_start(&["config.toml:4", "there is no provider called"])),
        case(Outcome::Fault, "the judge has no key")
            .config(allowing!(
                "[tools.adversarial_policy]\nenabled = true\npolicies = [\"Nothing is touched.\"]\nprovider = \"judge\"\n\
                 exempt_tools = [\"task\"]\n\
                 [[llm.providers]]\nname = \"judge\"\ntype = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n\
                 api_key_env = \"NO_SUCH_KEY\"\n[llm]\ndefault = \"local\""
            ))
            .expect(denied.clone().judged("deny (fail_closed: unavailable)")),
    ];
    for (what, judge, closed, open) in FAILURES {
        cases.push(
            case(Outcome::Fault, what)
                .judge(judge)
                .args(&["--yes"])
                .expect(
                    denied
                        .clone()
                        .judged(closed)
                        .user_reads(&["the adversarial policy could not be applied"]),
                ),
        );
        cases.push(
            case(Outcome::Fault, what).config(OPEN).judge(judge).expect(
                Expect::runs()
                    .judged(open)
                    .user_reads(&["runs without a check"]),
            ),
        );
    }
    cases.push(
        case(Outcome::Denied, "the judge allows a call that rules deny")
            .config(concat!(
                "[tools.adversarial_policy]\nenabled = true\npolicies = [\"Nothing is touched.\"]\n",
                "[[tools.permissions.bash]]\npattern = \"touch *\"\naction = \"deny\"\n"
            ))
            .call(touch())
            .judge(|| Reply::text("ALLOW"))
            .expect(Expect::blocked().judged("allow").model_reads(&["says deny"])),
    );
    cases
}
