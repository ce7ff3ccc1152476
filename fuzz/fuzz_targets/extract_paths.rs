//! Paths in a text: each once, with a slash, and without URLs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zeph_tools::shell::extract_paths;

fuzz_target!(|text: &str| {
    let paths = extract_paths(text);
    for (at, path) in paths.iter().enumerate() {
        assert!(path.contains('/') && !path.contains('\0'), "{path:?}");
        assert!(!paths[..at].contains(path), "twice: {path:?}");
        assert!(
            !path.starts_with("https://") && !path.starts_with("http://"),
            "{path:?}"
        );
    }
    // A quoted path is found, regardless of the text around it.
    if !text.contains(['"', '\'', '`', '\\', '\n', '\0']) {
        let around = format!("{text} \"/etc/a b\" x");
        assert!(
            extract_paths(&around).iter().any(|path| path == "/etc/a b"),
            "{around:?}"
        );
    }
});
