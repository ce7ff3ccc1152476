//! A store on a PostgreSQL server, through the binary.

#[cfg(feature = "postgres")]
mod approvals;
#[cfg(feature = "postgres")]
mod page;
#[cfg(feature = "postgres")]
mod pooler;
#[cfg(feature = "postgres")]
mod scheduler;

#[cfg(feature = "postgres")]
mod shared {
    use std::time::Duration;

    use serde_json::json;

    use crate::rig::{
        Home, OpenAi, Postgres, Reply, assert_has, openai_config, results_of, wait_for,
    };

    /// A machine of a user: its own home, the shared store, and a model that answers `response N`.
    pub(super) fn machine(model: &OpenAi, server: &Postgres) -> Home {
        let home = Home::new();
        home.config(&openai_config(&model.url()));
        home.more_config(&server.config());
        home
    }

    pub(super) fn counting() -> OpenAi {
        OpenAi::start(|n, _| Reply::text(&format!("response {n}")))
    }

    /// A model whose first response starts a command that creates the file `started` and does not end.
    pub(super) fn busy_at_first() -> OpenAi {
        OpenAi::start(|n, _| match n {
            0 => Reply::calls(
                "a",
                &[(
                    "bash",
                    json!({ "command": "echo started > started; sleep 600" }),
                )],
            ),
            n => Reply::text(&format!("response {n}")),
        })
    }

    fn only_session(server: &Postgres) -> String {
        let ids = server.query("SELECT id FROM session");
        assert_eq!(ids.len(), 1, "{ids:?}");
        ids[0].clone()
    }

    /// Proves OPS-1, OPS-2: two machines work on one session in turn, and nothing is in a local database.
    #[test]
    fn session_continues_on_another_machine() {
        let (server, model) = (Postgres::start(), counting());
        let (here, there) = (machine(&model, &server), machine(&model, &server));
        here.zeph(["-p", "one"]).code(0).prints(&["response 0"]);
        let id = only_session(&server);
        there
            .zeph(["--resume", &id, "-p", "two"])
            .code(0)
            .prints(&["response 1"]);
        here.zeph(["--resume", &id, "-p", "three"])
            .code(0)
            .prints(&["response 2"]);
        let export = here.export(&id).to_string();
        assert_has(
            &export,
            &[
                "one",
                "response 0",
                "two",
                "response 1",
                "three",
                "response 2",
            ],
        );
        there
            .zeph(["sessions", "list", "--all"])
            .code(0)
            .prints(&[&id[..8]]);
        there
            .zeph(["sessions", "search", "--all", "three"])
            .code(0)
            .prints(&["three"]);
        for home in [&here, &there] {
            assert!(!home.database().exists(), "no local database is created");
        }
    }

    /// Proves OPS-2: the trail has a chain for each machine, and all are verified. A denied call leaves an entry and does not
    /// run.
    #[test]
    fn calls_of_two_machines_are_in_separate_chains() {
        let server = Postgres::start();
        let model = OpenAi::start(
            |_, request| match results_of(&request.messages()).is_empty() {
                true => Reply::calls("a", &[("bash", json!({ "command": "touch ran" }))]),
                false => Reply::text("ended"),
            },
        );
        let (here, there) = (machine(&model, &server), machine(&model, &server));
        here.zeph(["--yes", "-p", "go"]).code(0);
        there.more_config("[tools.permissions]\nbash = [{ pattern = \"*\", action = \"deny\" }]\n");
        there.zeph(["--yes", "-p", "go"]).code(0);
        assert!(here.has("ran") && !there.has("ran"));
        let entries = server.query("SELECT result FROM tool_audit ORDER BY id");
        assert_eq!(entries.len(), 2, "{entries:?}");
        for home in [&here, &there] {
            let verified = home.zeph(["audit", "verify"]).code(0).stdout;
            assert_eq!(verified.matches("intact: 1 entry").count(), 2, "{verified}");
        }
        server.query(
            "ALTER TABLE tool_audit DISABLE TRIGGER ALL; UPDATE tool_audit SET tool = 'read'",
        );
        here.zeph(["audit", "verify"]).code(1).prints(&["WRONG"]);
    }

