//! Tests of the selection of the command that determines the output.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use super::*;

fn text(command: &str) -> String {
    Subject::of(command).map_or_else(|| "-".to_owned(), |subject| subject.text)
}

fn check(command: &str, expect: &str) {
    assert_eq!(text(command), expect, "{command}");
}

/// Proves OUT-2.
#[test]
fn last_command_is_found_without_its_environment() {
    check("cargo test", "cargo test");
    check("cd /p && cargo test 2>&1 | tail -80", "cargo test");
    check("cargo fmt; cargo clippy --all || cargo test", "cargo test");
    check(
        "RUST_LOG=debug A=b cargo test -q > /dev/null",
        "cargo test -q",
    );
    check("cargo test\n", "cargo test");
    check("cargo build &&\n  cargo test # why", "cargo test");
    check("cargo test |& tee log | grep -v ok", "cargo test");
    check("(cd a && cargo test) | tail", "cargo test");
    check("{ cd a; cargo test; } 2>&1", "cargo test");
    check("for p in a b; do cargo test -p $p; done", "cargo test -p …");
    check(
        "if cargo build; then cargo test; else echo no; fi",
        "cargo test",
    );
    check("t() { cargo test \"$@\"; }; t -q", "cargo test …");
    check("! cargo test", "cargo test");
    check("cat <<'EOF' > a\ncargo run\nEOF\ncargo test", "cargo test");
    check("cargo test &", "cargo test");
    check("cd a", "cd a");
    check("", "-");
    check("# nothing", "-");
    check("A=b", "-");
}

/// Proves OUT-2.
#[test]
fn trailing_reports_do_not_count() {
    for after in [
        "; echo $?",
        "; echo done",
        " || true",
        " && echo ok",
        "; exit $?",
        " || exit 1",
        "; cd ..",
        "; echo \"exit: $?\"; true",
        " || echo failed",
        "; rc=$?; echo $rc; exit $rc",
        "; [ $? = 0 ]",
        " && printf 'ok\\n'",
        "; test -e x",
        "; sleep 1; wait",
    ] {
        check(&format!("cargo test{after}"), "cargo test");
    }
    check("cargo test; cat log", "cat log");
}

/// Proves OUT-2.
#[test]
fn strips_wrappers() {
    for before in [
        "time",
        "time -p",
        "env",
        "env A=b",
        "env -u A B=c",
        "env -i",
        "timeout 60",
        "timeout -k 5 60s",
        "timeout --signal=KILL 1m",
        "nice",
        "nice -n 10",
        "nice -10",
        "sudo",
        "sudo -u root -E",
        "sudo -n A=b",
        "doas -u x",
        "stdbuf -oL",
        "stdbuf -o L -e 0",
        "xvfb-run -a",
        "xvfb-run --server-args='-screen 0 1x1x24'",
        "command",
        "exec",
        "nohup",
        "setsid -w",
        "ionice -c 3",
        "taskset -c 0,1",
        "timeout 9 nice -n 1 env A=b",
        "A=b sudo env C=d time",
        "flock /tmp/l",
        "caffeinate -i",
        "/usr/bin/time -v",
        "/usr/bin/env",
        "chronic",
        "unbuffer",
        "mise exec -- ",
        "direnv exec .",
        "rustup run nightly",
        "gtimeout 5",
        "\\time",
        "nix develop -c",
    ] {
        check(&format!("{before} cargo test"), "cargo test");
    }
    check("bash -c 'cd a && cargo test | tail'", "cargo test");
    check("bash -lc \"cargo test\"", "cargo test");
    check("bash -eo pipefail -c 'cargo test | tee l'", "cargo test");
    check("sh -c \"bash -c 'cargo test'\"", "cargo test");
    check("script -qec 'cargo test' /dev/null", "cargo test");
    check("script -q /dev/null cargo test", "cargo test");
    check("env -S 'cargo test'", "cargo test");
    check("flock /tmp/l -c 'cargo test'", "cargo test");
    check("nix-shell --run 'cargo test'", "cargo test");
    check("command -v cargo", "command -v cargo");
    check("sudo", "sudo");
    check("env", "env");
    check("bash build.sh", "bash build.sh");
}

/// Proves OUT-2.
#[test]
fn programs_are_called_one_way() {
    check("/usr/bin/git status", "git status");
    check("./target/debug/app x", "app x");
    check("cargo +nightly test", "cargo test");
    check("cargo -q --color always test -p x", "cargo test -q -p x");
    check("cargo --version", "cargo --version");
    check("git -C d --no-pager -c a.b=c log -n 3", "git log -n 3");
    check("git --git-dir=x diff", "git diff");
    check("python -m pytest -q", "pytest -q");
    check("python3.12 -X dev -W error -m pytest", "pytest");
    check("python3 -Im pip install x", "pip install x");
    check("python -m coverage run -m pytest t", "pytest t");
    check("python3 -c 'print(1)'", "python -c print(1)");
    check("pip3 install x", "pip install x");
    check("py.test", "pytest");
    check("npx -y jest@29 --ci", "jest --ci");
    check("npx --package typescript tsc -p .", "tsc -p .");
    check("npm exec -- eslint .", "eslint .");
    check("npm --prefix web install", "npm install");
    check("pnpm exec vitest run", "vitest run");
    check("pnpm --filter web -r vitest", "vitest");
    check("pnpm install", "pnpm install");
    check("yarn jest", "jest");
    check("yarn --cwd web workspace app tsc", "tsc");
    check("yarn", "yarn");
    check(
        "yarn install --frozen-lockfile",
        "yarn install --frozen-lockfile",
    );
    check("yarn test", "yarn test");
    check("bunx --bun vitest", "vitest");
    check("uv run --with x pytest -q", "pytest -q");
    check("uv run -- python -m pytest", "pytest");
    check("uv pip install x", "uv pip install x");
    check("poetry run mypy .", "mypy .");
    check("poetry install", "poetry install");
    check("bundle exec rspec", "rspec");
    check("bundle install", "bundle install");
    check("./gradlew test", "gradle test");
    check("../mvnw -q verify", "mvn -q verify");
    check("node node_modules/.bin/jest", "jest");
    check("kubectl -n a --context=b get pods", "kubectl get pods");
    check("docker --context x build .", "docker build .");
    check("docker compose -f a.yml up -d", "docker compose up -d");
    check("docker-compose -f a.yml build", "docker compose build");
    check("terraform -chdir=infra plan", "terraform plan");
    check("go -C x test ./...", "go test ./...");
    check("ls *.rs", "ls *.rs");
    check("echo $(cargo test)", "echo …");
    check("$CARGO test", "… test");
}

