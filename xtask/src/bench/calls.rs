//! A `zeph tools run` process that runs calls in sequence. Its start is complete before the first
//! measurement.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::subject::{Home, Memory};

/// The running program.
pub(super) struct Calls {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Calls {
    /// Starts the process in the project of `home` and makes one call.
    pub(super) fn start(home: &Home, binary: &Path) -> Result<Self> {
        let mut child = home
            .command(binary)
            .args(["--yes", "tools", "run", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let input = child.stdin.take().context("its standard input")?;
        let output = child.stdout.take().context("its standard output")?;
        let mut calls = Self {
            child,
            input,
            output: BufReader::new(output),
        };
        calls.call("bash", &json!({ "command": "true" }))?;
        Ok(calls)
    }

    /// The duration of a call from its line to its result, and the text for the model.
    ///
    /// # Errors
    /// The call failed.
    pub(super) fn call(&mut self, tool: &str, params: &Value) -> Result<(Duration, String)> {
        let line = format!("{}\n", json!({ "tool": tool, "params": params }));
        let start = Instant::now();
        self.input.write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        let took = start.elapsed();
        let result: Value =
            serde_json::from_str(&answer).with_context(|| format!("{tool} answered {answer:?}"))?;
        ensure!(result["success"] == true, "{tool} failed: {answer}");
        let read = result["data"].as_str().unwrap_or_default();
        Ok((took, read.to_owned()))
    }

    /// The memory of the process and of its helpers.
    pub(super) fn memory(&self) -> Memory {
        Memory::of(self.child.id())
    }

    /// Ends the process.
    pub(super) fn end(mut self) -> Result<()> {
        drop(self.input);
        let status = self.child.wait()?;
        ensure!(status.success(), "zeph tools run: {status}");
        Ok(())
    }
}