    /// Proves OPS-2: the session of a killed process passes to another one at once on the same machine.
    #[test]
    fn session_of_a_killed_process_continues() {
        let server = Postgres::start();
        let model = busy_at_first();
        let home = machine(&model, &server);
        let running = home.zeph(["--yes", "-p", "one"]).start();
        wait_for("the command", || home.has("started").then_some(()));
        let id = only_session(&server);
        home.zeph(["--resume", &id, "-p", "two"])
            .code(1)
            .says(&["is in use by process"]);
        running.kill();
        home.zeph(["--resume", &id, "-p", "three"])
            .code(0)
            .prints(&["response"]);
    }

    /// Proves OPS-3: a server that is killed and comes back costs no turn: calls wait, and the conversation is complete.
    #[test]
    fn killed_server_delays_a_turn_and_loses_nothing() {
        let mut server = Postgres::start();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (goes, waits) = std::sync::mpsc::channel::<()>();
        let waits = std::sync::Mutex::new(waits);
        let model = OpenAi::start(move |n, _| {
            if n == 0 {
                sender.send(()).unwrap();
                waits.lock().unwrap().recv().unwrap();
            }
            Reply::text(&format!("response {n}"))
        });
        let home = machine(&model, &server);
        let running = home.zeph(["-p", "one"]).start();
        receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        server.kill();
        goes.send(()).unwrap();
        server.resume();
        running.wait().code(0).prints(&["response 0"]);
        let id = only_session(&server);
        home.zeph(["--resume", &id, "-p", "two"])
            .code(0)
            .prints(&["response 1"]);
        let roles = server.query("SELECT role FROM message ORDER BY seq");
        assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    }

    /// Proves OPS-3: without its server, a session ends with an error within the wait, and no conversation is half written.
    #[test]
    fn unavailable_server_is_an_error_after_the_wait() {
        let mut server = Postgres::start();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (goes, waits) = std::sync::mpsc::channel::<()>();
        let waits = std::sync::Mutex::new(waits);
        let model = OpenAi::start(move |n, _| {
            sender.send(()).unwrap();
            waits.lock().unwrap().recv().unwrap();
            Reply::text(&format!("response {n}"))
        });
        let home = machine(&model, &server);
        let zeph = home.zeph(["-p", "one"]).env("ZEPH_MEMORY_WAIT_SECS", "3");
        let running = zeph.start();
        receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        server.kill();
        goes.send(()).unwrap();
        let output = running.wait();
        assert_has(&output.stderr, &["PostgreSQL server"]);
        assert_ne!(output.code, Some(0), "{}", output.stderr);
        home.zeph(["sessions", "list"])
            .code(2)
            .says(&["cannot be reached"]);
        server.resume();
        let roles = server.query("SELECT role FROM message ORDER BY seq");
        assert!(roles.is_empty() || roles == ["user"], "{roles:?}");
        home.zeph(["sessions", "list"]).code(0);
    }

    /// Proves OPS-3: the password of the URL is in no output: neither in the configuration, nor in errors, nor in the log.
    #[test]
    fn password_is_in_no_output() {
        let server = Postgres::start();
        let home = Home::new();
        let url = server.url().replace("zeph@", "zeph:pass-w0rd@");
        home.config(&format!("[memory]\nurl = {url:?}\n"));
        let mut seen = String::new();
        for args in [
            &["config", "show", "--origin"] as &[&str],
            &["config", "get", "memory.url"],
            &["doctor"],
            &["-vv", "sessions", "list"],
        ] {
            let output = home.zeph(args.iter().copied()).run();
            seen += &(output.stdout + &output.stderr);
        }
        assert_has(&seen, &["zeph:***@", "postgres://zeph@"]);
        for broken in [
            "postgres://ann:pass-w0rd@127.0.0.1:1/x",
            "mysql://ann:pass-w0rd@h/x",
            "postgres://ann:pass-w0rd@h:p/x",
        ] {
            let output = home
                .zeph(["sessions", "list"])
                .env("ZEPH_MEMORY_URL", broken)
                .code(2);
            seen += &(output.stdout + &output.stderr);
        }
        for file in walk(home.root()) {
            if file != home.config_file() {
                seen += &String::from_utf8_lossy(&std::fs::read(&file).unwrap_or_default());
            }
        }
        assert!(!seen.contains("pass-w0rd"), "{seen}");
    }

    fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => files.extend(walk(&entry.path())),
                false => files.push(entry.path()),
            }
        }
        files
    }

    /// Proves OPS-3: a local store is copied to a server, used there, and copied back.
    #[test]
    fn store_is_copied_to_a_server_and_back() {
        let (server, model) = (Postgres::start(), counting());
        let home = Home::new();
        home.config(&openai_config(&model.url()));
        home.zeph(["-p", "one"]).code(0);
        home.zeph([
            "tools",
            "call",
            "memory_save",
            r#"{"content":"A fact."}"#,
            "--session",
            "x",
        ])
        .code(0);
        let copied = home
            .zeph(["memory", "copy", "--to", &server.url()])
            .code(0)
            .stdout;
        assert_has(
            &copied,
            &["2 sessions copied, 0 updated, 0 already there", "1 fact"],
        );
        let again = home
            .zeph(["memory", "copy", "--to", &server.url()])
            .code(0)
            .stdout;
        assert_has(&again, &["0 sessions copied, 0 updated, 2 already there"]);
        home.more_config(&server.config());
        home.zeph(["memory", "list"]).code(0).prints(&["A fact."]);
        home.zeph(["--continue", "-p", "two"])
            .code(0)
            .prints(&["response 1"]);
        home.zeph(["memory", "copy", "--to", "back.db"])
            .code(0)
            .prints(&["2 sessions copied"]);
        let file = home.path("back.db").display().to_string();
        home.config(&format!(
            "{}[memory]\npath = {file:?}\n",
            openai_config(&model.url())
        ));
        home.zeph(["--continue", "-p", "three"])
            .code(0)
            .prints(&["response 2"]);
        home.zeph(["audit", "verify"]).code(0);
        home.zeph(["memory", "copy", "--to", &file])
            .code(1)
            .says(&["is the source of the copy"]);
        home.zeph(["memory", "access", "list"])
            .code(1)
            .says(&["[memory] url"]);
    }

    /// Proves OPS-2: access of another user is granted, shown and ended.
    #[test]
    fn access_is_granted_and_ended() {
        let (server, model) = (Postgres::start(), counting());
        server.query(
            "CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; GRANT CREATE ON SCHEMA public TO ann",
        );
        let of = |user: &str| {
            let home = machine(&model, &server);
            let url = server.url().replace("zeph@", &format!("{user}@"));
            home.config(&format!(
                "{}[memory]\nurl = {url:?}\n",
                openai_config(&model.url())
            ));
            home
        };
        let (ann, bob) = (of("ann"), of("bob"));
        ann.zeph(["-p", "one"]).code(0);
        let listed = |home: &Home| home.zeph(["sessions", "list", "--all"]).code(0).stdout;
        assert_has(&listed(&bob), &["no sessions"]);
        ann.zeph(["memory", "access", "grant", "bob"]).code(0);
        ann.zeph(["memory", "access", "list"])
            .code(0)
            .prints(&["bob"]);
        let id = server.query("SELECT id FROM session").remove(0);
        assert_has(&listed(&bob), &[&id[..8]]);
        bob.zeph(["--resume", &id, "-p", "mine"]).code(1);
        ann.zeph(["memory", "access", "revoke", "bob"]).code(0);
        ann.zeph(["memory", "access", "revoke", "bob"])
            .code(1)
            .says(&["no access"]);
        assert_has(&listed(&bob), &["no sessions"]);
        assert_eq!(server.query("SELECT count(*) FROM message"), ["2"]);
    }
}

/// Proves OPS-1: a program without the feature refuses the key, and says how to get it.
#[cfg(not(feature = "postgres"))]
#[test]
fn url_without_the_feature_is_refused() {
    let home = crate::rig::Home::scripted("[[steps]]\ntext = \"hi\"\n");
    home.more_config("[memory]\nurl = \"postgres://ann@localhost/zeph\"\n");
    for args in [&["-p", "hi"] as &[&str], &["sessions", "list"]] {
        let output = home.zeph(args.iter().copied()).code(2);
        crate::rig::assert_has(&output.stderr, &["--features postgres"]);
    }
}
