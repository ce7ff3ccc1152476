//! Names that indicate secrets: `DB_PASSWORD`, `apiKey`, `client-secret`.

use super::kind::Kind;
use super::value::NameHint;

/// The maximum number of characters of a name, on each side of the literal.
pub(super) const NAME: usize = 48;

/// The properties of a name's value.
pub(super) struct Name {
    pub(super) promise: NameHint,
    pub(super) kind: NameKind,
    /// The kind of its value.
    pub(super) label: Kind,
    /// Whether it has no lower-case letter, like an environment variable.
    pub(super) is_upper: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NameKind {
    /// Any other name.
    Plain,
    /// `Authorization`.
    Header,
    /// `auth`, as in the configuration of Docker and npm.
    Auth,
}

/// Suffixes of names with passwords as values.
const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "_pass",
    "passwort",
];
/// Suffixes of names with generated values.
const SECRETS: &[&str] = &[
    "secret",
    "api_key",
    "apikey",
    "secret_key",
    "access_key",
    "private_key",
    "auth_key",
    "account_key",
    "shared_key",
    "encryption_key",
    "signing_key",
    "master_key",
    "service_key",
    "secret_key_base",
    "storage_key",
    "subscription_key",
    "app_key",
    "application_key",
    "jwt_key",
    "session_key",
    "deploy_key",
    "license_key",
    "crypt_key",
    "cipher_key",
    "webhook_key",
    "server_key",
    "admin_key",
    "credential",
    "credentials",
    "secretkey",
    "accesskey",
    "consumer_key",
];
/// Ends of names of positions in a list that a service returns in pages.
const PAGE_TOKENS: &[&str] = &[
    "next_token",
    "next_page_token",
    "next_sync_token",
    "continuation_token",
    "starting_token",
    "pagination_token",
];

impl Name {
    /// Classifies a name; `None` if it does not announce a secret.
    pub(super) fn of(written: &str) -> Option<Self> {
        let mut buffer = [0_u8; 2 * NAME];
        let words = snake(written, &mut buffer)?;
        let words = words
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .trim_end_matches('_');
        let ends = |names: &[&str]| {
            names.iter().any(|name| {
                words.strip_suffix(name).is_some_and(|rest| {
                    rest.is_empty()
                        || rest.ends_with('_')
                        || name.starts_with('_')
                        || name.len() >= 6
                })
            })
        };
        let has = |name: &str| words.contains(name);
        let label = if has("aws") || words.ends_with("secret_access_key") {
            Kind::AWS
        } else if has("account_key") || has("shared_access_key") {
            Kind::AZURE
        } else {
            Kind::ASSIGNMENT
        };
        let is_upper = !written.bytes().any(|byte| byte.is_ascii_lowercase());
        let (promise, kind) = if words.ends_with("authorization") {
            (NameHint::Token, NameKind::Header)
        } else if words == "auth" || words == "_auth" {
            (NameHint::Secret, NameKind::Auth)
        } else if matches!(written, "PWD" | "OLDPWD") {
            return None;
        } else if ends(PASSWORDS) {
            (NameHint::Password, NameKind::Plain)
        } else if ends(SECRETS) {
            (NameHint::Secret, NameKind::Plain)
        } else if words.ends_with("token") {
            let is_position = PAGE_TOKENS.iter().any(|name| {
                words
                    .strip_suffix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
            });
            // An environment variable such as `NEXT_TOKEN` is a secret.
            if !is_upper && is_position {
                return None;
            }
            (NameHint::Token, NameKind::Plain)
        } else {
            return None;
        };
        // These values are public.
        if ["public", "publishable", "fingerprint", "hash"]
            .iter()
            .any(|word| has(word))
        {
            return None;
        }
        Some(Self {
            promise,
            kind,
            label,
            is_upper,
        })
    }
}

/// Converts a name to lower case with `_` between its words.
fn snake<'b>(name: &str, buffer: &'b mut [u8; 2 * NAME]) -> Option<&'b str> {
    let mut length = 0;
    let mut put = |byte: u8| {
        if let Some(place) = buffer.get_mut(length) {
            *place = byte;
            length += 1;
        }
    };
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let after_lower = at > 0 && bytes[at - 1].is_ascii_lowercase();
        // `APIKey`: the last capital letter begins a word.
        let before_lower = at > 0
            && bytes[at - 1].is_ascii_uppercase()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        match byte {
            b'-' | b'_' => put(b'_'),
            upper if upper.is_ascii_uppercase() => {
                if after_lower || before_lower {
                    put(b'_');
                }
                put(upper.to_ascii_lowercase());
            }
            other => put(*other),
        }
    }
    std::str::from_utf8(&buffer[..length]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-20.
    #[test]
    fn names_are_read_in_every_style() {
        let check = |name: &str, expect: Option<NameHint>| {
            assert_eq!(Name::of(name).map(|name| name.promise), expect, "{name}");
        };
        for name in [
            "password",
            "DB_PASSWORD",
            "userPassword",
            "PGPASSWORD",
            "root-passwd",
            "MYSQL_PWD",
            "DB_PASS",
            "password1",
        ] {
            check(name, Some(NameHint::Password));
        }
        for name in [
            "apiKey",
            "API_KEY",
            "x-api-key",
            "APIKey",
            "clientSecret",
            "SECRET_KEY_BASE",
            "SecretAccessKey",
            "signing_key",
        ] {
            check(name, Some(NameHint::Secret));
        }
        for name in [
            "token",
            "authToken",
            "GITHUB_TOKEN",
            "access-token",
            "REPO_SYNC_TOKEN",
            "page_token",
            "asyncToken",
            "repo_sync_token",
        ] {
            check(name, Some(NameHint::Token));
        }
        for name in [
            "PWD",
            "tokens",
            "max_tokens",
            "tokenizer",
            "key",
            "primary_key",
            "public_key",
            "password_hash",
            "passwords",
            "keyboard",
            "monkey",
            "NextToken",
            "nextPageToken",
            "NextContinuationToken",
            "starting-token",
            "pagination_token",
            "nextSyncToken",
        ] {
            check(name, None);
        }
    }
}
