//! Properties of the filters for JavaScript and operations tools: no failing test, error or changed resource
//! is lost, regardless of the lines and chunks.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use zeph_filter::{FilterPipeline, FilteredOutput};

/// Lines that these tools print in any order, except for failures.
const LINES: &[&str] = &[
    "",
    " RUN  v3.2.7 /home/user/store",
    "PASS src/a.test.js",
    "FAIL src/b.test.js (5.1 s)",
    "  ● Console",
    "    console.log",
    "  ✓ adds (3 ms)",
    "   ✓ cart > adds 2ms",
    " ❯ test/cart.test.ts (39 tests | 4 failed) 41ms",
    "    - Expected  - 1",
    "    + Received  + 1",
    "    -   12",
    "    > 11 |     expect(x).toBe(y)",
    "         |     ^",
    "      at f (node_modules/jest/x.js:1:2)",
    "⎯⎯⎯⎯⎯⎯⎯ Failed Tests 8 ⎯⎯⎯⎯⎯⎯⎯",
    "⎯⎯⎯⎯⎯⎯⎯⎯[1/8]⎯",
    "Summary of all failing tests",
    "Test Suites: 1 failed, 2 total",
    "Tests:       1 failed, 2 total",
    " Test Files  1 failed (2)",
    "   Duration  9.87s",
    "  50 passing (610ms)",
    "  6 failing",
    "TAP version 13",
    "  ---",
    "  stack: |-",
    "  ...",
    "ℹ tests 61",
    "✖ failing tests:",
    "test at test/a.test.js:5:3",
    "/home/user/store/src/a.ts",
    "  1:1   warning  'y' is never used  no-unused-vars",
    "✖ 198 problems (99 errors, 99 warnings)",
    "src/b.ts(2,1): error TS6133: 'money' is declared but never used.",
    "{",
    "    }",
    "      ~ input = {",
    "        } -> (known after apply)",
    "Terraform will perform the following actions:",
    "#5 [2/3] RUN npm ci",
    "#5 0.512 added 12 packages",
    "#5 DONE 1.2s",
    "------",
    "TASK [Copy] ****************",
    "ok: [web1] => {",
    "}",
    "äöü … ● × ✖ ⎯",
];

/// Lines that must be retained, each with the text to search for.
fn fact() -> impl Strategy<Value = (String, String)> {
    let name = "[a-z]{3,8}";
    prop_oneof![
        name.prop_map(|n| (format!("  ● cart › {n}fact"), format!("cart › {n}fact"))),
        name.prop_map(|n| (
            format!(" FAIL  test/a.test.ts > {n}fact"),
            format!("{n}fact")
        )),
        name.prop_map(|n| (format!("   × cart > {n}fact 12ms"), format!("{n}fact"))),
        name.prop_map(|n| (format!("not ok 5 - {n}fact"), format!("{n}fact"))),
        name.prop_map(|n| (format!("✖ {n}fact (1.775946ms)"), format!("{n}fact"))),
        name.prop_map(|n| (format!("TypeError: no {n}fact"), format!("no {n}fact"))),
        (1..999_u32).prop_map(|l| (
            format!("  {l}:7  error  'x' is bad  no-bad"),
            format!("{l}:7")
        )),
        (1..999_u32).prop_map(|l| (
            format!("src/c.ts({l},3): error TS2304: Cannot find name 'x'."),
            format!("src/c.ts({l},3)")
        )),
        name.prop_map(|n| (format!("npm error code E{n}fact"), format!("E{n}fact"))),
        name.prop_map(|n| (
            format!("  # terraform_data.{n}fact will be created"),
            format!("terraform_data.{n}fact")
        )),
        name.prop_map(|n| (
            format!("Error: {n}fact is not known"),
            format!("{n}fact is not known")
        )),
        name.prop_map(|n| (
            format!("ERROR: failed to solve: {n}fact"),
            format!("{n}fact")
        )),
        name.prop_map(|n| (
            format!("fatal: [{n}fact]: FAILED! => {{}}"),
            format!("[{n}fact]")
        )),
    ]
}

const COMMANDS: &[&str] = &[
    "jest",
    "vitest run",
    "mocha",
    "node --test",
    "npm test",
    "eslint .",
    "tsc",
    "npm install",
    "terraform plan",
    "docker build .",
    "ansible-playbook site.yml",
    "npm run build",
    "kubectl apply -f x",
];

fn filtered(
    command: &str,
    printed: &str,
    cuts: &[usize],
    exit_code: Option<i32>,
) -> FilteredOutput {
    let mut run = FilterPipeline::default().start(command, 1_000_000);
    let mut rest = printed;
    for cut in cuts {
        let (piece, left) = rest.split_at(rest.floor_char_boundary(*cut));
        run.push(piece);
        rest = left;
    }
    run.push(rest);
    run.finish(exit_code)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Proves OUT-7a, OUT-7b.
    #[test]
    fn no_fact_is_lost(
        command in prop::sample::select(COMMANDS),
        mut lines in prop::collection::vec(prop::sample::select(LINES).prop_map(str::to_owned), 0..120),
        facts in prop::collection::vec((any::<prop::sample::Index>(), fact()), 0..12),
        cuts in prop::collection::vec(0..400_usize, 0..20),
        crlf: bool,
        exit_code in prop::option::of(0..3_i32),
    ) {
        for (at, (line, _)) in &facts {
            lines.insert(at.index(lines.len() + 1), line.clone());
        }
        let printed = lines.join(if crlf { "\r\n" } else { "\n" });
        let result = filtered(command, &printed, &cuts, exit_code);
        for (_, (line, shown)) in &facts {
            // For other commands the headline of a resource is an ordinary line.
            if line.starts_with("  # ") && !command.starts_with("terraform") {
                continue;
            }
            prop_assert!(result.text.contains(shown.as_str()), "{command}: {line:?} is lost of\n{printed}\n---\n{}", result.text);
        }
        prop_assert!(result.text.len() <= printed.len() + 1);
        prop_assert_eq!(result, filtered(command, &printed, &[], exit_code));
    }

    #[test]
    fn nothing_panics(
        command in prop::sample::select(COMMANDS),
        lines in prop::collection::vec("[ \\t#●×✖⎯|>+~:(){}\\[\\]0-9a-zé.=/-]{0,40}", 0..60),
    ) {
        filtered(command, &lines.join("\n"), &[], Some(1));
    }
}
