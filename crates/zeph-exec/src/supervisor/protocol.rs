//! Messages between agent and supervisor: JSON after a four-byte length (little endian). The write ends of a command's
//! two pipes accompany the first byte of the request. The read end of its standard input follows them, if it has one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::runner::{BackgroundProcess, CommandSpec, Exit};
use crate::sandbox::{Denial, Plan, Sockets};

/// The maximum size of a message in bytes. The kernel's own limit for arguments and environment is lower.
const MAX_FRAME: usize = 32 * 1024 * 1024;

/// A string of the operating system: text if it is UTF-8, otherwise bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    /// UTF-8.
    Utf8(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

impl From<&OsStr> for Text {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Utf8(text.to_owned()),
            None => Self::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<Text> for OsString {
    fn from(text: Text) -> Self {
        match text {
            Text::Utf8(text) => text.into(),
            Text::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

/// A command to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) id: u64,
    pub(super) argv: Vec<Text>,
    pub(super) cwd: Text,
    pub(super) env: Vec<(Text, Text)>,
    pub(super) confinement: Option<Confinement>,
    /// Whether a third descriptor is its standard input. Otherwise, the standard input is closed.
    #[serde(default)]
    pub(super) input: bool,
    /// Whether that descriptor is the terminal of a session of its own.
    #[serde(default)]
    pub(super) terminal: bool,
}

/// The limits of a command: a [`Plan`] as a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    writable: Vec<Text>,
    sockets: Sockets,
    required: bool,
    hidden: Option<Vec<Text>>,
    #[serde(default)]
    unreadable: Vec<Text>,
    #[serde(default)]
    shared: Vec<Text>,
    #[serde(default)]
    executable: Option<Vec<Text>>,
    #[serde(default)]
    isolated: bool,
}

impl From<&Plan> for Confinement {
    fn from(plan: &Plan) -> Self {
        let text = |path: &PathBuf| Text::from(path.as_os_str());
        Self {
            writable: plan.writable.iter().map(text).collect(),
            sockets: plan.sockets,
            required: plan.required,
            hidden: plan
                .hidden
                .as_ref()
                .map(|hidden| hidden.iter().map(text).collect()),
            unreadable: plan.unreadable.iter().map(text).collect(),
            shared: plan.shared.iter().map(text).collect(),
            executable: plan
                .executable
                .as_ref()
                .map(|files| files.iter().map(text).collect()),
            isolated: plan.isolated,
        }
    }
}

impl From<Confinement> for Plan {
    fn from(sent: Confinement) -> Self {
        let path = |text: Text| PathBuf::from(OsString::from(text));
        Self {
            writable: sent.writable.into_iter().map(path).collect(),
            sockets: sent.sockets,
            required: sent.required,
            hidden: sent
                .hidden
                .map(|hidden| hidden.into_iter().map(path).collect()),
            unreadable: sent.unreadable.into_iter().map(path).collect(),
            shared: sent.shared.into_iter().map(path).collect(),
            executable: sent
                .executable
                .map(|files| files.into_iter().map(path).collect()),
            isolated: sent.isolated,
        }
    }
}

impl Run {
    pub(super) fn new(id: u64, command: &CommandSpec, plan: Option<&Plan>) -> Self {
        let text = |text: &OsString| Text::from(text.as_os_str());
        Self {
            id,
            argv: command.argv.iter().map(text).collect(),
            cwd: Text::from(command.cwd.as_os_str()),
            env: command
                .env
                .iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            confinement: plan.map(Confinement::from),
            input: false,
            terminal: false,
        }
    }
}

/// A request of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Starts a command. Two or three descriptors accompany it.
    Run(Box<Run>),
    /// Ends a command and all processes that it started.
    Kill { id: u64 },
}

/// A reply of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// Whether the supervisor can hide files. A supervisor that hides files sends it first, for no call.
    Hides { can: bool },
    /// The command could not be started.
    Failed {
        id: u64,
        errno: Option<i32>,
        message: String,
    },
    /// The command was not started, because its required sandbox is missing.
    Unconfined { id: u64, message: String },
    /// The command runs. `unconfined` is the part of the sandbox that is not enforced.
    Started { id: u64, unconfined: Option<String> },
    /// The first process of the command exited. `denials` are the accesses that the sandbox refused.
    Exited {
        id: u64,
        exit: Exit,
        #[serde(default)]
        denials: Vec<Denial>,
        background: Vec<BackgroundProcess>,
    },
    /// The processes that the command's first process left behind have ended on their own.
    Quiet { id: u64 },
    /// The command was ended on request; `clean` is whether all its processes are gone.
    Gone { id: u64, clean: bool },
}

impl Reply {
    /// The call of the reply.
    pub(super) fn id(&self) -> Option<u64> {
        match self {
            Self::Hides { .. } => None,
            Self::Failed { id, .. }
            | Self::Unconfined { id, .. }
            | Self::Started { id, .. }
            | Self::Quiet { id }
            | Self::Exited { id, .. }
            | Self::Gone { id, .. } => Some(*id),
        }
    }
}

/// Encodes a message.
///
/// # Errors
/// If the message is larger than the limit.
pub(super) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4)
        .ok()
        .filter(|length| *length as usize <= MAX_FRAME)
        .ok_or_else(|| io::Error::from(io::ErrorKind::ArgumentListTooLong))?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// Decodes messages from the bytes that arrive.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: Vec<u8>,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete message.
    ///
    /// # Errors
    /// If the bytes are not a message. The following bytes then have no meaning.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some((length, rest)) = self.buffer.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        let message = serde_json::from_slice(frame)?;
        self.buffer.drain(..4 + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::CommandSandbox;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_survive_any_cut(
            argv in proptest::collection::vec(proptest::collection::vec(1u8.., 0..9), 1..4),
            cut in 1usize..40,
        ) {
            let command = CommandSpec {
                argv: argv.into_iter().map(OsString::from_vec).collect(),
                cwd: "/".into(),
                env: vec![("A".into(), OsString::from_vec(vec![0xFF, 1]))],
                timeout: None,
                readable_folders: Vec::new(),
                sandbox: CommandSandbox::Session,
            };
            let plan = Plan {
                writable: command.argv.iter().map(PathBuf::from).collect(),
                sockets: [Sockets::All, Sockets::Local, Sockets::None][cut % 3],
                required: cut % 3 == 0,
                hidden: (cut % 5 > 0).then(|| vec!["/a".into(); cut % 5]),
                unreadable: vec!["/own".into(); cut % 3],
                shared: vec!["/own/shared".into(); cut % 2],
                executable: (cut % 7 > 0).then(|| vec!["/bin/x".into(); cut % 3]),
                isolated: cut % 2 == 0,
            };
            let run = Run::new(7, &command, Some(&plan));
            let sent = run.confinement.clone().map(Plan::from);
            prop_assert_eq!(sent, Some(plan));
            let back: Vec<OsString> = run.argv.iter().cloned().map(OsString::from).collect();
            prop_assert_eq!(back, command.argv);
            let sent = [Request::Run(Box::new(run)), Request::Kill { id: 9 }];
            let bytes: Vec<u8> = sent.iter().flat_map(|it| encode(it).unwrap()).collect();
            let mut frames = Frames::default();
            let mut received: Vec<Request> = Vec::new();
            for piece in bytes.chunks(cut) {
                frames.push(piece);
                while let Some(message) = frames.next().unwrap() {
                    received.push(message);
                }
            }
            prop_assert_eq!(received, sent);
        }

        #[test]
        fn garbage_is_an_error_or_incomplete_and_never_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..64)
        ) {
            let mut frames = Frames::default();
            frames.push(&bytes);
            prop_assert!(!matches!(frames.next::<Request>(), Ok(Some(_))));
        }
    }
}
