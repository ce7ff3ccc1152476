//! Responses of Chat Completions.
#![no_main]

mod answer;

use libfuzzer_sys::fuzz_target;
use zeph_llm::fuzzing::Api;

fuzz_target!(|input: answer::Input<'_>| answer::check(Api::ChatCompletions, &input));
