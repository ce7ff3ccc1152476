//! `zeph filter …`: the filters without the agent.

mod explain;
mod gain;
mod run;
pub(super) mod trust;
mod verify;

use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

use anyhow::Context as _;
use zeph_tools::filter::{FilterPipeline, FilterStream, FilteredOutput};
use zeph_tools::secrets::{SecurityPatterns, StreamRedactor};
use zeph_tools::shell::capture::Decoder;

use super::args::{FilterArgs, FilterCommand, GlobalArgs};
use super::{Exit, load_config, print, usage};
use crate::assemble::{Pins, filters, keep_gain, open_store, redaction_values};
use crate::config::{Environment, Loaded};
use crate::output::stderr_line;

/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// Runs one of the commands.
pub(crate) async fn run(global: &GlobalArgs, args: FilterArgs) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    match args.command {
        None => {
            from_stdin(
                global,
                &loaded,
                &env,
                args.printed_by.as_deref(),
                args.exit_code,
            )
            .await
        }
        Some(FilterCommand::Gain { json }) => gain::run(&loaded, json).await,
        Some(FilterCommand::Run { tee, words }) => {
            run::run(global, &loaded, &env, tee, &words).await
        }
        Some(FilterCommand::Verify { file }) => {
            verify::run(&loaded, &env, file.as_deref(), global.quiet)
        }
        Some(FilterCommand::Explain { words, json }) => {
            let filters = filters(&loaded, &env, global.quiet);
            explain::run(&filters, &words.join(" "), json)
        }
        Some(FilterCommand::Trust { revoke, list }) => {
            let pins = Pins::in_folder(&loaded.paths.data_dir);
            match (revoke, list) {
                (true, _) => trust::revoke(&pins, &env),
                (false, true) => trust::list(&pins),
                (false, false) => trust::trust(&pins, &env, global.yes),
            }
        }
    }
}

/// Filters the text of standard input.
async fn from_stdin(
    global: &GlobalArgs,
    loaded: &Loaded,
    env: &Environment,
    command: Option<&str>,
    exit_code: Option<i32>,
) -> anyhow::Result<Exit> {
    let Some(command) = command else {
        return Err(usage(
            "--command is missing: it names the command whose output is on standard input",
        ));
    };
    let mut stdin = std::io::stdin().lock();
    if stdin.is_terminal() {
        stderr_line("reading from the terminal; Ctrl-D ends it");
    }
    let filters = filters(loaded, env, global.quiet);
    let mut reader = Reader::new(&filters, command, loaded, env);
    let mut buffer = vec![0; PIECE];
    loop {
        match stdin.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => reader.push(&buffer[..bytes]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("standard input cannot be read"),
        }
    }
    drop(stdin);
    let (filtered, warning) = reader.finish(exit_code);
    show(&filtered, warning.as_deref(), None)?;
    note_gain(loaded, &filters).await;
    Ok(Exit::Done)
}

/// Adds the statistics of `filters` for `zeph filter gain`. Without a database, nothing is stored.
async fn note_gain(loaded: &Loaded, filters: &FilterPipeline) {
    filters.metrics().log();
    if filters.metrics().by_rule().is_empty() {
        return;
    }
    match open_store(loaded).await {
        Ok(store) => {
            keep_gain(&store, filters).await;
            let _ = store.close().await;
        }
        Err(error) => tracing::debug!(%error, "the saved bytes were not recorded"),
    }
}

/// Takes bytes that a command printed.
struct Reader {
    decoder: Decoder,
    redactor: StreamRedactor,
    secrets: Arc<SecurityPatterns>,
    run: FilterStream,
}

impl Reader {
    fn new(filters: &FilterPipeline, command: &str, loaded: &Loaded, env: &Environment) -> Self {
        let secrets = redaction_values(loaded, env);
        Self {
            decoder: Decoder::default(),
            redactor: StreamRedactor::new(Arc::clone(&secrets)),
            secrets,
            run: filters.start(command, loaded.config.tools.overflow.threshold),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.run.see_bytes(bytes);
        let text = self.decoder.decode(bytes);
        self.run.push(&self.redactor.push(&text));
    }

    /// The filtered text without secrets, and the warning about secrets.
    fn finish(mut self, exit_code: Option<i32>) -> (FilteredOutput, Option<String>) {
        let rest = self.redactor.push(self.decoder.finish()).into_owned();
        self.run.push(&rest);
        self.run.push(&self.redactor.finish());
        let mut kinds = self.redactor.take_kinds();
        let mut filtered = self.run.finish(exit_code);
        // Escape sequences may have split a value.
        let again = self.secrets.redact(&filtered.text);
        kinds.extend(again.kinds);
        if !self.secrets.shows() {
            let text = again.text.into_owned();
            filtered.text = text;
        }
        let warning = self.secrets.warning(kinds, !self.secrets.shows());
        (filtered, warning)
    }
}

/// Prints the filtered text and the notice about omitted parts. `kept` is the file with the complete output.
fn show(
    filtered: &FilteredOutput,
    warning: Option<&str>,
    kept: Option<&std::path::Path>,
) -> anyhow::Result<()> {
    let mut text = filtered.text.clone();
    let mut say = |line: &str| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    };
    if let Some(left_out) = &filtered.left_out {
        let notice = left_out.notice();
        match kept {
            Some(path) => say(&format!(
                "{}; all of it: {}]",
                notice.trim_end_matches(']'),
                path.display()
            )),
            None => say(&notice),
        }
    }
    if let Some(warning) = warning {
        say(warning);
    }
    if text.is_empty() {
        return Ok(());
    }
    print(&text)
}
