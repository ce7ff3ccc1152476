//! Errors of the server, by their meaning for the user. The codes are those of
//! <https://www.postgresql.org/docs/current/errcodes-appendix.html>.

use std::io;

use sqlx::Error;

use crate::error::StoreError;

fn code(error: &Error) -> Option<String> {
    let Error::Database(error) = error else {
        return None;
    };
    error.code().map(std::borrow::Cow::into_owned)
}

/// Whether the connection is lost, so that another one is opened.
pub(super) fn is_lost(error: &Error) -> bool {
    match code(error) {
        // Shut down, crashed, starting, too many connections, a standby that does not write, connection failures.
        Some(code) => {
            matches!(
                code.as_str(),
                "57P01" | "57P02" | "57P03" | "57P05" | "53300" | "25006"
            ) || code.starts_with("08")
        }
        None => matches!(
            error,
            Error::Io(_) | Error::Protocol(_) | Error::WorkerCrashed
        ),
    }
}

/// Whether the server refused a lost statement before it had an effect.
pub(super) fn is_unsent(error: &Error) -> bool {
    match error {
        Error::Io(error) => matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::NotConnected
        ),
        error => code(error).is_some(),
    }
}

/// Whether the server is about to start.
pub(super) fn is_starting(error: &Error) -> bool {
    matches!(code(error).as_deref(), Some("57P03" | "53300"))
}

/// Whether another transaction was first. The statement had no effect, and may succeed the next time.
pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(
        code(error).as_deref(),
        Some("40001" | "40P01" | "23505" | "55P03")
    )
}

/// The error of a failed connection.
pub(super) fn connecting(server: &str, error: Error) -> StoreError {
    let server = server.to_owned();
    let reason = reason(&error);
    match (code(&error).as_deref(), &error) {
        (Some("28P01" | "28000"), _) => StoreError::ServerRefused {
            server,
            reason,
            fix: "check the user and the password of `[memory] url`",
        },
        (Some("3D000"), _) => StoreError::ServerRefused {
            server,
            reason,
            fix: "create the database with `createdb`, or correct its name in `[memory] url`",
        },
        // A certificate that is refused during the handshake is an error of the stream.
        (_, Error::Tls(_)) => certificate(server, reason),
        (_, Error::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            certificate(server, reason)
        }
        (Some("42501"), _) => rights(server, reason),
        // It starts, shuts down, or has too many connections.
        (Some(_), error) if is_lost(error) => StoreError::ServerUnreachable { server, reason },
        (Some(_), _) => StoreError::ServerRefused {
            server,
            reason,
            fix: "see the log of the server",
        },
        _ => StoreError::ServerUnreachable { server, reason },
    }
}

/// The error of a statement.
pub(super) fn running(server: &str, error: Error) -> StoreError {
    match code(&error).as_deref() {
        Some("53100" | "53200") => StoreError::Full {
            path: server.into(),
        },
        Some("42501") => rights(server.to_owned(), reason(&error)),
        _ if is_lost(&error) => StoreError::ConnectionLost {
            server: server.to_owned(),
        },
        _ => StoreError::Database {
            path: server.into(),
            source: error,
        },
    }
}

fn certificate(server: String, reason: String) -> StoreError {
    StoreError::ServerRefused {
        server,
        reason,
        fix: "set `sslrootcert` in `[memory] url` to the certificate of its authority, and \
            `sslmode` to the required checks",
    }
}

fn rights(server: String, reason: String) -> StoreError {
    StoreError::ServerRefused {
        server,
        reason,
        fix: "let the owner of the database run `zeph sessions list` once, which creates the tables",
    }
}

fn reason(error: &Error) -> String {
    match error {
        Error::Database(error) => error.message().to_owned(),
        Error::Io(error) => error.to_string(),
        Error::Tls(error) => format!("the TLS connection failed: {error}"),
        error => error.to_string(),
    }
}
