//! The symbols of a source file, and the syntax errors that a change adds.
#![allow(clippy::print_stdout)]

use zeph_symbols::{Language, new_syntax_errors, symbols};

fn main() {
    let before = "class Cart:\n    def total(self):\n        return sum(self.items)\n";
    for symbol in symbols(before.as_bytes(), Language::Python).found {
        println!("line {}: {:?} {}", symbol.line, symbol.kind, symbol.name);
    }
    let after = before.replace("sum(self.items)", "sum(self.items");
    let errors = new_syntax_errors(Language::Python, before.as_bytes(), after.as_bytes());
    println!("new errors: {}", errors.is_some());
}

// Prints:
// line 1: Class Cart
// line 2: Method total
// new errors: true
