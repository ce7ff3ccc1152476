//! Exported spans and metrics.

use std::time::{Duration, Instant};

use serde_json::json;

use super::collector::{Behaviour, Collector};
use super::otlp::{Point, Span, points, spans};
use crate::rig::{Home, KEY, OpenAi, Output, Reply, assert_has, follow};

/// The kind of a span for a request to a server.
const CLIENT: u64 = 3;
const PROMPT: &str = "what is in the marmalade file";
const CONTENT: &str = "apricots and walnuts";
const ANSWER: &str = "It lists stone fruit.";
const COMMAND: &str = "echo quince-jelly";

/// A model that reads a file, misses another one, runs a command and answers.
fn model() -> OpenAi {
    OpenAi::replies([
        Reply::calls("a", &[("read", json!({ "path": "marmalade.txt" }))]),
        Reply::calls("b", &[("read", json!({ "path": "missing-peaches.txt" }))]),
        Reply::calls("c", &[("bash", json!({ "command": COMMAND }))]),
        Reply::text(ANSWER),
    ])
}

pub(super) fn home(server: &OpenAi, collector: &Collector) -> Home {
    let home = Home::openai(server);
    home.write("marmalade.txt", CONTENT);
    home.more_config(&format!(
        "[telemetry]\nendpoint = \"{}\"\n",
        collector.url()
    ));
    home
}

/// Runs the turn of the model.
#[track_caller]
fn run(home: &Home, args: &[&str]) -> Output {
    let output = home.zeph(["-p", PROMPT, "--yes"]).args(args).code(0);
    assert_eq!(output.stdout.trim_end(), ANSWER, "{output}");
    output
}

pub(super) fn all_spans(collector: &Collector) -> Vec<Span> {
    let bodies = collector.bodies("/v1/traces");
    bodies.iter().flat_map(|body| spans(body)).collect()
}

pub(super) fn all_points(collector: &Collector) -> Vec<Point> {
    let bodies = collector.bodies("/v1/metrics");
    bodies.iter().flat_map(|body| points(body)).collect()
}

#[track_caller]
pub(super) fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
    assert!(!found.is_empty(), "{name} is not in {names:?}");
    found
}

/// Proves OPS-5, OPS-4: names, hierarchy and attributes of spans.
#[test]
fn spans_follow_the_conventions() {
    let (server, collector) = (model(), Collector::start(Behaviour::Accepts));
    run(&home(&server, &collector), &[]);
    let spans = all_spans(&collector);
    let turn = named(&spans, "invoke_agent zeph")[0];
    assert!(turn.parent.is_empty());
    assert_eq!(turn.attributes["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(turn.attributes["gen_ai.agent.name"], "zeph");
    let session = &turn.attributes["gen_ai.conversation.id"];
    assert_eq!(turn.resource["service.name"], "zeph");
    assert!(turn.resource.contains_key("service.instance.id"));
    assert!(spans.iter().all(|span| span.trace == turn.trace));
    assert!(spans.iter().all(|span| span.events == 0));

    let requests = named(&spans, "chat test-model");
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_eq!((&request.parent, request.kind), (&turn.id, CLIENT));
        assert_eq!(request.attributes["gen_ai.provider.name"], "openai");
        assert_eq!(request.attributes["gen_ai.request.model"], "test-model");
        assert_eq!(request.attributes["gen_ai.usage.input_tokens"], 1000);
        assert_eq!(request.attributes["gen_ai.usage.output_tokens"], 20);
        let cached = &request.attributes["gen_ai.usage.cache_read.input_tokens"];
        assert_eq!(*cached, 600);
        assert_eq!(request.attributes["gen_ai.conversation.id"], *session);
        assert!(request.nanos > 0 && !request.has_failed);
    }
    let reasons: Vec<_> = requests
        .iter()
        .map(|one| one.attributes["gen_ai.response.finish_reasons"].clone())
        .collect();
    assert_eq!(
        reasons
            .iter()
            .filter(|one| **one == json!(["tool_call"]))
            .count(),
        3
    );
    assert_eq!(
        reasons
            .iter()
            .filter(|one| **one == json!(["stop"]))
            .count(),
        1
    );

    let reads = named(&spans, "execute_tool read");
    assert_eq!(reads.len(), 2);
    let failed: Vec<_> = reads.iter().filter(|call| call.has_failed).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].attributes["error.type"], "permanent_failure");
    let call = named(&spans, "execute_tool bash")[0];
    assert_eq!(call.parent, turn.id);
    assert_eq!(call.attributes["gen_ai.tool.name"], "bash");
    assert_eq!(call.attributes["gen_ai.tool.call.id"], "call_c_0");

    // Layers nest from the outside in, and the command is within all of them.
    let command = named(&spans, "command")[0];
    assert_eq!(command.attributes["process.exit.code"], 0);
    let mut path = Vec::new();
    let mut inner = command;
    while inner.id != call.id {
        let outer = spans.iter().find(|span| span.id == inner.parent);
        inner = outer.expect("the command is within the call");
        path.push(inner.name.as_str());
    }
    path.reverse();
    assert_eq!(path[..3], ["execute_tool bash", "audit", "reputation"]);
    assert!(
        path.contains(&"permission") && path.ends_with(&["redact"]),
        "{path:?}"
    );
}

