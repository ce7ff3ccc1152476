//! Properties of redaction for any text.

use std::sync::Arc;

use proptest::prelude::*;
use zeph_secrets::{ExtraPattern, KnownSecrets, SecurityConfig, SecurityPatterns, StreamRedactor};

use crate::generate::{ENCODED_KEYS, encoded_pem, samples};
use crate::negatives;
use crate::random::Random;

fn in_pieces(secrets: &Arc<SecurityPatterns>, text: &str, cuts: &[usize]) -> String {
    let mut places: Vec<usize> = cuts
        .iter()
        .map(|cut| text.floor_char_boundary(cut % (text.len() + 1)))
        .collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    let mut stream = StreamRedactor::new(Arc::clone(secrets));
    let mut out = String::new();
    for pair in places.windows(2) {
        out.push_str(&stream.push(&text[pair[0]..pair[1]]));
    }
    out + &stream.finish()
}

/// Proves OUT-21: a single cut at any position, also between a backslash and the quote that it escapes.
#[test]
fn one_cut_anywhere_changes_nothing() {
    let secrets = Arc::new(SecurityPatterns::default());
    let value = ["k3Vq", "9Zt1aa77", "Qz0P"].concat();
    let begin = || ["-----BEGIN ", "PRIVATE ", "KEY"].concat();
    let body = Random(7).alphanumeric(64);
    for text in [
        format!(r#"{{"out": "{{\"secret\": \"{value}\"}}"}}"#),
        format!(r#"{{"out": "{{\\\"api_key\\\" : \\\"{value}\\\"}}"}}"#),
        format!("machine a login b password {value} --token {value} x"),
        format!("DB_PASSWORD = '{value}' and https://user:{value}@host/x"),
        // A key whose line continues: the text after it determines whether it is complete.
        format!("{}----{body}}} and more\n", begin()),
        format!("{}----{body}{{s://:{value}@host", begin()),
        format!("{}-----+`\n{body}\n", begin()),
        // Text before a carriage return or a bell may continue after it.
        format!("--token {value}\r{value} x"),
        format!("--token {value}\u{7}\u{1b}[m{value} x"),
    ] {
        let whole = in_pieces(&secrets, &text, &[]);
        assert_ne!(whole, text);
        for cut in 0..text.len() {
            assert_eq!(in_pieces(&secrets, &text, &[cut]), whole, "{cut} in {text}");
        }
    }
}

/// Proves OUT-21: a key on one line without an end is removed for any length, and only a little of it is
/// buffered.
#[test]
fn endless_key_is_removed() {
    let secrets = Arc::new(SecurityPatterns::default());
    let body = Random(3).alphanumeric(200_000);
    let begin = ["-----BEGIN ", "PRIVATE ", "KEY-----"].concat();
    for between in ["", "}"] {
        let text = format!("{begin}{}{between}{}", &body[..100], &body[100..]);
        let cuts: Vec<usize> = (0..text.len()).step_by(1000).collect();
        let redacted = in_pieces(&secrets, &text, &cuts);
        assert!(redacted.len() < 1000, "{} bytes are left", redacted.len());
        assert!(redacted.starts_with("[redacted:private_key]"), "{redacted}");
    }
}

/// Proves OUT-20, OUT-21: a private key in base64, as Kubernetes stores it, is removed whole.
/// A certificate is unchanged.
#[test]
fn encoded_private_key_is_removed_whole() {
    let secrets = Arc::new(SecurityPatterns::default());
    let mut r = Random(13);
    for label in ENCODED_KEYS {
        for count in [2, 70] {
            let key = encoded_pem(&mut r, label, count);
            for (before, after) in [
                ("    client-key-data: ", "\n"),
                ("  tls.key: ", "\n"),
                ("{\"tls.key\":\"", "\"}\n"),
                ("PRIVATE_KEY=", "\n"),
            ] {
                let text = format!("{before}{key}{after}");
                let expect = format!("{before}[redacted:private_key]{after}");
                assert_eq!(secrets.redact(&text).text, expect, "{label}");
                let cuts: Vec<usize> = (0..text.len()).step_by(100).collect();
                assert_eq!(in_pieces(&secrets, &text, &cuts), expect, "{label}");
            }
        }
    }
    let key = encoded_pem(&mut r, ENCODED_KEYS[0], 70);
    assert!(key.len() > 6000, "{}", key.len());
    let certificate = encoded_pem(&mut r, "CERTIFICATE", 70);
    let text = format!("certificate-authority-data: {certificate}\n");
    assert_eq!(secrets.redact(&text).text, text);
}

/// Texts that consist of secrets, parts of them, and similar text.
fn texts() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        4 => (0_usize..900).prop_map(|at| {
            let samples = samples(11);
            samples[at % samples.len()].text.clone()
        }),
        2 => "[ -~\n\r\t]{0,30}",
        1 => any::<u64>().prop_map(|seed| {
            let mut r = Random(seed);
            let samples = samples(seed % 40);
            let text = &samples[r.below(samples.len())].text;
            // A part of a secret with other text inserted.
            let at = text.floor_char_boundary(r.below(text.len()));
            let end = text.ceil_char_boundary(at + r.below(text.len() - at + 1));
            let between = r.pick(&["\r", "\u{7}", "\u{1b}[1m", "\n", "}", "\\", "", " "]);
            format!("{}{between}{}", &text[..at], &text[end..])
        }),
        1 => "(password|token|api_key|Bearer |://|sk-|eyJ|=|: |\"|'|\\\\|\n|-----BE|GIN |PRIVATE KEY-----|x1Y2z3W4){0,8}",
        1 => "[a-zä€\u{1b}\u{8}\\[m;]{0,8}",
    ];
    proptest::collection::vec(parts, 0..5).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Proves OUT-21: the redacted text does not depend on the chunks.
    #[test]
    fn redaction_is_equal_for_any_chunks(text in texts(), cuts in proptest::collection::vec(any::<usize>(), 0..12)) {
        let secrets = Arc::new(SecurityPatterns::default());
        prop_assert_eq!(in_pieces(&secrets, &text, &cuts), in_pieces(&secrets, &text, &[]));
    }

    /// Proves OUT-21: redaction of redacted text changes nothing.
    #[test]
    fn redaction_is_idempotent(text in texts()) {
        let secrets = Arc::new(SecurityPatterns::default());
        let once = secrets.redact(&text).text.into_owned();
        prop_assert_eq!(secrets.redact(&once).text, once.as_str());
    }

    /// Proves OUT-21: no value remains, regardless of chunks and colours.
    #[test]
    fn no_value_remains(seed in 0_u64..40, cuts in proptest::collection::vec(any::<usize>(), 0..20)) {
        let secrets = Arc::new(SecurityPatterns::default());
        let samples = samples(seed);
        let mut r = Random(seed);
        let some: Vec<_> = (0..12).map(|_| &samples[r.below(samples.len())]).collect();
        let text: String = some.iter().map(|sample| format!("{}\n", sample.text)).collect();
        let redacted = in_pieces(&secrets, &text, &cuts);
        for sample in some {
            for value in &sample.values {
                prop_assert!(!redacted.contains(value.as_str()), "{} in {}: {:?}", sample.kind, sample.context, sample.text);
            }
        }
    }

    #[test]
    fn any_text_is_accepted(text in any::<String>(), cuts in proptest::collection::vec(any::<usize>(), 0..5)) {
        let config = SecurityConfig {
            extra_patterns: vec![ExtraPattern { name: "any".to_owned(), pattern: "[a-z]{2}[0-9]".to_owned() }],
            ..SecurityConfig::default()
        };
        let known = KnownSecrets { keys: vec!["k3Vq9Zt1".to_owned()], likely: Vec::new() };
        let secrets = Arc::new(SecurityPatterns::new(&config, &known).0);
        prop_assert_eq!(in_pieces(&secrets, &text, &cuts), in_pieces(&secrets, &text, &[]));
    }
}

