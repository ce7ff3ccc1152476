//! A package index (PEP 503, PEP 691): where the files of a project are.

use reqwest::Url;
use serde::Deserialize;

/// The forms that are asked for.
pub(super) const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

#[derive(Deserialize)]
struct Project {
    files: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    filename: String,
    url: String,
}

/// Where `file` is, as a project's page says, which was found at `base`.
pub(super) fn find(page: &str, base: &Url, file: &str) -> Option<Url> {
    let link = match serde_json::from_str::<Project>(page) {
        Ok(project) => {
            let listed = project.files.into_iter().find(|it| it.filename == file);
            listed.map(|it| it.url)
        }
        Err(_) => links(page).find(|link| names(link, file)),
    }?;
    let mut url = base.join(&link).ok()?;
    url.set_fragment(None);
    let is_own =
        url.host() == base.host() && url.port_or_known_default() == base.port_or_known_default();
    if is_own && url.scheme() == base.scheme() && url.username().is_empty() {
        // Who may read the index may read its files; nobody else is told who asks.
        let _ = url.set_username(base.username());
        let _ = url.set_password(base.password());
    }
    Some(url)
}

/// The places that a page in HTML leads to.
fn links(page: &str) -> impl Iterator<Item = String> {
    page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''))?;
        let (link, _) = rest[1..].split_once(quote)?;
        Some(link.replace("&amp;", "&"))
    })
}

/// Whether a link ends with this file.
fn names(link: &str, file: &str) -> bool {
    let path = link.split(['#', '?']).next().unwrap_or_default();
    path.rsplit('/').next() == Some(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_of_a_project() {
        let base = Url::parse("https://me:pw@index.example/simple/a/").unwrap();
        let json = r#"{"meta":{},"files":[{"filename":"a-1.whl","url":"https://files.example/x/a-1.whl","hashes":{}}]}"#;
        let html = "<a href='../../f/a-0.whl#sha256=1'>a-0.whl</a><br>\
             <a href=\"../../f/a-1.whl?x=1&amp;y=2#sha256=ff\" data-x=\"\">a-1.whl</a>";
        for (page, file, expect) in [
            (json, "a-1.whl", Some("https://files.example/x/a-1.whl")),
            (json, "a-2.whl", None),
            (
                html,
                "a-1.whl",
                Some("https://me:pw@index.example/f/a-1.whl?x=1&y=2"),
            ),
            (html, "1.whl", None),
            ("", "a-1.whl", None),
            ("{\"files\":[]}", "a-1.whl", None),
            ("href=\u{fc}", "a-1.whl", None),
        ] {
            let url = find(page, &base, file).map(|url| url.to_string());
            assert_eq!(url.as_deref(), expect, "{page}");
        }
    }
}
