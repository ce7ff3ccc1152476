//! The filters of command output in 10 lines, without an agent.
#![allow(clippy::print_stdout)]

use zeph_filter::FilterPipeline;

fn main() {
    let mut output = String::from("running 100 tests\n");
    for n in 0..100 {
        output += &format!("test t{n} ... ok\n");
    }
    output += "\ntest result: ok. 100 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let filtered = FilterPipeline::default().filter("cargo test", &output, Some(0));
    println!("{}", filtered.text);
}

// Prints:
// test result: ok. 100 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out
