//! Formats of tokens with a unique prefix. A new format is a row of [`FORMATS`].
//!
//! The formats are those that the services document, or that their secret-scanning partners publish.

use std::ops::Range;

use super::kind::Kind;
use super::line_buffer::{is_alphanumeric, is_base64, is_word};
use super::private_key::MAX_KEY_CHARS;
use EntropyRule::{Cases, Certain, Digit, LongRun, Nothing};

/// The format of a token after its prefix.
pub(super) struct TokenFormat {
    pub(super) prefix: &'static str,
    pub(super) kind: Kind,
    pub(super) chars: fn(u8) -> bool,
    /// The minimum and the maximum number of characters after the prefix.
    pub(super) length: Range<usize>,
    pub(super) needs: EntropyRule,
}

/// The condition under which a run of characters is not a word.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum EntropyRule {
    /// None: the prefix suffices.
    Nothing,
    /// None: the prefix suffices, and no placeholder has it.
    Certain,
    /// A digit and a letter, or a change of case that is unusual for words.
    Digit,
    /// A change of case that is unusual for words.
    Cases,
    /// A run of at least 20 letters and digits, with both.
    LongRun,
}

/// The maximum length of a token without a fixed length, in characters.
pub(super) const LONG: usize = 4096;

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_dotted(byte: u8) -> bool {
    is_word(byte) || byte == b'.'
}