/// Proves OUT-2.
#[test]
fn detects_output_redirection() {
    let subject = |command: &str| Subject::of(command).unwrap();
    let piped = |command: &str| subject(command).piped_into;
    assert_eq!(piped("cargo test"), Vec::<Vec<String>>::new());
    assert_eq!(piped("cargo test 2>&1 | tail -80"), [["tail", "-80"]]);
    assert_eq!(
        piped("(cargo test | sort) | sudo head")[..],
        [vec!["sort"], vec!["head"]]
    );
    assert_eq!(
        piped("bash -c 'cargo test | cat' | grep x")[..],
        [vec!["cat"], vec!["grep", "x"]]
    );
    let away = |command: &str| subject(command).redirected;
    for command in [
        "a > f",
        "a >> f",
        "a &> f",
        "a >& f",
        "a 1> f",
        "(a) > f",
        "bash -c a >f",
        "if (; a >f",
    ] {
        assert!(away(command), "{command}");
    }
    for command in [
        "a",
        "a 2> f",
        "a 2>&1",
        "a < f",
        "a 2>/dev/null | b",
        "a > f; b",
        "if (; a 2>f 2>&1",
    ] {
        assert!(!away(command), "{command}");
    }
    let earlier = |command: &str| subject(command).earlier;
    assert_eq!(earlier("cargo clippy; cargo test"), [["cargo", "clippy"]]);
    assert_eq!(
        earlier("cd a; echo b; A=c sudo make x; cargo test; true"),
        [["make", "x"]]
    );
    assert_eq!(
        earlier("cargo clippy > f; cargo test"),
        Vec::<Vec<String>>::new()
    );
    // The first command only feeds another one.
    check("echo y | npm init", "npm init");
    check("cat a.sql | psql | tail", "psql");
    check("cat a | grep b", "cat a");
    check("yes | sudo apt-get install x", "apt-get install x");
}

/// Proves OUT-2.
#[test]
fn unparsable_command_is_split() {
    let check = |command: &str, expect: &str| {
        assert!(zeph_bash::parse(command).is_err(), "{command}");
        assert_eq!(text(command), expect, "{command}");
    };
    check("cargo test && (", "cargo test");
    check(
        "cd a && cargo test 'x y' 2>&1 | tail -5; echo \"",
        "cargo test x y",
    );
    check("if true; then A=b cargo test; ", "cargo test");
    check("cargo test $(date; ls | x) >&2 | )", "cargo test …");
    check("cat <<EOF >f\nls; rm\nEOF\ncargo test )", "cargo test");
    check("cargo test '", "cargo test ");
}

proptest! {
    /// Proves OUT-2: for any text.
    #[test]
    fn any_command_text_is_split(command in "([a-z./= -]|[$`'\"(){};|&<>\\\\\n!#*]|sudo |bash -c |<<a |if |do |done){0,40}") {
        let _ = Subject::of(&command);
        let _ = split::split(&command);
    }

    /// Proves OUT-2.
    #[test]
    fn parser_and_fallback_agree_on_plain_commands(
        commands in proptest::collection::vec("[a-z]{1,4}( [a-z-]{1,4}){0,2}( 2>&1| > f)?( [|] [a-z]{1,3})?", 1..4),
        joint in prop_oneof![Just(" && "), Just("; "), Just(" || "), Just("\n")],
    ) {
        let text = commands.join(joint);
        prop_assume!(zeph_bash::parse(&text).is_ok());
        let whole = parts::parts(&text);
        let broken = parts::parts(&format!("{text}\n)"));
        prop_assert_eq!(whole, broken);
    }
}

/// Proves OUT-2: time stays bounded.
#[test]
fn floods_are_processed_in_bounded_time() {
    let start = std::time::Instant::now();
    for flood in [
        "a; ".repeat(20_000),
        "sudo ".repeat(20_000),
        "((((".repeat(10_000),
        "bash -c '".repeat(5_000),
        "<<a ".repeat(10_000),
        "f() { f; f; f; f; }; ".repeat(50) + &"f; ".repeat(500),
        "a | ".repeat(20_000),
        "$(".repeat(10_000),
    ] {
        let _ = Subject::of(&flood);
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
