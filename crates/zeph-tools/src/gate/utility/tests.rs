//! Scores and redundancy of calls.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::output::ToolOutput;

/// A local read-only tool without calls.
const FRESH: UtilityInput = UtilityInput {
    reputation: 0.5,
    open_world: false,
    risk: Risk::Safe,
    typical_ms: 0.0,
    typical_bytes: 0.0,
    repeats: 0,
    age_secs: 0.0,
    uses: 0,
};

/// Proves PERM-42.
#[test]
fn terms_add_up_to_the_score() {
    let check = |known: UtilityInput, expect: f64| {
        let found = score(&known).unwrap().total;
        assert!((found - expect).abs() < 0.001, "{known:?}: {found}");
    };
    check(FRESH, 0.75);
    check(
        UtilityInput {
            open_world: true,
            ..FRESH
        },
        0.7,
    );
    let used = UtilityInput {
        uses: 9,
        reputation: 1.0,
        ..FRESH
    };
    check(used, 1.0);
    check(
        UtilityInput {
            typical_ms: 2000.0,
            ..used
        },
        1.025 - 0.5 * 0.5 / 3.0,
    );
    check(
        UtilityInput {
            typical_bytes: 32768.0,
            risk: Risk::High,
            ..used
        },
        1.025 - 0.5 * 1.5 / 3.0,
    );
    check(UtilityInput { repeats: 1, ..used }, 1.025 - 0.75);
    check(UtilityInput { repeats: 2, ..used }, 1.025 - 1.125);
    let old = UtilityInput {
        repeats: 2,
        age_secs: 60.0,
        ..used
    };
    check(old, 1.025 - 0.5625);
    let worst = UtilityInput {
        reputation: 0.0,
        repeats: u32::MAX,
        typical_ms: 1e12,
        typical_bytes: 1e12,
        risk: Risk::High,
        ..used
    };
    check(worst, -1.0);
}

/// Proves PERM-42: a call that cannot be scored does not run.
#[test]
fn invalid_number_refuses_the_call() {
    for wrong in [f64::NAN, f64::INFINITY, -1.0] {
        for known in [
            UtilityInput {
                reputation: wrong,
                ..FRESH
            },
            UtilityInput {
                typical_ms: wrong,
                ..FRESH
            },
            UtilityInput {
                typical_bytes: wrong,
                ..FRESH
            },
            UtilityInput {
                age_secs: wrong,
                ..FRESH
            },
        ] {
            assert!(score(&known).is_err(), "{known:?}");
            let utility = UtilityScorer::new(UtilityConfig::default());
            assert!(utility.judge(&known).is_err(), "{known:?}");
        }
    }
    for threshold in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let utility = UtilityScorer::new(UtilityConfig {
            threshold,
            ..UtilityConfig::default()
        });
        assert!(utility.judge(&FRESH).is_err(), "{threshold}");
    }
    assert!(
        UtilityScorer::new(UtilityConfig::default())
            .judge(&FRESH)
            .is_ok()
    );
}

/// Proves PERM-42: these two tools are exempt regardless of the configuration.
#[test]
fn skills_are_always_exempt() {
    let listed = [
        vec![],
        vec!["read".to_owned()],
        vec!["invoke_skill".to_owned()],
    ];
    let configs = listed.map(|exempt_tools| UtilityConfig {
        exempt_tools,
        ..UtilityConfig::default()
    });
    for config in configs.into_iter().chain([UtilityConfig::default()]) {
        let utility = UtilityScorer::new(config.clone());
        for tool in ["invoke_skill", "load_skill"] {
            assert!(utility.spares(tool, &Annotations::READ), "{config:?}");
        }
        let read = config.exempt_tools.iter().any(|tool| tool == "read");
        assert_eq!(utility.spares("read", &Annotations::READ), read);
        for nature in [
            Annotations::MUTATE,
            Annotations::ANYTHING,
            Annotations::SESSION_STATE,
        ] {
            assert!(utility.spares("read", &nature), "what changes is spared");
        }
    }
}

/// A session with a simulated clock.
struct World {
    utility: UtilityScorer,
    now: Instant,
}

impl World {
    fn new() -> Self {
        Self {
            utility: UtilityScorer::new(UtilityConfig::default()),
            now: Instant::now(),
        }
    }

    fn evidence(&self, tool: &str, path: &str) -> UtilityInput {
        let key = CacheKey::new(tool, &json!({ "path": path }));
        let good = Reputation {
            successes: 20,
            failures: 0,
        };
        let nature = &Annotations::READ;
        self.utility.evidence("s", &key, nature, good, self.now)
    }

    fn makes(&self, tool: &str, path: &str, output: &str) {
        let key = CacheKey::new(tool, &json!({ "path": path }));
        let result = Ok(ToolOutput::text(output));
        let policy = policy(tool);
        self.utility.note(
            "s",
            key,
            policy,
            &result,
            Duration::from_millis(3),
            self.now,
        );
    }
}

/// The policy of a file tool; other tools may change files.
fn policy(tool: &str) -> CachePolicy {
    match tool {
        "read" | "grep" => CachePolicy::CACHED,
        _ => CachePolicy::default(),
    }
}