/// Proves OUT-21: a text without secrets is unchanged byte for byte, also if it is shown on a terminal.
#[test]
fn text_without_a_secret_is_unchanged() {
    let secrets = Arc::new(SecurityPatterns::default());
    for (name, text) in negatives::texts(3) {
        assert!(
            in_pieces(&secrets, &text, &[1, 999, 12_345, 50_000]) == text,
            "{name}"
        );
    }
    let config = SecurityConfig {
        redact: false,
        ..SecurityConfig::default()
    };
    let shown = Arc::new(SecurityPatterns::new(&config, &KnownSecrets::default()).0);
    for sample in samples(5) {
        assert_eq!(in_pieces(&shown, &sample.text, &[3, 17, 40]), sample.text);
    }
}

/// Proves OUT-21: escape sequences, overstrikes and carriage returns within a value do not prevent its
/// redaction.
#[test]
fn escape_sequences_do_not_hide_a_value() {
    let secrets = Arc::new(SecurityPatterns::default());
    let mut r = Random(1);
    for sample in samples(9) {
        let [value] = sample.values.as_slice() else {
            continue;
        };
        let at = 3 + r.below(value.len() - 4);
        for between in [
            "\u{1b}[m\u{1b}[K",
            "\u{1b}[1;31m",
            "\u{1b}]8;;x\u{7}",
            "x\u{8}",
            "\r",
        ] {
            let cut = format!("{}{between}{}", &value[..at], &value[at..]);
            let text = sample.text.replace(value.as_str(), &cut);
            let redacted = secrets.redact(&text).text;
            let shown = redacted.replace(between, "");
            assert!(
                !shown.contains(value.as_str()),
                "{} in {}: {text:?}",
                sample.kind,
                sample.context
            );
        }
    }
}

/// Proves OUT-21: a token as the user of a URL is redacted like its password, also if only a terminal shows
/// it as one text. Redacted text is unchanged.
#[test]
fn token_as_user_is_redacted_with_the_password() {
    let secrets = Arc::new(SecurityPatterns::default());
    let mut random = Random(11);
    let (user, password) = (random.alphanumeric(36), random.alphanumeric(12));
    for token in [
        format!("ghp_{user}"),
        format!("ghp_{}xy\u{8}\u{8}{}", &user[..9], &user[9..]),
        format!("ghp_{}\u{1b}[m{}", &user[..9], &user[9..]),
    ] {
        let text = format!("origin https://{token}:{password}@example.com/a.git (fetch)\n");
        let redacted = secrets.redact(&text).text;
        for part in [&user[..9], &user[9..], &password] {
            assert!(!redacted.contains(part), "{text:?}: {redacted:?}");
        }
        assert_eq!(secrets.redact(&redacted).text, redacted);
    }
}
