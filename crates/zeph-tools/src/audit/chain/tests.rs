//! The format of entries, and the checks of a chain.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn chain(calls: &[Value]) -> Vec<Sealed> {
    let mut link = Link {
        seq: 0,
        hash: hex_digest(b"name"),
    };
    let seal_one = |call: &Value| {
        let entry = AuditEntry {
            session: "s".into(),
            ..AuditEntry::of_the_trail(7, call.clone())
        };
        let text = call.to_string();
        let sealed = seal(&Fields::of(&entry, &text, "[]"), &link);
        link = sealed.link.clone();
        sealed
    };
    calls.iter().map(seal_one).collect()
}

fn check(lines: &[Vec<u8>], known: Vec<Link>) -> Result<(), String> {
    let mut check = ChainCheck::new(known);
    for line in lines {
        let (link, prev) = open(line).ok_or("damaged")?;
        check.entry(&link, &prev)?;
    }
    check.finish()
}

/// The bytes are fixed: a check with other programs computes the same hash.
#[test]
fn canonical_form_matches_the_documentation() {
    let sealed = &chain(&[json!({"path": "ä\n"})])[0];
    let name = "82a3537ff0dbce7eec35d69edc3a189ee6f17d82f353a553f9aa96cb0be3ce89";
    let body = format!(
        r#"{{"v":1,"seq":1,"prev":"{name}","ts":7,"session":"s","call_id":"","tool":"audit","call":{{"path":"ä\n"}},"result":"success","result_digest":"{}","result_size":15,"trust":"trusted","approved_by":"auto","phase":"executor","duration_ms":0,"exit_code":null,"truncated":null,"error_category":null,"attempts":0,"cached":false,"adversarial_policy_decision":null,"claim_source":null"#,
        hex_digest("{\"path\":\"ä\\n\"}".as_bytes()),
    );
    let hash = hex_digest(body.as_bytes());
    assert_eq!(sealed.line, format!("{body},\"hash\":\"{hash}\"}}"));
    assert!(serde_json::from_str::<Value>(&sealed.line).is_ok());
}

#[test]
fn printed_head_is_parsed() {
    let hash = hex_digest(b"x");
    let link: Link = format!("12:{hash}").parse().unwrap();
    assert_eq!((link.seq, &link.hash), (12, &hash));
    assert_eq!(link.to_string().parse::<Link>(), Ok(link));
    for wrong in [
        "",
        "12",
        "x:1",
        "1:abc",
        &format!("-1:{hash}"),
        &format!("1:{hash}0"),
    ] {
        assert!(wrong.parse::<Link>().is_err(), "{wrong}");
    }
}

proptest! {
    /// Proves OUT-52: any byte that is changed, any entry that is removed, doubled or moved.
    #[test]
    fn any_change_of_the_chain_is_detected(
        texts in prop::collection::vec(".{0,12}", 2..8),
        at in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let calls: Vec<Value> = texts.iter().map(|text| json!({ "command": text })).collect();
        let sealed = chain(&calls);
        let head = vec![sealed.last().unwrap().link.clone()];
        let lines: Vec<Vec<u8>> = sealed.iter().map(|s| s.line.clone().into_bytes()).collect();
        prop_assert_eq!(check(&lines, head.clone()), Ok(()));

        let at = at.index(lines.len());
        let mut edited = lines.clone();
        let byte = byte.index(edited[at].len());
        edited[at][byte] ^= flip;
        prop_assert!(check(&edited, head.clone()).is_err());

        let mut removed = lines.clone();
        removed.remove(at);
        prop_assert!(check(&removed, head.clone()).is_err());

        let mut doubled = lines.clone();
        doubled.insert(at, lines[at].clone());
        prop_assert!(check(&doubled, head.clone()).is_err());

        let mut swapped = lines.clone();
        swapped.swap(at, (at + 1) % lines.len());
        prop_assert!(check(&swapped, head.clone()).is_err());

        // Another chain of the same length, which is valid on its own.
        let mut other = calls;
        other[at] = json!({ "command": "another" });
        let other: Vec<Vec<u8>> = chain(&other).iter().map(|s| s.line.clone().into_bytes()).collect();
        prop_assert!(check(&other, head).is_err());
    }
}