/// Proves OPS-5: names, units and attributes of metrics.
#[test]
fn metrics_follow_the_conventions() {
    let (server, collector) = (model(), Collector::start(Behaviour::Accepts));
    run(&home(&server, &collector), &[]);
    let points = all_points(&collector);
    let find = |metric: &str, unit: &str, attributes: &[(&str, &str)]| {
        let found = points.iter().find(|point| {
            let has = |(name, value): &(&str, &str)| {
                point.attributes.get(*name).and_then(|one| one.as_str()) == Some(*value)
            };
            point.metric == metric && point.unit == unit && attributes.iter().all(has)
        });
        found.unwrap_or_else(|| panic!("{metric} {attributes:?} is not in {points:#?}"))
    };
    let about = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
    ];
    for (kind, sum) in [("input", 4000.0), ("output", 80.0)] {
        let mut attributes = about.to_vec();
        attributes.extend([
            ("gen_ai.token.type", kind),
            ("gen_ai.request.model", "test-model"),
        ]);
        let point = find("gen_ai.client.token.usage", "{token}", &attributes);
        assert_eq!((point.count, point.sum), (4, sum));
    }
    let duration = find("gen_ai.client.operation.duration", "s", &about);
    assert_eq!(duration.count, 4);
    assert!(duration.sum > 0.0);
    let tool =
        |attributes: &[(&str, &str)]| find("gen_ai.execute_tool.duration", "s", attributes).count;
    assert_eq!(tool(&[("gen_ai.tool.name", "bash")]), 1);
    let failed = [
        ("gen_ai.tool.name", "read"),
        ("error.type", "permanent_failure"),
    ];
    assert_eq!(tool(&failed), 1);
    assert_eq!(find("gen_ai.invoke_agent.duration", "s", &[]).count, 1);
    let errors = [
        ("gen_ai.operation.name", "execute_tool"),
        ("error.type", "permanent_failure"),
    ];
    assert_eq!(find("zeph.errors", "{error}", &errors).sum, 1.0);
}

/// The parts of `texts` that the collector received.
fn leaked<'t>(collector: &Collector, texts: &[&'t str]) -> Vec<&'t str> {
    let bytes = collector.bytes();
    let has = |text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    texts.iter().copied().filter(|text| has(text)).collect()
}