pub(super) fn is_snake(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

const fn token(
    prefix: &'static str,
    kind: Kind,
    chars: fn(u8) -> bool,
    length: Range<usize>,
    needs: EntropyRule,
) -> TokenFormat {
    TokenFormat {
        prefix,
        kind,
        chars,
        length,
        needs,
    }
}

/// The format of a private key in base64. `prefix` encodes the start of its BEGIN line (RFC 7468).
const fn encoded_key(prefix: &'static str) -> TokenFormat {
    token(
        prefix,
        Kind::PRIVATE_KEY,
        is_base64,
        40..MAX_KEY_CHARS,
        Certain,
    )
}

/// All formats. A longer prefix precedes a prefix of it.
pub(super) const FORMATS: &[TokenFormat] = &[
    token("AKIA", Kind::AWS, is_upper, 16..16, Nothing),
    token("ASIA", Kind::AWS, is_upper, 16..16, Nothing),
    token("ABIA", Kind::AWS, is_upper, 16..16, Nothing),
    token("ACCA", Kind::AWS, is_upper, 16..16, Nothing),
    token("AIza", Kind::GOOGLE, is_word, 35..35, Nothing),
    token("GOCSPX-", Kind::GOOGLE, is_word, 24..32, Nothing),
    token("ya29.", Kind::GOOGLE, is_dotted, 30..LONG, Digit),
    token("github_pat_", Kind::GITHUB, is_snake, 40..120, Digit),
    token("ghp_", Kind::GITHUB, is_snake, 30..255, Digit),
    token("gho_", Kind::GITHUB, is_snake, 30..255, Digit),
    token("ghu_", Kind::GITHUB, is_snake, 30..255, Digit),
    token("ghs_", Kind::GITHUB, is_dotted, 30..LONG, Digit),
    token("ghr_", Kind::GITHUB, is_snake, 30..255, Digit),
    token("glpat-", Kind::GITLAB, is_dotted, 20..300, Nothing),
    token("gldt-", Kind::GITLAB, is_word, 20..64, Nothing),
    token("glrt-", Kind::GITLAB, is_dotted, 20..300, Nothing),
    token("glptt-", Kind::GITLAB, is_word, 40..64, Nothing),
    token("glcbt-", Kind::GITLAB, is_word, 20..80, Nothing),
    token("glft-", Kind::GITLAB, is_word, 20..64, Nothing),
    token("glsoat-", Kind::GITLAB, is_word, 20..64, Nothing),
    token("glimt-", Kind::GITLAB, is_word, 20..64, Nothing),
    token("glagent-", Kind::GITLAB, is_word, 40..64, Nothing),
    token("GR1348941", Kind::GITLAB, is_word, 20..40, Nothing),
    token("npm_", Kind::REGISTRY, is_alphanumeric, 36..36, Digit),
    token("pypi-AgE", Kind::REGISTRY, is_word, 50..LONG, Digit),
    token("rubygems_", Kind::REGISTRY, is_hex, 48..48, Digit),
    token("dckr_pat_", Kind::REGISTRY, is_word, 24..64, Nothing),
    token("xoxe.xox", Kind::SLACK, is_word, 20..400, Digit),
    token("xox", Kind::SLACK, is_word, 20..400, Digit),
    token("xapp-", Kind::SLACK, is_word, 20..400, Digit),
    token("sk_live_", Kind::STRIPE, is_alphanumeric, 16..255, Digit),
    token("sk_test_", Kind::STRIPE, is_alphanumeric, 16..255, Digit),
    token("rk_live_", Kind::STRIPE, is_alphanumeric, 16..255, Digit),
    token("rk_test_", Kind::STRIPE, is_alphanumeric, 16..255, Digit),
    token("whsec_", Kind::STRIPE, is_base64, 24..128, Digit),
    token("sk-ant-", Kind::ANTHROPIC, is_word, 24..255, Digit),
    token("sk-proj-", Kind::OPENAI, is_word, 20..255, Digit),
    token("sk-svcacct-", Kind::OPENAI, is_word, 20..255, Digit),
    token("sk-admin-", Kind::OPENAI, is_word, 20..255, Digit),
    token("sk-or-v1-", Kind::OPENAI, is_word, 20..255, Digit),
    token("sk-", Kind::OPENAI, is_word, 20..255, LongRun),
    token("hf_", Kind::HUGGINGFACE, is_alphanumeric, 30..40, Cases),
    token(
        "api_org_",
        Kind::HUGGINGFACE,
        is_alphanumeric,
        30..40,
        Cases,
    ),
    token("SG.", Kind::SERVICE, is_dotted, 60..80, Digit),
    token("SK", Kind::SERVICE, is_hex, 32..32, Digit),
    token("key-", Kind::SERVICE, is_hex, 32..32, Digit),
    token("dop_v1_", Kind::SERVICE, is_hex, 64..64, Digit),
    token("shpat_", Kind::SERVICE, is_hex, 32..32, Digit),
    token("gsk_", Kind::SERVICE, is_alphanumeric, 40..64, Digit),
    token("xai-", Kind::SERVICE, is_alphanumeric, 60..100, Digit),
    token("r8_", Kind::SERVICE, is_alphanumeric, 37..37, Digit),
    token("lin_api_", Kind::SERVICE, is_alphanumeric, 32..48, Digit),
    token("ntn_", Kind::SERVICE, is_alphanumeric, 40..50, Digit),
    token("glsa_", Kind::SERVICE, is_snake, 32..48, Digit),
    token("hvs.", Kind::SERVICE, is_word, 24..200, Digit),
    token(
        "AGE-SECRET-KEY-1",
        Kind::PRIVATE_KEY,
        is_upper,
        50..64,
        Digit,
    ),
    // PKCS #8, RSA, EC, OpenSSH, and encrypted PKCS #8.
    encoded_key("LS0tLS1CRUdJTiBQUklWQVRFIEtFW"),
    encoded_key("LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRV"),
    encoded_key("LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFW"),
    encoded_key("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZ"),
    encoded_key("LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRV"),
];

/// Prefixes that several formats share. They are searched instead of the longer ones.
const SHARED_PREFIXES: &[&str] = &["xox", "sk-", "LS0tLS1CRUdJTiB"];

/// The literals that announce a token: the prefixes of [`FORMATS`], and the starts of a JWT and of a webhook.
///
/// Two letters are too common to search for: `SK` is found as the value of an assignment.
pub(super) fn literals() -> impl Iterator<Item = &'static str> {
    let is_shared = |prefix: &str| SHARED_PREFIXES.iter().any(|part| prefix.starts_with(part));
    let prefixes = FORMATS.iter().map(|format| format.prefix);
    prefixes
        .filter(move |prefix| prefix.len() > 2 && !is_shared(prefix))
        .chain(SHARED_PREFIXES.iter().copied())
        .chain(["eyJ", "hooks.slack.com/services/"])
}
