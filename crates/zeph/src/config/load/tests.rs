//! Tests of loading through real files.

use std::fs;

use proptest::prelude::*;

use super::*;

/// A home and a repository in it.
struct World {
    _temp: tempfile::TempDir,
    env: Environment,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        // The temporary directory itself may be a link.
        let root = real_path(temp.path()).unwrap();
        fs::create_dir_all(root.join("home/.config/zeph")).unwrap();
        fs::create_dir_all(root.join("home/repo/.git")).unwrap();
        fs::create_dir_all(root.join("home/repo/.zeph")).unwrap();
        let env = Environment::of(
            root.join("home/repo"),
            &[("HOME", root.join("home").to_str().unwrap())],
        );
        Self { _temp: temp, env }
    }

    fn user(self, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.home().join(".config/zeph/config.toml"), text).unwrap();
        self
    }

    fn project(self, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.env.cwd.join(".zeph/config.toml"), text).unwrap();
        self
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.env.vars.insert(name.into(), value.into());
        self
    }

    fn home(&self) -> PathBuf {
        self.env.home().unwrap()
    }

    fn load(&self) -> Result<Loaded, String> {
        self.load_with(&FlagOverrides::default())
    }

    fn load_with(&self, flags: &FlagOverrides) -> Result<Loaded, String> {
        let home = self.home();
        load(&self.env, flags)
            .map_err(|errors| errors.to_string().replace(home.to_str().unwrap(), "~"))
    }

    fn origin(&self, loaded: &Loaded, key: &str) -> String {
        loaded
            .provenance
            .of(key)
            .to_string()
            .replace(self.home().to_str().unwrap(), "~")
    }
}

const LOCAL: &str = "[[llm.providers]]\nname = 'local'\ntype = 'openai'\nmodel = 'm'\n";

/// Proves CFG-5.
#[test]
fn empty_configuration_has_the_defaults() {
    let world = World::new();
    let loaded = world.load().unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(
        loaded.paths.user_file,
        world.home().join(".config/zeph/config.toml")
    );
    assert_eq!(loaded.paths.project_file, None);
    assert_eq!(
        loaded.paths.database,
        world.home().join(".local/share/zeph/zeph.db")
    );
    assert!(loaded.config.llm.chosen().is_none());
}

/// Proves CFG-1, CFG-2, AGT-2: each layer overrides those below it, and the origin is reported.
#[test]
fn stronger_source_takes_precedence() {
    let mut world = World::new();
    let mut flags = FlagOverrides::default();
    let check = |world: &World, flags: &FlagOverrides, expect: usize, origin: &str| {
        let loaded = world.load_with(flags).unwrap();
        assert_eq!(loaded.config.agent.max_tool_iterations, expect);
        assert_eq!(world.origin(&loaded, "agent.max_tool_iterations"), origin);
    };
    check(&world, &flags, 10, "default");
    world = world.user("[agent]\nmax_tool_iterations = 9");
    check(&world, &flags, 9, "user file ~/.config/zeph/config.toml:2");
    world = world.project("\n\nagent.max_tool_iterations = 8");
    check(&world, &flags, 8, "project file ~/repo/.zeph/config.toml:3");
    world = world.var("ZEPH_AGENT_MAX_TOOL_ITERATIONS", "12");
    check(
        &world,
        &flags,
        12,
        "environment ZEPH_AGENT_MAX_TOOL_ITERATIONS",
    );
    flags.set = vec![("agent.max_tool_iterations".to_owned(), "13".to_owned())];
    check(&world, &flags, 13, "flag --set agent.max_tool_iterations");
}

/// Proves CFG-1.
#[test]
fn config_flag_replaces_the_user_file() {
    let world = World::new().user("this is broken");
    fs::write(world.env.cwd.join("other.toml"), "tools.mode = 'full'").unwrap();
    let mut flags = FlagOverrides {
        config: Some("other.toml".into()),
        ..FlagOverrides::default()
    };
    assert_eq!(
        world.load_with(&flags).unwrap().config.tools.mode,
        zeph_tools::Mode::Full
    );
    flags.config = Some("missing.toml".into());
    let error = world.load_with(&flags).unwrap_err();
    assert!(
        error.starts_with("~/repo/missing.toml cannot be read: No such file"),
        "{error}"
    );
}

