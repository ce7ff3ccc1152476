//! Features that the operating system does not support, reported at the start of a conversation.

/// The notice for the operating system with this name, as in [`std::env::consts::OS`]; `None` if all features are supported.
/// The sandbox itself reports parts that a supported system lacks.
pub(super) fn notice(os: &str) -> Option<String> {
    match os {
        "linux" | "macos" => None,
        os => Some(format!(
            "{os} is not supported: commands have no OS sandbox, files of `deny_read` are not hidden from them, and \
             processes that leave their group can outlive the session; `zeph doctor` shows the checks"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_system_is_reported_with_its_missing_features() {
        assert_eq!(notice("linux"), None);
        assert_eq!(notice("macos"), None);
        let notice = notice("freebsd").unwrap();
        assert!(notice.starts_with("freebsd is not supported"), "{notice}");
        assert!(notice.contains("no OS sandbox"), "{notice}");
    }
}
