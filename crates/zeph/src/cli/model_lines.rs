//! The models of a server as lines of text.

use zeph_llm::ServerModel;

use crate::assemble::Listing;
use crate::output::sanitize::clean;

/// One line for each model of a list: the current one is marked, and a known window is shown.
pub(super) fn model_lines(listing: &Listing, current: Option<&str>, most: usize) -> Vec<String> {
    let models = match listing {
        Ok(models) if models.is_empty() => return vec!["  the server has no models".to_owned()],
        Ok(models) => models,
        Err(why) => return vec![format!("  its models are unknown: {}", clean(why))],
    };
    let is_current = |model: &ServerModel| current == Some(model.name.as_str());
    let shown = models.iter().enumerate();
    let shown = shown.filter(|(at, model)| *at < most || is_current(model));
    let mut lines: Vec<String> = shown
        .map(|(_, model)| {
            let mark = if is_current(model) { '*' } else { ' ' };
            let window = model
                .context_window
                .map(|tokens| format!("{tokens} tokens"));
            let line = format!(
                "  {mark} {:<32} {}",
                clean(&model.name),
                window.unwrap_or_default()
            );
            line.trim_end().to_owned()
        })
        .collect();
    if models.len() > lines.len() {
        lines.push(format!("    … and {} more", models.len() - lines.len()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LLM-13 for the displayed list.
    #[test]
    fn list_marks_the_current_model() {
        let model = |name: &str, context_window| ServerModel {
            name: name.to_owned(),
            context_window,
        };
        let listing = Ok(vec![
            model("a", None),
            model("b", Some(8192)),
            model("c", None),
        ]);
        let expect = format!("  * {:<32} 8192 tokens", "b");
        assert_eq!(
            model_lines(&listing, Some("b"), 9),
            ["    a", &expect, "    c"]
        );
        assert_eq!(
            model_lines(&listing, Some("c"), 1),
            ["    a", "  * c", "    … and 1 more"]
        );
        assert_eq!(
            model_lines(&Ok(Vec::new()), None, 9),
            ["  the server has no models"]
        );
        let failed = model_lines(&Err("no\u{1b}[2J".to_owned()), None, 9);
        assert_eq!(failed, ["  its models are unknown: no"]);
    }
}