/// Proves CFG-2: faults of all layers are reported together.
#[test]
fn errors_of_all_sources_are_reported_together() {
    let world = World::new()
        .user("[agent]\nmax_tool_iteration = 3\nmax_parallel_calls = 0\n")
        .project("[tools]\nmode = 'full'\n[memory]\npath = 'x'\nsynchronus = 'full'\n")
        .var("ZEPH_TOOLS_SHELL_TIMEOUT", "soon")
        .var("ZEPH_TOOL_MODE", "plan");
    let flags = FlagOverrides {
        mode: Some("x".to_owned()),
        ..FlagOverrides::default()
    };
    let error = world.load_with(&flags).unwrap_err();
    assert_eq!(
        error,
        "~/.config/zeph/config.toml:2:1: `max_tool_iteration` is not a key of [agent]\n  \
         help: did you mean `max_tool_iterations`?\n\
         ~/.config/zeph/config.toml:3:22: `agent.max_parallel_calls` must be an integer of at least 1, not 0\n\
         ~/repo/.zeph/config.toml:2:1: a project's file may only select a later value of: `full` → `auto` → `auto-edit` → `ask` → `plan` (`tools.mode`): \"full\" is looser than \"ask\"\n  \
         help: remove it there; if you want it, set it in ~/.config/zeph/config.toml\n\
         ~/repo/.zeph/config.toml:4:1: a project's file may not set it (`memory.path`): a cloned repository could misuse it\n  \
         help: remove it there; if you want it, set it in ~/.config/zeph/config.toml\n\
         ~/repo/.zeph/config.toml:5:1: `synchronus` is not a key of [memory]\n  help: did you mean `synchronous`?\n\
         environment variable ZEPH_TOOLS_SHELL_TIMEOUT: `tools.shell.timeout` must be an integer of at least 1, not \"soon\"\n\
         --mode: `tools.mode` must be one of \"plan\", \"ask\", \"auto-edit\", \"auto\", \"full\", not \"x\""
    );
}

#[test]
fn unknown_variables_are_warnings() {
    let loaded = World::new().var("ZEPH_TOOL_MODE", "plan").load().unwrap();
    assert_eq!(
        loaded.warnings,
        [
            "the environment variable ZEPH_TOOL_MODE is unknown; the nearest known one is ZEPH_TOOLS_MODE"
        ]
    );
}

/// Proves CLI-1: `--provider`, `--model` and `--mode`.
#[test]
fn named_flags_set_provider_model_and_mode() {
    let two = format!("{LOCAL}{}", LOCAL.replace("local", "other"));
    let world = World::new().user(two);
    let flags = FlagOverrides {
        provider: Some("other".to_owned()),
        model: Some("big".to_owned()),
        mode: Some("plan".to_owned()),
        ..FlagOverrides::default()
    };
    let loaded = world.load_with(&flags).unwrap();
    let chosen = loaded.config.llm.chosen().unwrap();
    assert_eq!(
        (chosen.name.as_str(), chosen.model.as_str()),
        ("other", "big")
    );
    assert_eq!(loaded.config.llm.providers[0].model, "m");
    assert_eq!(loaded.config.tools.mode, zeph_tools::Mode::Plan);
    assert_eq!(
        world.origin(&loaded, "llm.providers[1].model"),
        "flag --model"
    );
    assert_eq!(world.origin(&loaded, "llm.default"), "flag --provider");
    let flags = FlagOverrides {
        provider: Some("locl".to_owned()),
        ..flags
    };
    let error = world.load_with(&flags).unwrap_err();
    assert_eq!(
        error,
        "--provider: there is no provider called \"locl\"\n  help: did you mean `local`?"
    );
}

/// Proves CFG-1: a link in the repository does not widen the sandbox.
#[test]
fn project_cannot_widen_through_a_link() {
    let world = World::new().project("tools.file.allowed_paths = ['src', 'link']");
    fs::create_dir(world.env.cwd.join("src")).unwrap();
    std::os::unix::fs::symlink("..", world.env.cwd.join("link")).unwrap();
    let error = world.load().unwrap_err();
    assert!(
        error.contains("~ is outside; allowed without it: ~/repo"),
        "{error}"
    );
    fs::remove_file(world.env.cwd.join("link")).unwrap();
    std::os::unix::fs::symlink("src", world.env.cwd.join("link")).unwrap();
    let loaded = world.load().unwrap();
    let src = world.env.cwd.join("src");
    assert_eq!(loaded.config.tools.file.allowed_paths, [src.clone(), src]);
}

/// Proves CFG-1: an unreadable project file is an error, not a missing file.
#[test]
fn unreadable_project_file_is_an_error() {
    let world = World::new();
    fs::create_dir(world.env.cwd.join(".zeph/config.toml")).unwrap();
    let error = world.load().unwrap_err();
    assert!(
        error.starts_with("~/repo/.zeph/config.toml cannot be read: it is not a regular file"),
        "{error}"
    );
    fs::remove_dir(world.env.cwd.join(".zeph/config.toml")).unwrap();
    std::os::unix::fs::symlink("nowhere", world.env.cwd.join(".zeph/config.toml")).unwrap();
    assert!(world.load().unwrap_err().contains("cannot be read"));
}

