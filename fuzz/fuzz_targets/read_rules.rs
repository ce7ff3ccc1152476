//! Read rules: a denied path and all paths below it stay denied, regardless of allow rules.
#![no_main]

use std::path::Path;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use zeph_tools::file::ReadRules;

#[derive(Arbitrary, Debug)]
struct Input {
    deny: Vec<String>,
    allow: Vec<String>,
    path: String,
    below: String,
}

fuzz_target!(|input: Input| {
    if input.deny.len() + input.allow.len() > 8 || input.path.contains('\0') {
        return;
    }
    let home = Path::new("/home/alice");
    let path = format!("/{}", input.path);
    // Rules are matched against real paths.
    if path
        .split('/')
        .skip(1)
        .any(|part| matches!(part, "" | "." | ".."))
    {
        return;
    }
    let path = Path::new(&path);
    let denied = ReadRules::new(&input.deny, &[], Some(home));
    let both = ReadRules::new(&input.deny, &input.allow, Some(home));
    let Ok(denied) = denied else {
        assert!(both.is_err());
        return;
    };
    let Ok(both) = both else { return };
    assert_eq!(
        both.is_empty(),
        input.deny.is_empty() && input.allow.is_empty()
    );
    if denied.refusal(path).is_some() {
        assert!(
            both.refusal(path).is_some(),
            "an allow rule lifts a deny rule"
        );
        let below = path.join(format!("x{}", input.below.replace(['\0', '/'], "")));
        assert!(
            both.refusal(&below).is_some(),
            "below a denied directory: {below:?}"
        );
    }
    // A path equal to a rule is denied, if the rule has no special characters.
    let literal = path.to_string_lossy();
    let plain = literal
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'/' || b == b'.');
    let canonical = !literal.contains("//") && !literal.ends_with('/');
    if plain
        && canonical
        && let Ok(rules) = ReadRules::new(&[literal.to_string()], &[], None)
    {
        assert!(
            rules.refusal(path).is_some(),
            "{path:?} is not denied by itself"
        );
    }
});
