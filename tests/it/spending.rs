//! The cost of a session by turn, session and model, and its budgets.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, session_ids};

/// USD for a million tokens: each request of the rig's server (400 tokens in, 600 from the cache, 20 out) costs
/// 0.0013.
const PRICES: &str = "prices = { input = 2, output = 10.0, cached_input = 0.5 }";

/// A home with `server` as the provider, and additional lines of its block.
fn home(server: &OpenAi, block: &str, more: &str) -> Home {
    let home = Home::openai(server);
    let config = home.config_file();
    let text = std::fs::read_to_string(&config).unwrap();
    home.config(&format!("{more}\n{text}{block}\n"));
    home
}

fn ask(home: &Home, args: &[&str], code: i32) -> Value {
    let line = ["--yes", "--output-format", "json", "-p", "go"];
    home.zeph(line.iter().chain(args)).code(code).json()
}

/// A server whose model makes calls endlessly.
fn restless() -> OpenAi {
    OpenAi::start(|n, _| {
        let command = json!({ "command": format!("echo {n}") });
        Reply::calls(&n.to_string(), &[("bash", command)])
    })
}

fn talkative() -> OpenAi {
    OpenAi::start(|_, _| Reply::text("Fine."))
}

/// Proves LLM-11: a turn and a session report their cost; `--continue` adds to it.
#[test]
fn cost_is_reported() {
    let server = talkative();
    let home = home(&server, PRICES, "");
    let usage = json!({
        "input_tokens": 1000, "output_tokens": 20, "cached_tokens": 600, "cache_write_tokens": 0,
        "cost_usd": 0.0013,
    });
    assert_eq!(ask(&home, &[], 0)["usage"], usage);
    assert_eq!(ask(&home, &["--continue"], 0)["usage"], usage);
    let session = session_ids(&home.database()).remove(0);
    let line = "2 requests, 2000 tokens in (1200 cached, 0 written to the cache), 40 out, $0.0026";
    let by_model = format!("local (test-model): {line}");
    let together = format!("together: {line}");
    let words = [by_model.as_str(), together.as_str()];
    home.zeph(["sessions", "show", &session])
        .code(0)
        .prints(&words);
    home.zeph(["--continue", "-p", "/cost"])
        .code(0)
        .prints(&words);
    let exported = &home.export(&session)["spending"];
    assert_eq!(exported[0]["cost_nanos"], 2_600_000, "{exported}");
    assert_eq!(exported.as_array().unwrap().len(), 1);
    assert_eq!(server.requests().len(), 2, "/cost sends no request");
}

/// Proves LLM-11: a model without a known price has no cost, and is not used if a cost budget is set.
#[test]
fn unknown_price_is_not_counted() {
    let server = talkative();
    let open = home(&server, "", "");
    let object = ask(&open, &[], 0);
    assert_eq!(object["usage"].get("cost_usd"), None, "{object}");
    let unknown = ["price unknown", "[[llm.providers]]"];
    open.zeph(["--continue", "-p", "/cost"])
        .code(0)
        .prints(&unknown);

    let bounded = home(&server, "", "[agent]\nmax_cost_usd = 1.5\n");
    let refused = bounded.zeph(["-p", "go"]).code(1);
    refused.says(&[
        "max_cost_usd",
        "local (test-model)",
        "prices = {",
        "max_tokens_per_session",
    ]);
    assert_eq!(server.requests().len(), 1, "nothing was asked");

    // Earlier spending counts towards the budget, and its cost is unknown.
    let text = std::fs::read_to_string(open.config_file()).unwrap();
    open.config(&format!("[agent]\nmax_cost_usd = 1.5\n{text}{PRICES}\n"));
    let object = ask(&open, &["--continue"], 4);
    assert_eq!(object["stop_reason"], "budget");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(ask(&open, &[], 0)["stop_reason"], "done");
}

/// Proves LLM-11, CLI-3: a cost budget ends the turn before the next request, also in later turns.
#[test]
fn cost_budget_ends_the_turn() {
    let server = restless();
    let home = home(&server, PRICES, "[agent]\nmax_cost_usd = 0.003\n");
    let object = ask(&home, &[], 4);
    assert_eq!(object["stop_reason"], "budget");
    assert_eq!(object["usage"]["cost_usd"], 0.0039);
    assert_eq!(server.requests().len(), 3);
    let message = "stopped: this session cost $0.0039 of $0.0030 ([agent] max_cost_usd)";
    assert_eq!(object["message"], message);
    home.zeph(["--continue", "-p", "more"])
        .code(4)
        .says(&[message]);
    assert_eq!(server.requests().len(), 3);
    let budget = "budget: $0.0039 of $0.0030 ([agent] max_cost_usd)";
    home.zeph(["--continue", "-p", "/cost"])
        .code(0)
        .prints(&[budget]);
    // A project may lower it, but not raise it.
    home.write(".zeph/config.toml", "agent.max_cost_usd = 1.0\n");
    let raised = home.zeph(["-p", "go"]).run().stderr;
    assert!(raised.contains("agent.max_cost_usd"), "{raised}");
    home.write(".zeph/config.toml", "agent.max_cost_usd = 0.001\n");
    assert_eq!(ask(&home, &[], 4)["usage"]["cost_usd"], 0.0013);
}

/// Proves LLM-11: a budget of tokens needs no prices.
#[test]
fn token_budget_ends_the_turn() {
    let server = restless();
    let home = home(&server, "", "[agent]\nmax_tokens_per_session = 2040\n");
    let object = ask(&home, &[], 4);
    assert_eq!(object["stop_reason"], "budget");
    assert_eq!(server.requests().len(), 2);
    let message = "stopped: this session took 2040 tokens of 2040 ([agent] max_tokens_per_session)";
    assert_eq!(object["message"], message);
}

/// Proves LLM-11: a judge has the price of its own model, and scripted responses cost nothing.
#[test]
fn judge_is_charged_at_the_price_of_its_model() {
    let judge = OpenAi::start(|_, _| Reply::text("ALLOW"));
    let home = Home::scripted(
        "[[steps]]\ncalls = [{ tool = \"bash\", input = { command = \"echo hi\" } }]\n\
         usage = { input = 5, output = 1 }\n[[steps]]\ntext = \"Done.\"\n",
    );
    home.more_config(
        "[tools.adversarial_policy]\nenabled = true\npolicies = [\"Do no harm.\"]\nprovider = \"local\"\n",
    );
    let config = std::fs::read_to_string(home.config_file()).unwrap();
    let judging = crate::rig::openai_config(&judge.url());
    home.config(&format!(
        "llm.default = \"script\"\n{config}\n{judging}{PRICES}\n"
    ));
    let object = ask(&home, &[], 0);
    assert_eq!(object["usage"]["cost_usd"], 0.0013, "{object}");
    assert_eq!(object["usage"]["input_tokens"], 1005);
    home.zeph(["--continue", "-p", "/cost"]).code(0).prints(&[
        "script (scripted): 2 requests, 5 tokens in (0 cached, 0 written to the cache), 1 out, $0.0000",
        "local (test-model): 1 request, 1000 tokens in",
    ]);
}