/// Proves CFG-5: `[memory] path` overrides.
#[test]
fn paths_become_absolute() {
    let scripted = "[[llm.providers]]\nname = 's'\ntype = 'scripted'\nscenario = 'a.toml'\n";
    let text = format!(
        "{scripted}[memory]\npath = '~/m.db'\n[tools]\nshell.allowed_paths = ['.', '/x']\n"
    );
    let world = World::new().user(text);
    let loaded = world.load().unwrap();
    assert_eq!(loaded.paths.database, world.home().join("m.db"));
    assert_eq!(
        loaded.config.tools.shell.allowed_paths,
        [world.env.cwd.clone(), "/x".into()]
    );
    assert_eq!(
        loaded.config.llm.providers[0].scenario,
        Some(world.env.cwd.join("a.toml"))
    );
    let world = world.var("ZEPH_MEMORY_PATH", "~/env.db");
    assert_eq!(
        world.load().unwrap().paths.database,
        world.home().join("env.db")
    );
    let world = World::new().user("memory.path = ''");
    assert_eq!(
        world.load().unwrap().paths.database,
        world.home().join(".local/share/zeph/zeph.db")
    );
}

#[test]
fn one_file_can_be_checked_alone() {
    let world = World::new()
        .user("tools.mode = 'plan'\n")
        .project("tools.mode = 'ask'\n")
        .var("ZEPH_TOOLS_MODE", "nonsense");
    fs::write(world.env.cwd.join("good.toml"), LOCAL).unwrap();
    let check = |file: &str| {
        check_file(&world.env, &FlagOverrides::default(), Path::new(file))
            .map_err(|e| e.to_string())
    };
    assert_eq!(check("good.toml"), Ok(Vec::new()));
    let error = check(".zeph/config.toml").unwrap_err();
    assert!(error.contains("\"ask\" is looser than \"plan\""), "{error}");
    assert!(
        check("missing.toml")
            .unwrap_err()
            .contains("cannot be read")
    );
    assert!(
        check("sub/.zeph/config.toml")
            .unwrap_err()
            .contains("cannot be read")
    );
}

