//! The port to the program that runs the views: only the program knows secrets and starts the browser.

use std::borrow::Cow;
use std::fmt::Debug;
use std::io;

/// The parts of the program that the views need.
pub trait ViewHost: Debug + Send + Sync {
    /// A text without the values of secrets.
    fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str>;

    /// A text without the values of known secrets, such as the keys of providers.
    fn without_known<'t>(&self, text: &'t str) -> Cow<'t, str>;

    /// Opens an address in the user's browser, and does not wait for it.
    ///
    /// # Errors
    /// The address is not one of the web, or the browser cannot be started.
    fn open_url(&self, url: &str) -> io::Result<()>;
}

/// A program without secrets and without a browser.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct BareHost;

#[cfg(test)]
impl ViewHost for BareHost {
    fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text.into()
    }

    fn without_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text.into()
    }

    fn open_url(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
impl Default for &'static dyn ViewHost {
    fn default() -> Self {
        &BareHost
    }
}
