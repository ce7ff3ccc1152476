//! Feature sets that compile on their own, and the fuzz targets.

use anyhow::Result;

use crate::project::Project;

/// Feature sets that compile on their own. The libraries without a choice of features share one set: each set compiles
/// most external packages again.
const SETS: &[&str] = &[
    "check -p zeph-tools --no-default-features",
    "check -p zeph-tools --no-default-features --features file",
    "check -p zeph-tools --no-default-features --features policy-enforcer",
    "check -p zeph-tools --no-default-features --features shell",
    "check -p zeph-tools --no-default-features --features syntax",
    "check -p zeph-core -p zeph-edit -p zeph-symbols -p zeph-tui -p zeph-web --no-default-features",
    "check -p zeph -p zeph-memory --bins --tests",
    "check -p zeph --no-default-features",
];

/// Checks all feature sets and the fuzz targets.
pub(crate) fn check(project: &Project) -> Result<()> {
    for set in SETS {
        project.cargo(set).run()?;
    }
    fuzz_targets(project)
}

/// Checks the fuzz targets, which are a separate workspace. Nothing is linked or run: libFuzzer is not compiled, and the
/// database is not optimized.
fn fuzz_targets(project: &Project) -> Result<()> {
    let args = "check --locked --manifest-path fuzz/Cargo.toml --target-dir target \
                --config profile.dev.package.libsqlite3-sys.opt-level=0";
    let check = project.cargo(args);
    Ok(check.env("CUSTOM_LIBFUZZER_PATH", "./libfuzzer.a").run()?)
}
