//! Replaces a text whose line endings differ from those of the file, and shows the place that a missing text resembles.
#![allow(clippy::print_stdout)]

use zeph_edit::{Replacement, edit, find_nearest};

fn main() -> Result<(), zeph_edit::EditError> {
    let file = b"fn main() {\r\n    run(1);\r\n}\r\n";
    let change = Replacement {
        old: "{\n    run(1);",
        new: "{\n    run(2);",
        all: false,
    };
    let edited = edit(file, change)?;
    println!("{}", edited.bytes.escape_ascii());
    println!("ignored: {:?}", edited.ignored);
    let missing = Replacement {
        old: "    walk(1);\n",
        new: "",
        all: false,
    };
    println!("error: {}", edit(file, missing).is_err());
    let text = String::from_utf8_lossy(file);
    println!(
        "nearest: {:?}",
        find_nearest(&text, missing.old).map(|found| found.first)
    );
    Ok(())
}

// Prints:
// fn main() {\r\n    run(2);\r\n}\r\n
// ignored: Some(LineEndings)
// error: true
// nearest: Some(2)