/// Loading takes a negligible part of the start time.
#[test]
fn configuration_is_loaded_quickly() {
    let world = World::new()
        .user(include_str!("../../../../../config/default.toml"))
        .project("tools.mode = 'plan'")
        .var("ZEPH_TOOLS_SHELL_TIMEOUT", "60");
    world.load().unwrap();
    let times = (0..50).map(|_| {
        let start = std::time::Instant::now();
        world.load().unwrap();
        start.elapsed()
    });
    // The fastest run measures the code; the others include the load of the machine.
    let best = times.min().unwrap();
    assert!(best < std::time::Duration::from_millis(10), "{best:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Arbitrary files cause neither a panic nor a looser mode through the project.
    #[test]
    fn any_bytes_are_loaded_without_a_panic(user in any::<Vec<u8>>(), project in any::<Vec<u8>>()) {
        let _ = World::new().user(user).project(project).load();
    }

    #[test]
    fn project_is_never_looser(mode in "plan|ask|auto-edit|full|pla.|\\PC{0,4}", n in -5_i64..30) {
        let text = format!("tools.mode = {mode:?}\nagent.max_tool_iterations = {n}");
        if let Ok(loaded) = World::new().project(text).load() {
            prop_assert!(loaded.config.tools.mode <= zeph_tools::Mode::Ask);
            prop_assert!((1..=10).contains(&loaded.config.agent.max_tool_iterations));
        }
    }
}

/// Proves CFG-1: only a limit of a stronger source lowers a value.
#[test]
fn value_yields_to_a_limit_of_a_stronger_source() {
    let check = |world: World, key: &str, expect: Result<(i64, &str), &str>| {
        let loaded = world.load();
        match (loaded, expect) {
            (Ok(loaded), Ok((value, origin))) => {
                let table = toml::Table::try_from(&loaded.config).unwrap();
                let found = super::super::layer::get(&table, key);
                assert_eq!(found, Some(&toml::Value::Integer(value)), "{key}");
                assert_eq!(world.origin(&loaded, key), origin, "{key}");
            }
            (Err(error), Err(expect)) => assert!(error.contains(expect), "{error}"),
            (loaded, _) => panic!("{key}: {:?}", loaded.map(|_| ())),
        }
    };
    const USER: &str = "user file ~/.config/zeph/config.toml";
    let timeout = "tools.shell.timeout";
    let limit = "[tools.shell]\nmax_timeout = 20";
    check(
        World::new().user(limit),
        timeout,
        Ok((20, &format!("{USER}:2"))),
    );
    check(
        World::new().user("[tools.shell]\nmax_timeout = 31"),
        timeout,
        Ok((30, "default")),
    );
    check(
        World::new().user("[tools.shell]\ntimeout = 25\nmax_timeout = 20"),
        timeout,
        Err("`tools.shell.timeout` (25) is more than `tools.shell.max_timeout` (20)"),
    );
    check(
        World::new().user("[tools.shell]\ntimeout = 601"),
        timeout,
        Err("`tools.shell.timeout` (601) is more than"),
    );
    check(
        World::new()
            .user("[tools.shell]\ntimeout = 25")
            .project(limit),
        timeout,
        Ok((20, "project file ~/repo/.zeph/config.toml:2")),
    );
    check(
        World::new()
            .user("[tools.shell]\ntimeout = 25")
            .var("ZEPH_TOOLS_SHELL_MAX_TIMEOUT", "5"),
        timeout,
        Ok((5, "environment ZEPH_TOOLS_SHELL_MAX_TIMEOUT")),
    );
    check(
        World::new()
            .user(limit)
            .var("ZEPH_TOOLS_SHELL_TIMEOUT", "21"),
        timeout,
        Err("environment variable ZEPH_TOOLS_SHELL_TIMEOUT"),
    );
    check(
        World::new().user("[tools.retry]\nmax_ms = 100"),
        "tools.retry.base_ms",
        Ok((100, &format!("{USER}:2"))),
    );
    check(
        World::new().user("[tools.retry]\nbase_ms = 101\nmax_ms = 100"),
        "tools.retry.base_ms",
        Err("`tools.retry.base_ms` (101)"),
    );
    check(
        World::new().user("[agent]\nmax_calls_per_iteration = 3"),
        "agent.max_parallel_calls",
        Ok((3, &format!("{USER}:2"))),
    );
    // This limit applies at run time as well, so a larger value is not an error.
    check(
        World::new().user("[agent]\nmax_calls_per_iteration = 3\nmax_parallel_calls = 4"),
        "agent.max_parallel_calls",
        Ok((4, &format!("{USER}:3"))),
    );
}

/// Proves CFG-4, D-37: old keys have an effect from every source, with one notice.
#[test]
fn old_keys_are_read_from_every_source() {
    let world = World::new()
        .user("[agent]\nmax_tool_retries = 5\n[llm.ollama]\nmodel = 'a'")
        .project("[agent]\nmax_tool_retries = 4")
        .var("ZEPH_AGENT_MAX_RETRY_DURATION_SECS", "7")
        .var("ZEPH_LLM_OLLAMA_MODEL", "b")
        .var("ZEPH_TOOLS_FILTERS_TEST_ENABLED", "false");
    let flags = FlagOverrides {
        set: vec![("tools.filters.git.enabled".to_owned(), "false".to_owned())],
        ..FlagOverrides::default()
    };
    let loaded = world.load_with(&flags).unwrap();
    let config = &loaded.config;
    assert_eq!(config.tools.retry.max_attempts, 4);
    assert_eq!(config.tools.retry.budget_secs, 7);
    assert_eq!(config.llm.providers.len(), 1);
    assert_eq!(config.llm.providers[0].model, "b");
    let rules = &config.tools.filters.rules;
    assert_eq!(rules["test_summary"].enabled, Some(false));
    assert_eq!(rules["git-*"].enabled, Some(false));
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    for key in [
        "`agent.max_tool_retries` is now `tools.retry.max_attempts`",
        "`agent.max_retry_duration_secs` is now",
        "environment ZEPH_TOOLS_FILTERS_TEST_ENABLED",
        "flag --set tools.filters.git.enabled",
        "`llm.ollama` is now",
        "`zeph config migrate`",
    ] {
        assert!(loaded.warnings[0].contains(key), "{:?}", loaded.warnings);
    }
    // A stronger source overrides an old key by the current one.
    let world = World::new()
        .user("[agent]\nmax_tool_retries = 5")
        .var("ZEPH_TOOLS_RETRY_MAX_ATTEMPTS", "1");
    assert_eq!(world.load().unwrap().config.tools.retry.max_attempts, 1);
    // A project may not loosen by an old key either.
    let world = World::new().project("[agent]\nmax_tool_retries = 50");
    let error = world.load().unwrap_err();
    assert!(error.contains("may only lower it"), "{error}");
}
