//! The user's own editor for the text of the prompt.

use std::io;

use tempfile::TempPath;
use tokio::sync::oneshot;

/// A text that is being edited.
#[derive(Debug)]
pub(crate) struct Editing(oneshot::Receiver<io::Result<String>>);

impl Editing {
    /// Starts `work`, which runs the editor, on a thread of its own: an exit of the program does not wait for it.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        work: impl FnOnce() -> io::Result<String> + Send + 'static,
    ) -> io::Result<Self> {
        let (edited, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("editor".to_owned());
        thread.spawn(move || {
            // The receiver is gone if the program ends.
            let _ = edited.send(work());
        })?;
        Ok(Self(receiver))
    }

    /// Waits for the edited text. Dropping the future loses nothing.
    ///
    /// # Errors
    /// As [`edit`].
    async fn finished(&mut self) -> io::Result<String> {
        let edited = (&mut self.0).await;
        edited.unwrap_or_else(|_| Err(io::Error::other("the thread of the editor has ended")))
    }
}

/// Waits for the edited text; forever if no text is being edited.
///
/// # Errors
/// As [`edit`].
pub(crate) async fn finished(editing: &mut Option<Editing>) -> io::Result<String> {
    match editing {
        Some(editing) => editing.finished().await,
        None => std::future::pending().await,
    }
}

/// Creates a private file for a text that the user's editor changes. It is removed when the path is dropped.
///
/// # Errors
/// If the file cannot be created.
fn prompt_file() -> io::Result<TempPath> {
    let mut file = tempfile::Builder::new();
    let file = file.prefix("zeph-prompt-").suffix(".md").tempfile()?;
    Ok(file.into_temp_path())
}

/// Opens `text` in the editor `command`, and returns the changed text. It waits for the editor, which has the terminal.
///
/// # Errors
/// If the file of the text cannot be used, or the editor cannot be started or fails.
pub(crate) fn edit(command: &str, text: &str) -> io::Result<String> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or(io::ErrorKind::NotFound)?;
    let file = prompt_file()?;
    std::fs::write(&file, text)?;
    #[allow(
        clippy::disallowed_methods,
        reason = "the user's own editor, which has the terminal until it ends"
    )]
    let status = std::process::Command::new(program)
        .args(words)
        .arg(&file)
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{program} ended with {status}")));
    }
    let text = std::fs::read_to_string(&file)?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// The message about an editor that failed.
pub(crate) fn failure(command: &str, error: &io::Error) -> String {
    format!(
        "the text is unchanged, because the editor {command:?} failed: {error}; set $VISUAL or \
         $EDITOR to another editor"
    )
}

/// The message without an editor.
pub(crate) const NO_EDITOR: &str = "Ctrl-G needs $VISUAL or $EDITOR";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn file_of_the_text_is_private_and_removed() {
        let file = prompt_file().unwrap();
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let path = file.to_path_buf();
        drop(file);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn finished_waits_for_the_editor_only_if_there_is_one() {
        assert_eq!(finished(&mut None).now_or_never().map(Result::ok), None);
        let mut editing = Some(Editing::start(|| Ok("two".to_owned())).unwrap());
        assert_eq!(finished(&mut editing).await.unwrap(), "two");
    }

    #[test]
    fn text_is_read_from_the_editor() {
        let check = |command: &str, expect: Result<&str, &str>| {
            let edited = edit(command, "one");
            let edited = edited.as_deref().map_err(ToString::to_string);
            match (edited, expect) {
                (Ok(text), Ok(expect)) => assert_eq!(text, expect, "{command}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{command}: {error}"),
                (edited, _) => panic!("{command}: {edited:?}"),
            }
        };
        check("sed -i s/one/two/", Ok("two"));
        check("true", Ok("one"));
        check("false", Err("exit status: 1"));
        check("/no/such/editor", Err("No such file"));
        check(" ", Err("not found"));
    }
}
