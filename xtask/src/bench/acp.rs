//! The cost of an editor: a client of `zeph acp` on pipes. Its calls are compared with those of one turn in a shell.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::MIB;
use super::model::Model;
use super::report::{Figure, Unit, median};
use super::subject::{self, Home, Memory};

/// Starts of the process.
const STARTS: usize = 20;
/// Turns of one kind. The two kinds alternate, so that a disturbance affects both.
const TURNS: usize = 40;
const REPEATS: usize = 3;
/// Sessions in addition to the first one.
const MORE_SESSIONS: usize = 4;

/// A client that approves every call.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
    /// Calls that completed.
    completed: usize,
}

impl Client {
    /// Starts the process, and returns the time until its response to `initialize`.
    fn start(home: &Home, binary: &Path) -> Result<(Self, Duration)> {
        let started = Instant::now();
        let mut child = home
            .command(binary)
            .args(["--yes", "acp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let input = child.stdin.take().context("its standard input")?;
        let output = child.stdout.take().context("its standard output")?;
        let mut client = Self {
            child,
            input,
            output: BufReader::new(output),
            last_id: 0,
            completed: 0,
        };
        client.call("initialize", &json!({ "protocolVersion": 1 }))?;
        Ok((client, started.elapsed()))
    }

    /// The result of a request.
    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.input.write_all(format!("{request}\n").as_bytes())?;
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line)?;
            ensure!(read > 0, "{method}: the agent ended");
            let message: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
            match (message.get("result"), message.get("error")) {
                (Some(result), _) if message["id"] == id => return Ok(result.clone()),
                (_, Some(error)) => bail!("{method}: {error}"),
                _ => {}
            }
            match message
                .pointer("/params/update/status")
                .and_then(Value::as_str)
            {
                Some("completed") => self.completed += 1,
                Some("failed") => bail!("a call failed: {line}"),
                _ => {}
            }
        }
    }

    fn session(&mut self, home: &Home) -> Result<String> {
        let new = json!({ "cwd": home.project(), "mcpServers": [] });
        let session = self.call("session/new", &new)?;
        let id = session["sessionId"].as_str().context("a session id")?;
        Ok(id.to_owned())
    }

    fn prompt(&mut self, session: &str) -> Result<()> {
        let prompt = json!([{ "type": "text", "text": "hi" }]);
        let prompt = json!({ "sessionId": session, "prompt": prompt });
        let stop = self.call("session/prompt", &prompt)?;
        ensure!(
            stop["stopReason"] == "end_turn",
            "the turn ended with {stop}"
        );
        Ok(())
    }

    fn memory(&self) -> f64 {
        Memory::of(self.child.id()).now as f64 / MIB
    }

    fn end(mut self) -> Result<()> {
        drop(self.input);
        let status = self.child.wait()?;
        ensure!(status.success(), "zeph acp: {status}");
        Ok(())
    }
}

pub(super) fn measure(binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    let home = Home::new()?;
    let idle = Model::start(Vec::new())?;
    home.configure(&idle)?;
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let (client, took) = Client::start(&home, binary)?;
        starts.push(took);
        client.end()?;
    }
    figures.push(
        Figure::new(
            "an editor: start to the response to initialize",
            Unit::Ms,
            median(&starts),
        )
        .at_most(30.0),
    );
    memory(&home, binary, figures)?;
    calls(&home, binary, figures)
}

/// The memory of sessions that are open and idle.
fn memory(home: &Home, binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    let (mut client, _) = Client::start(home, binary)?;
    client.session(home)?;
    let one = client.memory();
    for _ in 0..MORE_SESSIONS {
        client.session(home)?;
    }
    let each = (client.memory() - one) / MORE_SESSIONS as f64;
    client.end()?;
    figures.push(Figure::new("an editor: memory with one session", Unit::MiB, one).at_most(30.0));
    figures.push(
        Figure::new("an editor: memory of each further session", Unit::MiB, each).at_most(5.0),
    );
    Ok(())
}

/// Turns with one `read`, over the protocol and in a shell.
fn calls(home: &Home, binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    let files = super::files(&home.project())?;
    let (mut over_acp, mut in_shell) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        in_shell.extend(home.run(binary, super::reads(&files, None, TURNS))?.turns());
        let model = Model::start(super::reads(&files, None, TURNS))?;
        home.configure(&model)?;
        let (mut client, _) = Client::start(home, binary)?;
        let session = client.session(home)?;
        client.prompt(&session)?;
        ensure!(
            client.completed == TURNS,
            "{} calls completed",
            client.completed
        );
        client.end()?;
        over_acp.extend(subject::turns(&model.observed()?.exchanges));
    }
    let (over_acp, in_shell) = (median(&over_acp), median(&in_shell));
    figures.push(
        Figure::new(
            "an editor: a read turn, over one in a shell",
            Unit::Ms,
            over_acp - in_shell,
        )
        .at_most(1.0)
        .beside("over the protocol", over_acp)
        .beside("in a shell", in_shell),
    );
    Ok(())
}
