//! Lists the built-in rules: each file in `src/rules` is one.

#![allow(
    clippy::disallowed_methods,
    reason = "cargo passes the output directory in the environment"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/rules");
    let rules = env::current_dir()?.join("src/rules");
    let mut files = Vec::new();
    for entry in fs::read_dir(rules)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push((order(&path)?, path));
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for (_, path) in files {
        let name = path.file_stem().unwrap_or_default();
        writeln!(list, "    ({name:?}, include_str!({path:?})),")?;
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("rules.rs"), list)?;
    Ok(())
}

/// The `order` of a rule, 0 by default: rules of a higher order are tried later.
fn order(path: &Path) -> Result<u32, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let order = text.lines().find_map(|line| line.strip_prefix("order = "));
    Ok(order.map_or(Ok(0), str::parse)?)
}
