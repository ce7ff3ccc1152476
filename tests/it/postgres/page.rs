//! The commands and the configuration of docs/sharing-a-store.md, in the order of the page.

use crate::rig::{Home, Postgres, assert_has, follow};

const PAGE: &str = include_str!("../../../docs/sharing-a-store.md");
/// The URL of the page, for the user `ann`.
const URL: &str = "postgres://ann@db.example.org/zeph";

/// The URL of the server for a user.
fn url(server: &Postgres, user: &str) -> String {
    let url = server.url().replace("zeph@", &format!("{user}@"));
    url.replace("/postgres?", "/zeph?")
}

/// Proves OPS-1, OPS-3: the steps of the page work in their order, with the server of the test in place of that of the page.
#[test]
fn steps_of_the_page_work() {
    let server = Postgres::start();
    let home = Home::scripted("[[steps]]\ntext = \"hi\"\n");
    home.zeph(["-p", "a local session"]).code(0);
    let ann = url(&server, "ann");
    let change = |text: &str| {
        let text = text.replace(URL, &ann);
        match text.starts_with("create") {
            // The administrator of the page works on the server.
            true => format!("{} {text}", server.administrator()),
            false => text,
        }
    };
    let outputs = follow(&home, PAGE, "\n## Set up\n", change);
    let [.., copied, database] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    assert_has(copied, &["1 session copied"]);
    assert!(database.starts_with("ok "), "{database}");
    assert_has(database, &["postgres://ann@"]);
    let listed = |home: &Home| home.zeph(["sessions", "list", "--all"]).code(0).stdout;
    assert_has(&listed(&home), &["a local session"]);

    let bob = Home::new();
    bob.config(&format!("[memory]\nurl = {:?}\n", url(&server, "bob")));
    assert_has(&listed(&bob), &["no sessions"]);
    let access = |section: &str| {
        let outputs = follow(&home, PAGE, section, change);
        let [granted, list, revoked] = outputs.as_slice() else {
            panic!("{outputs:?}");
        };
        assert_has(granted, &["bob can read"]);
        assert_eq!(list, "bob\n");
        assert_has(revoked, &["bob no longer has access"]);
    };
    access("\n## Who sees what\n");
    // The configuration of this section is in place of the one above.
    home.config("");
    follow(&home, PAGE, "\n## When the server is away\n", change);
    assert_has(&listed(&home), &["a local session"]);
}