/// Proves PERM-42.
#[test]
fn same_call_is_redundant_until_a_change() {
    let mut world = World::new();
    for times in 0..2 {
        let known = world.evidence("read", "a");
        assert_eq!(known.repeats, times);
        assert!(world.utility.judge(&known).is_ok(), "{known:?}");
        world.makes("read", "a", "text");
    }
    let known = world.evidence("read", "a");
    let told = world.utility.judge(&known).unwrap_err().to_string();
    for words in [
        "skipped: its utility is -0.09 (gain 0.95, cost 0.00",
        "redundancy 0.75",
        "below 0.00 ([tools.utility] threshold)",
        "the same output 2 times",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(world.evidence("read", "b").repeats, 0);
    assert_eq!(world.evidence("grep", "a").repeats, 0);

    // The call is useful again after some time, after another output, and after a change.
    world.now += Duration::from_secs(60);
    let later = world.evidence("read", "a");
    assert!(world.utility.judge(&later).is_ok(), "{later:?}");
    world.makes("read", "a", "another text");
    assert_eq!(world.evidence("read", "a").repeats, 1);
    world.makes("read", "a", "[from the cache, 3 s old]\nanother text");
    assert_eq!(
        world.evidence("read", "a").repeats,
        2,
        "what the cache says is no change"
    );
    for tool in ["write", "bash", "mcp_x"] {
        world.makes("read", "a", "text");
        assert_ne!(world.evidence("read", "a").repeats, 0);
        world.makes(tool, "a", "");
        assert_eq!(world.evidence("read", "a").repeats, 0, "{tool}");
    }
    // A failed change counts as a change, and a failed read does not count.
    world.makes("read", "a", "text");
    let failed = Err(ToolError::permanent("half of it"));
    let key = |tool| CacheKey::new(tool, &json!({ "path": "a" }));
    let note = |tool| {
        let took = Duration::ZERO;
        world
            .utility
            .note("s", key(tool), policy(tool), &failed, took, world.now);
    };
    note("grep");
    assert_eq!(world.evidence("read", "a").repeats, 1);
    note("bash");
    assert_eq!(world.evidence("read", "a").repeats, 0);

    // Files also change without calls: by `/undo`.
    world.makes("read", "a", "text");
    world.utility.files_changed();
    let changed = world.evidence("read", "a");
    assert!(changed.repeats == 0 && changed.uses > 0, "{changed:?}");

    world.makes("read", "a", "text");
    world.utility.forget("s");
    let forgotten = world.evidence("read", "a");
    assert_eq!((forgotten.repeats, forgotten.uses), (0, 0));
}

/// Proves PERM-42: outputs that change without a call are never redundant.
#[test]
fn self_changing_output_is_never_redundant() {
    let world = World::new();
    for tool in [
        "job_output",
        "get_current_time",
        "list_tasks",
        "memory_search",
    ] {
        for _ in 0..5 {
            world.makes(tool, "a", "same");
        }
        let known = world.evidence(tool, "a");
        assert_eq!((known.repeats, known.uses), (0, 5), "{tool}");
        assert!(world.utility.judge(&known).is_ok());
    }
}

/// The memory use does not grow with the number of calls.
#[test]
fn only_the_last_calls_are_remembered() {
    let world = World::new();
    for n in 0..1000 {
        world.makes("read", &n.to_string(), "text");
    }
    assert_eq!(world.utility.sessions()["s"].made.len(), MAX_CALLS);
    assert_eq!(world.evidence("read", "999").repeats, 1);
    assert_eq!(world.evidence("read", "0").repeats, 0);
}

fn evidence() -> impl Strategy<Value = UtilityInput> {
    let risks = prop_oneof![Just(Risk::Safe), Just(Risk::Medium), Just(Risk::High)];
    (
        0.0..=1.0f64,
        any::<bool>(),
        risks,
        0.0..1e9f64,
        0.0..1e12f64,
        any::<u32>(),
        0.0..1e6f64,
        any::<u64>(),
    )
        .prop_map(
            |(reputation, open_world, risk, typical_ms, typical_bytes, repeats, age_secs, uses)| {
                UtilityInput {
                    reputation,
                    open_world,
                    risk,
                    typical_ms,
                    typical_bytes,
                    repeats,
                    age_secs,
                    uses,
                }
            },
        )
}

proptest! {
    /// Proves PERM-42: the score is bounded, and so is each term.
    #[test]
    fn score_is_bounded(known in evidence()) {
        let score = score(&known).unwrap();
        prop_assert!((-1.0..=1.0).contains(&score.total));
        for term in [score.gain, score.cost, score.redundancy, score.exploration] {
            prop_assert!((0.0..=1.0).contains(&term));
        }
    }

    /// Proves PERM-42: a term in favor of a call never lowers its score, and a term against it never raises it.
    #[test]
    fn score_is_monotonic_in_each_term(known in evidence(), by in 0.0..1.0f64, more in 1u32..1000) {
        let total = |known: UtilityInput| score(&known).unwrap().total;
        let here = total(known);
        let better = UtilityInput { reputation: known.reputation + (1.0 - known.reputation) * by, ..known };
        prop_assert!(total(better) >= here);
        let older = UtilityInput { age_secs: known.age_secs + 1000.0 * by, ..known };
        prop_assert!(total(older) >= here);
        for worse in [
            UtilityInput { risk: Risk::High, ..known },
            UtilityInput { open_world: true, ..known },
            UtilityInput { typical_ms: known.typical_ms + 1e4 * by, ..known },
            UtilityInput { typical_bytes: known.typical_bytes + 1e5 * by, ..known },
            UtilityInput { repeats: known.repeats.saturating_add(more), ..known },
            UtilityInput { uses: known.uses.saturating_add(u64::from(more)), ..known },
        ] {
            prop_assert!(total(worse) <= here + 1e-12, "{worse:?}");
        }
    }
}