/// Proves OPS-5: by default no text of the user, the model, files or paths leaves the process.
#[test]
fn content_is_absent_unless_requested() {
    // Split, so that this file contains no token.
    let secret = &["ghp_", "x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF7gH9jK2"].concat();
    let texts = |home: &Home| {
        let root = home.root().display().to_string();
        [
            PROMPT,
            CONTENT,
            ANSWER,
            "quince-jelly",
            "marmalade.txt",
            "missing-peaches",
            &root,
        ]
        .map(str::to_owned)
    };
    let check = |content: bool, args: &[&str], env: &[(&str, &str)]| {
        let (server, collector) = (model(), Collector::start(Behaviour::Accepts));
        let home = home(&server, &collector);
        home.write("marmalade.txt", &format!("{CONTENT} {KEY} {secret}"));
        let mut run = home
            .zeph(["-p", &format!("{PROMPT} {secret}"), "--yes", "-vv"])
            .args(args);
        for (name, value) in env {
            run = run.env(name, value);
        }
        run.code(0);
        assert!(!all_spans(&collector).is_empty() && !all_points(&collector).is_empty());
        let texts = texts(&home);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = leaked(&collector, &texts);
        match content {
            false => assert!(found.is_empty(), "{found:?}"),
            true => assert_eq!(found[..6], texts[..6]),
        }
        // The log has no content in any case, also with details (`-vv`).
        let log = home.home().join(".local/state/zeph/zeph.log");
        let log = std::fs::read_to_string(log).unwrap();
        for field in [
            "gen_ai.input.messages",
            "gen_ai.tool.call.arguments",
            "gen_ai.system",
        ] {
            assert!(!log.contains(field), "{field} is in the log");
        }
        let secrets = leaked(&collector, &[KEY, secret.as_str()]);
        assert!(secrets.is_empty(), "{secrets:?} {args:?} {env:?}");
        collector
    };
    check(false, &[], &[]);
    let variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    check(false, &[], &[(variable, "no_content")]);
    check(true, &[], &[(variable, "true")]);
    let collector = check(true, &["--set", "telemetry.content=true"], &[]);
    let spans = all_spans(&collector);
    let call = named(&spans, "execute_tool bash")[0];
    let arguments = call.attributes["gen_ai.tool.call.arguments"].as_str();
    assert_has(arguments.unwrap(), &[COMMAND]);
    let result = call.attributes["gen_ai.tool.call.result"].as_str();
    assert_has(result.unwrap(), &["quince-jelly"]);
    let request = named(&spans, "chat test-model")[0];
    let input = request.attributes["gen_ai.input.messages"]
        .as_str()
        .unwrap();
    let input: serde_json::Value = serde_json::from_str(input).unwrap();
    assert_eq!(input[0]["role"], "user");
    assert!(request.attributes.contains_key("gen_ai.output.messages"));
}

/// Proves OPS-5: a collector that does not work changes nothing that the user sees.
#[test]
fn collector_that_fails_is_invisible() {
    let check = |url: &str, limit: Duration| {
        let server = model();
        let home = Home::openai(&server);
        home.write("marmalade.txt", CONTENT);
        home.more_config(&format!("[telemetry]\nendpoint = \"{url}\"\n"));
        let start = Instant::now();
        let output = run(&home, &["-q"]);
        let took = start.elapsed();
        assert_eq!(output.stderr, "");
        assert!(took < limit, "{took:?}");
        let log = home.home().join(".local/state/zeph/zeph.log");
        std::fs::read_to_string(log).unwrap_or_default()
    };
    let without = {
        let server = model();
        let home = Home::openai(&server);
        home.write("marmalade.txt", CONTENT);
        let start = Instant::now();
        run(&home, &["-q"]);
        start.elapsed()
    };
    let margin = Duration::from_secs(3);
    let refused = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let log = check(&refused, without * 3 + margin);
    assert_eq!(log.matches("cannot be sent").count(), 1, "{log}");
    let failing = Collector::start(Behaviour::Fails);
    let log = check(&failing.url(), without * 3 + margin);
    assert_eq!(log.matches("500").count(), 1, "{log}");
    let hanging = Collector::start(Behaviour::Hangs);
    check(
        &hanging.url(),
        without * 3 + Duration::from_secs(2) + margin,
    );
    assert!(!hanging.received().is_empty());
}

