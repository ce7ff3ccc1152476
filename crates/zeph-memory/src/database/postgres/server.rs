//! The server of a shared store, from its URL.

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::error::StoreError;

/// The server of a shared store.
#[derive(Debug, Clone)]
pub struct Server {
    pub(super) options: PgConnectOptions,
    /// The URL without its password and its parameters.
    pub(super) name: String,
    pub(super) wait: Duration,
    /// Whether a pooler in transaction mode may be between: no statement is prepared.
    pub(super) is_pooled: bool,
}

impl Server {
    /// The server at `url`: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with the parameters of PostgreSQL such as
    /// `sslmode` and `sslrootcert`. A password that the URL lacks comes from `PGPASSWORD` or `~/.pgpass`. With
    /// `statement-cache-capacity=0` no statement is prepared, as a pooler in transaction mode requires.
    ///
    /// A server on another machine has to prove its name by a certificate, unless the URL sets `sslmode`. `wait` limits every
    /// wait for the server.
    ///
    /// # Errors
    /// [`StoreError::ServerUrl`], which does not contain the URL.
    pub fn new(url: &str, wait: Duration) -> Result<Self, StoreError> {
        let invalid = |reason: &str| StoreError::ServerUrl {
            reason: reason.to_owned(),
        };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(invalid("it does not begin with postgres://"));
        }
        let options = PgConnectOptions::from_str(url).map_err(|error| match error {
            sqlx::Error::Configuration(error) => invalid(&error.to_string()),
            _ => invalid("it has an invalid form"),
        })?;
        let is_local = options.get_socket().is_some() || is_local(options.get_host());
        let options = match is_local || url.contains("sslmode=") || url.contains("ssl-mode=") {
            true => options,
            false => options.ssl_mode(PgSslMode::VerifyFull),
        };
        let name = name(&options);
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Ok(Self {
            // A pooler refuses this parameter, and no column has such a type.
            options: options
                .application_name(&format!("zeph/{host}"))
                .extra_float_digits(None),
            name,
            wait,
            is_pooled: url.contains("statement-cache-capacity=0"),
        })
    }

    /// The URL without its password, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the connection is encrypted, as far as the URL determines it.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        !matches!(
            self.options.get_ssl_mode(),
            PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer
        )
    }
}

fn is_local(host: &str) -> bool {
    host.starts_with('/')
        || host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn name(options: &PgConnectOptions) -> String {
    let place = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let (user, database) = (options.get_username(), options.get_database());
    format!("postgres://{user}@{place}/{}", database.unwrap_or(user))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Proves OPS-3: the name of a server has no password, and a remote server has to prove its name.
    #[test]
    fn server_has_a_name_without_password_and_tls_by_default() {
        let check = |url: &str, name: &str, is_encrypted: bool| {
            let server = Server::new(url, Duration::from_secs(1)).unwrap();
            assert_eq!(
                (server.name(), server.is_encrypted()),
                (name, is_encrypted),
                "{url}"
            );
        };
        check(
            "postgres://ann:hunter2@db.example/zeph",
            "postgres://ann@db.example:5432/zeph",
            true,
        );
        check(
            "postgresql://ann:hunter2@db.example:6432/zeph?sslmode=disable",
            "postgres://ann@db.example:6432/zeph",
            false,
        );
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            let url = format!("postgres://ann@{host}/zeph");
            check(&url, &format!("postgres://ann@{host}:5432/zeph"), false);
        }
        check(
            "postgres://ann@localhost/zeph?host=/run/pg",
            "postgres://ann@/run/pg/zeph",
            false,
        );
    }

    /// Proves OPS-3: the error of a bad URL does not contain it.
    #[test]
    fn invalid_url_is_refused_without_its_text() {
        for url in [
            "mysql://ann:hunter2@h/d",
            "postgres://ann:hunter2@h:port/d",
            "postgres://ann:hunter2@h/d?sslmode=hunter2-x",
            "hunter2",
        ] {
            let error = Server::new(url, Duration::from_secs(1))
                .unwrap_err()
                .to_string();
            assert!(error.contains("[memory] url"), "{error}");
            assert!(!error.contains("ann:") && !error.contains("@h"), "{error}");
        }
    }
}
