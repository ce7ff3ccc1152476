//! The port to the terminal of the user, for a command that the user typed.

use std::io;
use std::os::fd::OwnedFd;

use async_trait::async_trait;

/// The terminal of the user.
pub trait UserTerminal: Send + Sync {
    /// Lends the terminal to one command. Until the returned value is dropped, keys go to the command, and nothing else is
    /// shown.
    ///
    /// # Errors
    /// If the terminal is not available.
    fn lend(&self) -> io::Result<Box<dyn LentTerminal>>;
}

/// A terminal that is lent to one command.
#[async_trait]
pub trait LentTerminal: Send {
    /// The terminal for the standard streams of the command.
    ///
    /// # Errors
    /// If it cannot be passed on.
    fn side(&self) -> io::Result<OwnedFd>;

    /// Returns the next output of the command, which the user sees. `None` after the terminal is closed.
    async fn read(&mut self) -> Option<Vec<u8>>;

    /// Closes the terminal after the command has ended. [`LentTerminal::read`] then returns the remaining output.
    fn close(&mut self);
}