/// Proves OPS-5: headers come from the configuration and the environment.
#[test]
fn headers_are_sent() {
    let (server, collector) = (model(), Collector::start(Behaviour::Accepts));
    let home = home(&server, &collector);
    home.more_config("[telemetry.headers]\nx-own = \"Bearer ${COLLECTOR_TOKEN}\"\n");
    let run = home.zeph(["-p", PROMPT, "--yes"]);
    let run = run.env("COLLECTOR_TOKEN", "token-one");
    let run = run.env("OTEL_EXPORTER_OTLP_HEADERS", "x-env=token-two");
    run.env("OTEL_SERVICE_NAME", "runner").code(0);
    let received = collector.received();
    assert!(received.len() >= 2);
    for request in received {
        let head = request.head.to_lowercase();
        assert_has(&head, &["x-own: bearer token-one", "x-env: token-two"]);
        assert_has(&head, &["content-type: application/x-protobuf"]);
    }
    let resource = &all_spans(&collector)[0].resource;
    assert_eq!(resource["service.name"], "runner");
}

/// Proves OPS-5: nothing is exported without an endpoint, or if the standard variable switches it off.
#[test]
fn export_is_off_unless_an_endpoint_is_set() {
    let collector = Collector::start(Behaviour::Accepts);
    let run_with = |env: &[(&str, &str)]| {
        let server = model();
        let home = Home::openai(&server);
        home.write("marmalade.txt", CONTENT);
        let mut run = home.zeph(["-p", PROMPT, "--yes"]);
        for (name, value) in env {
            run = run.env(name, value);
        }
        run.code(0);
        collector.received().len()
    };
    let url = collector.url();
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str());
    assert_eq!(run_with(&[]), 0);
    assert_eq!(run_with(&[endpoint, ("OTEL_SDK_DISABLED", "true")]), 0);
    assert!(run_with(&[endpoint]) >= 2);
}

/// Proves OPS-5: a call of the user without a turn is a trace of its own.
#[test]
fn call_without_a_turn_is_a_trace() {
    let collector = Collector::start(Behaviour::Accepts);
    let home = Home::new();
    home.config(&format!(
        "[telemetry]\nendpoint = \"{}\"\n",
        collector.url()
    ));
    home.write("a.txt", "a");
    home.zeph(["tools", "call", "read", r#"{"path": "a.txt"}"#])
        .code(0);
    let spans = all_spans(&collector);
    let call = named(&spans, "execute_tool read")[0];
    assert!(call.parent.is_empty());
}

/// Proves OPS-5: `zeph doctor` checks the collector.
#[test]
fn doctor_checks_the_collector() {
    let collector = Collector::start(Behaviour::Accepts);
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let doctor = |url: &str| home.zeph(["doctor", "--set", &format!("telemetry.endpoint={url}")]);
    let output = doctor(&collector.url()).code(0);
    assert_has(&output.stdout, &["ok    telemetry", &collector.url()]);
    let output = doctor("http://127.0.0.1:1").code(1);
    assert_has(
        &output.stdout,
        &[
            "FAIL  telemetry",
            "http://127.0.0.1:1",
            "check that the collector is running",
        ],
    );
}

/// Proves OPS-5: the steps of docs/monitoring.md about telemetry.
#[test]
fn steps_about_telemetry_work() {
    let collector = Collector::start(Behaviour::Accepts);
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    let page = crate::monitoring::PAGE;
    let outputs = follow(&home, page, "\n## Telemetry\n", |text| {
        text.replace("http://127.0.0.1:4318", &collector.url())
    });
    assert!(outputs[0].starts_with("ok "), "{outputs:?}");
    assert_eq!(outputs[1], "hi\n");
    named(&all_spans(&collector), "invoke_agent zeph");
    assert!(!all_points(&collector).is_empty());
}
