//! Questions before a session: a line of text, or a line without echo.

use std::io::{self, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;

use super::restore;

/// The maximum number of bytes of a line.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// Asks for a line on standard error and reads it from the terminal. `None` at the end of the input.
///
/// # Errors
/// The terminal cannot be read.
pub async fn ask_line(prompt: &str) -> io::Result<Option<String>> {
    let prompt = prompt.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        show(&prompt)?;
        read_line()
    });
    read.await.map_err(io::Error::other)?
}

/// Asks for a line that is not shown while the user types it. `None` at the end of the input.
///
/// # Errors
/// Standard input is not a terminal, or it cannot be read.
pub async fn ask_hidden(prompt: &str) -> io::Result<Option<SecretString>> {
    let prompt = prompt.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let _hidden = Hidden::begin()?;
        show(&prompt)?;
        read_line()
    });
    let line = read.await.map_err(io::Error::other)??;
    Ok(line.map(SecretString::from))
}

fn show(prompt: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    err.write_all(prompt.as_bytes())?;
    err.flush()
}

/// Reads a line that the terminal has completed. Bytes after it stay in the terminal.
fn read_line() -> io::Result<Option<String>> {
    let stdin = io::stdin();
    let mut line = Vec::new();
    let mut byte = [0_u8; 1];
    loop {
        match rustix::io::read(&stdin, &mut byte) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() < MAX_LINE_BYTES => line.push(byte[0]),
            Ok(_) => return Err(io::Error::other("the line is too long")),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let line = String::from_utf8(line).map_err(|_| io::Error::other("the line is not UTF-8"))?;
    Ok(Some(line))
}

/// The terminal without echo, until it is dropped. A signal that ends the program restores the echo too.
struct Hidden {
    before: Termios,
}

impl Hidden {
    fn begin() -> io::Result<Self> {
        restore::note();
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The line break is shown.
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
