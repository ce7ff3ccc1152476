//! Tests of the fact guard through its patterns and through the engine.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::matcher::{parsed, shape_alone};
use super::patterns::ROWS;
use super::{FactGuard, Line, Shapes};
use crate::parse_rules::parse_rules;
use crate::pipeline::FilterPipeline;
use crate::plan::Plan;
use crate::rulebook::RuleSet;

/// Lines that have to survive in any output.
const FACTS: &[&str] = &[
    // C and C++
    "terminate called after throwing an instance of 'std::runtime_error'",
    "  what():  cannot open the ledger",
    "libc++abi: terminating due to uncaught exception of type std::out_of_range: vector",
    "pure virtual method called",
    "a.out: ledger.c:41: main: Assertion `total >= 0' failed.",
    "Assertion failed: (total >= 0), function main, file ledger.c, line 41.",
    "double free or corruption (fasttop)",
    "free(): invalid pointer",
    "malloc(): corrupted top size",
    "munmap_chunk(): invalid pointer",
    "*** stack smashing detected ***: terminated",
    "*** buffer overflow detected ***: terminated",
    "src/ledger.c:41:7: error: expected ';' before 'return'",
    "src/ledger.c:41:7: fatal error: ledger.h: No such file or directory",
    "src/ledger.c:41:7: warning: unused variable 'total' [-Wunused-variable]",
    "/usr/bin/ld: ledger.o: in function `main': undefined reference to `total'",
    "ld: symbol(s) not found for architecture arm64",
    "Undefined symbols for architecture arm64:",
    "duplicate symbol '_total' in:",
    "collect2: error: ld returned 1 exit status",
    "ledger.obj : error LNK2019: unresolved external symbol total",
    "LINK : fatal error LNK1120: 1 unresolved externals",
    "C:\\My Code\\ledger.cpp(41): error C2065: 'total': undeclared identifier",
    "ledger.cpp(41): warning C4101: 'total': unreferenced local variable",
    // Signals and shells
    "Aborted (core dumped)",
    "Aborted",
    "Killed",
    "Terminated",
    "Segmentation fault (core dumped)",
    "Segmentation fault",
    "Bus error",
    "Illegal instruction (core dumped)",
    "Floating point exception",
    "Abort trap: 6",
    "Killed: 9",
    "Trace/breakpoint trap",
    "./run.sh: line 3:  1234 Killed                  ./ledger",
    "bash: line 1:  1234 Aborted                 (core dumped) ./ledger",
    "zsh: segmentation fault  ./ledger",
    "fish: Job 1, './ledger' terminated by signal SIGSEGV (Address boundary error)",
    "make: *** [Makefile:12: ledger] Error 2",
    "make[2]: *** [ledger.o] Segmentation fault",
    "gmake: *** No rule to make target 'ledger'.  Stop.",
    "make: [Makefile:3: clean] Error 1 (ignored)",
    "ninja: build stopped: subcommand failed.",
    "FAILED: ledger.o",
    "bash: ledgerctl: command not found",
    "sh: 1: ledgerctl: not found",
    "zsh: command not found: ledgerctl",
    "./deploy.sh: line 7: TARGET: unbound variable",
    "./deploy.sh: line 9: syntax error near unexpected token `fi'",
    "deploy.sh: 4: [: unexpected operator: exit status 2",
    "'ledgerctl' is not recognized as an internal or external command,",
    // Memory
    "[ 8123.456789] Out of memory: Killed process 4321 (ledger) total-vm:8123456kB",
    "[ 8123.456789] ledger invoked oom-killer: gfp_mask=0x100cca, order=0",
    "java.lang.OutOfMemoryError: Java heap space",
    "# There is insufficient memory for the Java Runtime Environment to continue.",
    "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
    "memory allocation of 17179869184 bytes failed",
    "virtual memory exhausted: Cannot allocate memory",
    "fatal error: runtime: out of memory",
    "rustc-LLVM ERROR: out of memory",
    "MemoryError",
    "Last State: Terminated, Reason: OOMKilled, Exit Code: 137",
    // Sanitizers
    "==4321==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010",
    "SUMMARY: AddressSanitizer: heap-use-after-free ledger.c:41 in main",
    "ledger.c:41:7: runtime error: signed integer overflow: 2147483647 + 1",
    "WARNING: ThreadSanitizer: data race (pid=4321)",
    "==4321==ERROR: LeakSanitizer: detected memory leaks",
    "Direct leak of 64 byte(s) in 1 object(s) allocated from:",
    "==4321== Invalid read of size 4",
    "==4321==    definitely lost: 64 bytes in 1 blocks",
    "==4321== Process terminating with default action of signal 11 (SIGSEGV)",
    // Rust
    "error[E0308]: mismatched types",
    "error: could not compile `ledger` (bin \"ledger\") due to 1 previous error",
    "error: process didn't exit successfully: `target/debug/ledger` (signal: 9, SIGKILL: kill)",
    "thread 'main' panicked at src/main.rs:41:7:",
    "thread 'main' has overflowed its stack",
    "fatal runtime error: stack overflow",
    "assertion `left == right` failed: totals differ",
    "Error: Os { code: 2, kind: NotFound, message: \"No such file or directory\" }",
    "warning: unused import: `ledger::total`",
    // Python
    "ValueError: total is negative",
    "requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='a')",
    "KeyboardInterrupt",
    "SystemExit: 3",
    "click.exceptions.Abort",
    "subprocess.CalledProcessError: Command '['ledger']' returned non-zero exit status 3.",
    "  File \"ledger.py\", line 41, in <module> SyntaxError: invalid syntax",
    "ERROR:ledger:total is negative",
    "WARNING:ledger:total is small",
    "CRITICAL:ledger:total is gone",
    "2026-11-24 10:00:00,123 - ledger - ERROR - total is negative",
    "ledger.py:41: DeprecationWarning: total() is deprecated",
    "E       AssertionError: assert 1 == 2",
    "FAILED tests/test_ledger.py::test_total - assert 1 == 2",
    // Ruby
    "ledger.rb:41:in 'total': divided by 0 (ZeroDivisionError)",
    "ledger.rb:41:in `total': no ledger (Ledger::Missing)",
    "rake aborted!",
    "NoMethodError: undefined method 'total' for nil",
    "ActiveRecord::RecordNotFound: Couldn't find Ledger",
    "rspec ./spec/ledger_spec.rb:41 # Ledger totals",
    // Elixir and Erlang
    "** (Mix) Could not compile dependency :ledger",
    "** (RuntimeError) total is negative",
    "== Compilation error in file lib/ledger.ex ==",
    "** exception error: no match of right hand side value 3",
    "=ERROR REPORT==== 24-Nov-2026::10:00:00 ===",
    "=CRASH REPORT==== 24-Nov-2026::10:00:00 ===",
    "escript: exception error: no match",
    // .NET
    "Unhandled exception. System.InvalidOperationException: total is negative",
    " ---> System.IO.FileNotFoundException: ledger.json",
    "Program.cs(41,13): error CS0103: The name 'total' does not exist [ledger.csproj]",
    "fail: Ledger.Worker[13]",
    "crit: Ledger.Worker[13]",
    "MSBUILD : error MSB1009: Project file does not exist.",
    // Perl and PHP
    "total is negative at ledger.pl line 41.",
    "syntax error at ledger.pl line 41, near \"total\"",
    "Can't locate Ledger.pm in @INC (you may need to install the Ledger module)",
    "PHP Fatal error:  Uncaught DivisionByZeroError: Division by zero in /srv/ledger.php:41",
    "Fatal error: Uncaught Error: Call to undefined function total()",
    "PHP Warning:  Undefined variable $total in /srv/ledger.php on line 41",
    "  thrown in /srv/ledger.php on line 41",
    "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted",
    // Go
    "panic: runtime error: index out of range [5] with length 3",
    "fatal error: all goroutines are asleep - deadlock!",
    "./ledger.go:41:7: undefined: total",
    "--- FAIL: TestTotal (0.00s)",
    "2026/11/24 10:00:00 dial tcp 127.0.0.1:5432: connect: connection refused",
    "WARNING: DATA RACE",
    // Java, Kotlin, Scala
    "Exception in thread \"main\" java.lang.IllegalStateException: total is negative",
    "Caused by: java.net.ConnectException: Connection refused",
    "\tSuppressed: java.io.IOException: closed",
    "[ERROR] /srv/Ledger.java:[41,7] cannot find symbol",
    "Ledger.java:41: error: ';' expected",
    "e: file:///srv/Ledger.kt:41:7 Unresolved reference: total",
    "w: file:///srv/Ledger.kt:41:7 Variable 'total' is never used",
    "[error] /srv/Ledger.scala:41:7: not found: value total",
    "Error: Could not find or load main class Ledger",
    "FAILURE: Build failed with an exception.",
    "> Task :ledger:test FAILED",
    "* What went wrong:",
    "24-Nov-2026 10:00:00.000 SEVERE [main] Ledger total is negative",
    // JavaScript and TypeScript
    "TypeError: Cannot read properties of undefined (reading 'total')",
    "Uncaught (in promise) Error: total is negative",
    "[UnhandledPromiseRejection: This error originated either by throwing]",
    "AggregateError [ECONNREFUSED]: ",
    "  code: 'MODULE_NOT_FOUND',",
    "src/ledger.ts(41,7): error TS2304: Cannot find name 'total'.",
    "src/ledger.ts:41:7 - error TS2304: Cannot find name 'total'.",
    "npm ERR! code ELIFECYCLE",
    "npm error code ERESOLVE",
    "npm warn deprecated ledger@1.0.0: use ledger2",
    "Module not found: Error: Can't resolve './ledger'",
    "✘ [ERROR] Could not resolve \"./ledger\"",
    "(node:4321) UnhandledPromiseRejectionWarning: Error: total",
    // Other languages
    "Swift/ContiguousArrayBuffer.swift:600: Fatal error: Index out of range",
    "ledger: Prelude.head: empty list",
    "CallStack (from HasCallStack):",
    "src/Ledger.hs:41:7: error: [GHC-88464]",
    "Fatal error: exception Failure(\"total\")",
    "File \"ledger.ml\", line 41, characters 4-9:",
    "lua: ledger.lua:41: attempt to call a nil value (global 'total')",
    "Error in total(x) : object 'x' not found",
    "Execution halted",
    "Warning message:",
    "ERROR: LoadError: UndefVarError: `total` not defined",
    "┌ Warning: total is small",
    "lib/ledger.dart:41:7: Error: Undefined name 'total'.",
    "core.exception.RangeError@ledger.d(41): Range violation",
    "raised CONSTRAINT_ERROR : ledger.adb:41 index check failed",
    "Fortran runtime error: Index '5' of dimension 1",
    // Logs
    "E1124 10:00:00.000000    4321 ledger.go:41] total is negative",
    "F1124 10:00:00.000000    4321 ledger.go:41] total is gone",
    "W1124 10:00:00.000000    4321 ledger.go:41] total is small",
    "time=2026-11-24T10:00:00Z level=error msg=\"total is negative\"",
    "time=2026-11-24T10:00:00Z level=warning msg=\"total is small\"",
    "ts=2026-11-24T10:00:00Z level=fatal msg=\"total is gone\"",
    "{\"level\":\"error\",\"msg\":\"total is negative\"}",
    "{\"level\":50,\"time\":1764000000,\"msg\":\"total is negative\"}",
    "{\"level\":60,\"time\":1764000000,\"msg\":\"total is gone\"}",
    "{\"level\":40,\"time\":1764000000,\"msg\":\"total is small\"}",
    "{\"severity\":\"ERROR\",\"message\":\"total is negative\"}",
    "{\"severity\": \"WARNING\", \"message\": \"total is small\"}",
    "{\"@l\":\"Error\",\"@m\":\"total is negative\"}",
    "{\"ts\":1,\"levelname\":\"CRITICAL\",\"message\":\"total is gone\"}",
    "{\"ok\":false,\"error\":\"total is negative\"}",
    "2026-11-24 10:00:00,000 [main] ERROR org.example.Ledger - total is negative",
    "2026-11-24 10:00:00,000 [main] WARN  org.example.Ledger - total is small",
    "[10:00:00 ERR] total is negative",
    "[10:00:00 WRN] total is small",
    "2026-11-24T10:00:00.000Z\terror\tledger/main.go:41\ttotal is negative",
    "Nov 24 10:00:00 host ledger[4321]: error: total is negative",
    "Nov 24 10:00:00 host systemd[1]: Failed to start ledger.service - Ledger.",
    "ledger.service: Main process exited, code=exited, status=1/FAILURE",
    "2026/11/24 10:00:00 [crit] 31#31: *7 total is gone",
    "[Tue Nov 24 10:00:00 2026] [core:error] [pid 4321] total is negative",
    "11-24 10:00:00.000  4321  4321 E Ledger  : total is negative",
    "E/Ledger  ( 4321): total is negative",
    "E, [2026-11-24T10:00:00 #4321] ERROR -- : total is negative",
    "[ 8123.456789] ledger[4321]: segfault at 0 ip 000055d0 sp 00007ffd error 4",
    "[ 8123.456789] Kernel panic - not syncing: VFS: Unable to mount root fs",
    // Tools
    "error: failed to push some refs to 'origin'",
    "fatal: not a git repository (or any of the parent directories): .git",
    "CONFLICT (content): Merge conflict in src/ledger.c",
    " ! [rejected]        main -> main (fetch first)",
    "rsync error: some files/attrs were not transferred (code 23) at main.c(1338)",
    "curl: (7) Failed to connect to localhost port 8080: Connection refused",
    "ssh: connect to host ledger port 22: Connection timed out",
    "Host key verification failed.",
    "cat: ledger.json: No such file or directory",
    "cp: cannot create regular file '/etc/ledger': Permission denied",
    "CMake Error at CMakeLists.txt:12 (find_package):",
    "CMake Warning (dev) at CMakeLists.txt:12 (project):",
    "-- Configuring incomplete, errors occurred!",
    "ERROR: Could not find a version that satisfies the requirement ledger",
    "WARNING: Running pip as the 'root' user can result in broken permissions",
    "W: Some index files failed to download.",
    "E: Unable to locate package ledger",
    "Err:5 http://deb.example.org stable Release",
    "#7 ERROR: process \"/bin/sh -c make\" did not complete successfully: exit code: 2",
    " => ERROR [2/3] RUN make                                     0.3s",
    "#9 12.34 npm warn deprecated ledger@1.0.0: use ledger2",
    "Error response from daemon: pull access denied for ledger",
    "│ Error: Reference to undeclared resource",
    "│ Warning: Argument is deprecated",
    "Error from server (NotFound): pods \"ledger\" not found",
    "Warning  BackOff  2s (x5 over 30s)  kubelet  Back-off restarting container",
    "ledger-0   0/1   CrashLoopBackOff   5   10m",
    "ERROR:  relation \"ledger\" does not exist",
    "psql:ledger.sql:41: ERROR:  syntax error at or near \"total\"",
    "ERROR 1064 (42000) at line 41: You have an error in your SQL syntax",
    "ORA-00942: table or view does not exist",
    "FATAL:  password authentication failed for user \"ledger\"",
    "Process finished with exit code 3",
    "The command '/bin/sh -c make' returned a non-zero code: 2",
    "error Command failed with exit code 1.",
    "web-1  | Error: total is negative",
    "context deadline exceeded",
    "dial tcp: lookup ledger: i/o timeout",
    "HTTP/1.1 503 Service Unavailable",
    "OSError: [Errno 28] No space left on device",
    "Warning! The ledger is almost full",
    "[warn] The ledger is almost full",
    "WARN The ledger is almost full",
    "warn: The ledger is almost full",
    "3 errors and 2 warnings generated.",
];

/// Lines that are not facts.
const HARMLESS: &[&str] = &[
    "0 errors, 0 warnings",
    "   Compiling thiserror v2.0.12",
    "   Compiling failure v0.1.8",
    "   Compiling error-chain v0.12.4",
    "    Checking anyhow v1.0.0",
    "  Downloaded panic-message v0.3.0",
    "src/error_handler.rs",
    "src/errors/mod.rs",
    "  adding: docs/errors.md (deflated 40%)",
    "test errors::are_told ... ok",
    "test panics::should_panic - should panic ... ok",
    "test warns::on_failed_login ... ignored",
    "ok 3 - returns an error: not found",
    "    ✓ returns an error when the total is negative (3 ms)",
    "  ✔ rejects with TypeError: bad input",
    "PASS src/errors.test.js",
    "        PASS [   0.005s] ledger error::failed_login",
    "--- PASS: TestFailure (0.00s)",
    "=== RUN   TestErrorHandler",
    "[       OK ] Errors.Fatal (0 ms)",
    "[ RUN      ] Errors.Fatal",
    "tests/test_errors.py::test_failed_login PASSED                       [ 50%]",
    "test_failure (tests.TestFailure) ... ok",
    "No errors found",
    "Errors: 0",
    "errors=0",
    "no warnings",
    "Warnings: 0",
    "found 0 vulnerabilities",
    "INFO registered error handler",
    "INFO retry policy loaded, max_failures=3",
    "DEBUG exception filter registered",
    "{\"level\":\"info\",\"msg\":\"started\"}",
    "{\"level\":30,\"time\":1764000000,\"msg\":\"started\"}",
    "{\"level\":20,\"msg\":\"tick\"}",
    "{\"error\":null,\"ok\":true}",
    "{\"error\":\"\",\"ok\":true}",
    "{\"severity\":\"INFO\",\"message\":\"started\"}",
    "time=2026-11-24T10:00:00Z level=info msg=\"started\"",
    "I1124 10:00:00.000000    4321 ledger.go:41] started",
    "2026-11-24 10:00:00,000 [main] INFO  org.example.Ledger - started",
    "2026-11-24 10:00:00 GET /errors 200 3ms",
    "GET /warnings/new HTTP/1.1 200",
    "127.0.0.1 - - [24/Nov/2026:10:00:00] \"GET /failed HTTP/1.1\" 200 512",
    "gcc -Wall -Werror -o error.o -c error.c",
    "g++ -Wno-error=deprecated-declarations -c warn.cpp -o warn.o",
    "[ 50%] Building C object CMakeFiles/error.dir/error.c.o",
    "[12/300] Compiling fatal.cpp",
    "timeout = 30",
    "timeout: 30s",
    "retries: 3, timeout: 5",
    "copying fail.txt",
    "Fetching errors.json",
    "Get:7 http://deb.example.org stable/main libgpg-error0 amd64 1.50-4",
    "Unpacking libgpg-error0:amd64 (1.50-4) ...",
    "Setting up libgpg-error0:amd64 (1.50-4) ...",
    "Collecting exceptiongroup",
    "  Downloading exceptiongroup-1.3.0-py3-none-any.whl (16 kB)",
    "Successfully installed exceptiongroup-1.3.0 error-lib-2",
    "added 120 packages, and audited 121 packages in 3s",
    "> Task :compileErrorHandlers",
    "BUILD SUCCESSFUL in 3s",
    "[INFO] BUILD SUCCESS",
    "Process finished with exit code 0",
    "exited with code 0",
    "exit status 0",
    "step 7 of 300 done, loss 0.412",
    "epoch 3: error rate 0.05",
    "validation_error 0.0312",
    "error_count 0",
    "Everything is up to date",
    "hello",
    "diff --git a/src/error.rs b/src/error.rs",
    "Killed bugs: see the notes",
    "The panic button is green",
    "Downloading warning-icons 3.2 MB",
    "drwxr-xr-x 2 user user 4096 Nov 24 10:00 failed",
    "-rw-r--r-- 1 user user  512 Nov 24 10:00 error.log",
    "  \"name\": \"error-stack-parser\",",
];

/// Noise of several kinds; `@` becomes a number.
const NOISE: &[(&str, &[&str])] = &[
    (
        "a build log",
        &[
            "   Compiling part-@ v1.0.@",
            "[@/4000] Building CXX object src/part@.cpp.o",
            "   Compiling thiserror v2.0.@",
        ],
    ),
    (
        "a server log",
        &[
            "2026-11-24T10:00:00.@Z INFO  request @ served from the ledger in @ms",
            "2026-11-24T10:00:00.@Z DEBUG pool of the ledger has @ idle connections",
            "2026-11-24T10:00:00.@Z INFO  the total of account @ is checked",
        ],
    ),
    (
        "progress",
        &[
            "downloaded @ of 4000 chunks",
            "step @ loss 0.@",
            "@ rows read, @ rows stored",
        ],
    ),
];

const RULES: &str = r#"
    [[rules]]
    name = "all"
    match = { prefix = "acme-strip" }
    strategy = { type = "strip_noise", patterns = ["."] }
    [[rules]]
    name = "cut"
    match = { prefix = "acme-cut" }
    strategy = { type = "truncate", max_lines = 40, head = 20, tail = 20 }
    [[rules]]
    name = "some"
    match = { prefix = "acme-keep" }
    strategy = { type = "keep_matching", patterns = ["^never", "4000"] }
"#;

/// Commands of rules of this module, of built-in rules, and of no rule.
const COMMANDS: &[&str] = &[
    "acme-strip",
    "acme-cut",
    "acme-keep",
    "make",
    "npm install",
    "./unheard-of",
];

fn filters() -> FilterPipeline {
    let (rules, warnings) = parse_rules("test", RULES);
    assert_eq!(warnings, []);
    FilterPipeline::new(RuleSet::new(rules))
}

/// Proves OUT-7, OUT-7a: each kind of fact is recognized, and nothing harmless is.
#[test]
fn facts_are_recognized() {
    let mut wrong = Vec::new();
    for fact in FACTS {
        if Shapes::default().of(fact).is_none() {
            wrong.push(format!("not recognized: {fact}"));
        }
    }
    for line in HARMLESS {
        if let Some(shape) = Shapes::default().of(line) {
            wrong.push(format!("recognized as {shape:?}: {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Proves OUT-7a: each fact survives at the head, in the middle and at the end of a long output, for any rule or
/// none.
#[test]
fn facts_survive_long_output() {
    let filters = filters();
    let mut wrong = Vec::new();
    for (index, fact) in FACTS.iter().enumerate() {
        let (noise, lines) = NOISE[index % NOISE.len()];
        let command = COMMANDS[index / NOISE.len() % COMMANDS.len()];
        for position in [3, 200, 396] {
            let mut printed = String::new();
            for number in 0..400 {
                if number == position {
                    printed += &format!("{fact}\n");
                }
                let line = lines[number % lines.len()];
                printed += &line.replace('@', &(number * 37 % 4000).to_string());
                printed.push('\n');
            }
            let mut run = filters.start(command, 5000);
            run.push(&printed);
            let text = run.finish(Some(0)).text;
            if !text.contains(fact.trim()) {
                wrong.push(format!("{command}, {noise}, line {position}: {fact}"));
            }
            assert!(text.len() <= printed.len());
        }
    }
    assert!(
        wrong.is_empty(),
        "{} lost\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Proves OUT-7a: all facts together survive in one output of thousands of lines.
#[test]
fn many_kinds_of_facts_survive_together() {
    let filters = filters();
    for command in COMMANDS {
        let mut printed = String::new();
        for number in 0..6000 {
            printed +=
                &format!("2026-11-24T10:00:00.{number}Z INFO  request {number} took {number}ms\n");
            if number % 60 == 59
                && let Some(fact) = FACTS.get(number / 60)
            {
                printed += &format!("{fact}\n");
            }
        }
        let mut run = filters.start(command, 50_000);
        run.push(&printed);
        let text = run.finish(Some(1)).text;
        // A group of diagnostics states the location after the message.
        let is_told = |fact: &str| {
            let parts = fact.split_once(": warning: ");
            let is_grouped = parts.is_some_and(|(location, message)| {
                text.contains(&format!("{message} --> {location}"))
            });
            is_grouped || text.contains(fact.trim())
        };
        let lost: Vec<&&str> = FACTS[..100].iter().filter(|fact| !is_told(fact)).collect();
        assert!(lost.is_empty(), "{command}: {lost:#?}");
    }
}

/// Proves OUT-7a: for very many facts of one form the first ones and the count are shown, and other facts are not
/// lost.
#[test]
fn facts_of_one_form_are_counted() {
    let filters = filters();
    for command in COMMANDS {
        for repeated in [
            "WARNING: request @ is slow",
            "error: request @ was lost",
            "rm: cannot remove 'a@': No such file or directory",
            "{\"level\":\"error\",\"request\":@}",
        ] {
            let mut printed = String::new();
            for number in 0..10_000 {
                printed += &repeated.replace('@', &number.to_string());
                printed += "\n";
                match number {
                    5000 => printed += "Killed\n",
                    7000 => printed += "WARNING: the disk is almost full\n",
                    _ => {}
                }
            }
            printed += &"all is well\n".repeat(3000);
            let mut run = filters.start(command, 5000);
            run.push(&printed);
            let text = run.finish(Some(1)).text;
            let (form, _) = repeated.split_once('@').unwrap();
            for fact in [form, "Killed", "WARNING: the disk is almost full"] {
                assert!(text.contains(fact), "{command}, {repeated}: {fact}\n{text}");
            }
            assert!(
                text.contains("×10000 like this"),
                "{command}, {repeated}\n{text}"
            );
            assert!(text.chars().count() <= 5200, "{command}, {repeated}");
        }
    }
}

/// Proves OUT-7, OUT-7b: a rule that removes every line reports the forms of the removed lines.
#[test]
fn removed_lines_are_reported_by_form() {
    let filters = filters();
    let check = |printed: &str, expect: &str| {
        let mut run = filters.start("acme-strip", 50_000);
        run.push(printed);
        assert_eq!(run.finish(Some(0)).text, expect);
    };
    let lines = |line: &str, count: usize| -> String {
        (0..count)
            .map(|number| format!("{}\n", line.replace('@', &number.to_string())))
            .collect()
    };
    check(
        &(lines("fetched row @ of the ledger", 90) + &lines("stored row @ of the ledger", 90)),
        "fetched row 0 of the ledger [×90 like this]\nstored row 0 of the ledger [×90 like this]",
    );
    check(
        &(lines("fetched row @ of the ledger", 90)
            + "WARNING: the ledger is almost full\n"
            + &lines("\n", 9)),
        "fetched row 0 of the ledger [×90 like this]\nWARNING: the ledger is almost full",
    );
    // The report would not be shorter.
    check("done\n", "done");
}

/// Proves OUT-7: the exception that ends a traceback is a fact, regardless of its type.
#[test]
fn tracebacks_retain_their_exception() {
    let check = |header: &str, margin: &str, exception: &str| {
        let lines = [
            format!("{header}Traceback (most recent call last):"),
            format!("{margin}  File \"/srv/ledger.py\", line 41, in <module>"),
            format!("{margin}    total()"),
            format!("{margin}    ~~~~~^^"),
            format!("{margin}  File \"/srv/total.py\", line 7, in total"),
            format!("{margin}    raise it"),
            format!("{margin}{exception}"),
        ];
        let mut guard = FactGuard::default();
        for (text, number) in lines.iter().zip(1..) {
            guard.see(Line { number, text });
        }
        guard.see(Line {
            number: 8,
            text: "all is well",
        });
        let facts = guard.missing(&[], 5000).unwrap();
        let facts: Vec<String> = facts.into_iter().map(|line| line.text).collect();
        let expect = [0, 4, 6].map(|index: usize| lines[index].as_str());
        assert_eq!(facts, expect, "{exception}");
    };
    for exception in [
        "requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='a', port=443)",
        "KeyboardInterrupt",
        "SystemExit: 3",
        "click.Abort",
        "MyProblem",
        "MyProblem: total is negative",
        "ledger.problems.Negative: total",
        "ValueError: total",
        "StopIteration",
        "asyncio.exceptions.CancelledError",
        "sqlalchemy.exc.NoResultFound: No row was found",
        "django.http.response.Http404: no ledger",
        "Ünterbrochen: total",
    ] {
        check("", "", exception);
        check("  ", "  ", exception);
        check("#9 12.34 ", "#9 12.35 ", exception);
        check("web-1  | ", "web-1  | ", exception);
        check("  + Exception Group ", "  | ", exception);
        check("    | ", "    | ", exception);
        check(
            "2026-11-24 10:00:00,123 ",
            "2026-11-24 10:00:00,123 ",
            exception,
        );
        check("ERROR:root:", "", exception);
    }
}

/// Proves OUT-7: chained tracebacks and groups keep each exception.
#[test]
fn chained_tracebacks_retain_each_exception() {
    let printed = [
        "Traceback (most recent call last):",
        "  File \"a.py\", line 2, in f",
        "    g()",
        "Lost: one",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        "  File \"a.py\", line 4, in f",
        "    h()",
        "Found: two",
        "",
        "  + Exception Group Traceback (most recent call last):",
        "  |   File \"a.py\", line 6, in <module>",
        "  |     raise both",
        "  | Several: three (2 sub-exceptions)",
        "  +-+---------------- 1 ----------------",
        "    | Fourth: four",
        "    +---------------- 2 ----------------",
        "    | Traceback (most recent call last):",
        "    |   File \"a.py\", line 8, in k",
        "    | Fifth: five",
        "    +------------------------------------",
    ];
    let mut shapes = Shapes::default();
    let facts: Vec<&str> = printed
        .into_iter()
        .filter(|line| shapes.of(line).is_some())
        .collect();
    for fact in [
        "Lost: one",
        "Found: two",
        "Several: three",
        "Fourth: four",
        "Fifth: five",
    ] {
        assert!(
            facts.iter().any(|line| line.contains(fact)),
            "{fact}: {facts:#?}"
        );
    }
    assert!(!facts.iter().any(|line| line.contains("h()")), "{facts:#?}");
}

/// Texts that an expression matches: each of its alternatives is in one of them.
fn samples(hir: &Hir) -> Vec<Vec<u8>> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![Vec::new()],
        HirKind::Literal(literal) => vec![literal.0.to_vec()],
        HirKind::Class(Class::Bytes(class)) => {
            // Letters and digits first: they are least likely to have a meaning.
            let ranges = class.ranges().iter();
            let mut bytes: Vec<u8> = ranges
                .flat_map(|range| range.start()..=range.end())
                .collect();
            bytes.sort_by_key(|byte| {
                let is_printable = (b' '..=b'~').contains(byte);
                (
                    !byte.is_ascii_lowercase(),
                    !byte.is_ascii_alphanumeric(),
                    !is_printable,
                    *byte == b'0',
                )
            });
            bytes.first().map(|byte| vec![*byte]).into_iter().collect()
        }
        HirKind::Class(Class::Unicode(class)) => {
            let chars = class
                .ranges()
                .iter()
                .flat_map(|range| range.start()..=range.end());
            chars.take(20).map(|c| c.to_string().into_bytes()).collect()
        }
        HirKind::Repetition(repetition) => {
            let once = samples(&repetition.sub);
            let least = once
                .iter()
                .map(|text| text.repeat(repetition.min.max(1) as usize));
            let mut all: Vec<Vec<u8>> = least.collect();
            if repetition.min == 0 {
                all.push(Vec::new());
            }
            all
        }
        HirKind::Capture(capture) => samples(&capture.sub),
        HirKind::Alternation(parts) => parts.iter().flat_map(samples).collect(),
        HirKind::Concat(parts) => {
            let each: Vec<Vec<Vec<u8>>> = parts.iter().map(samples).collect();
            let most = each.iter().map(Vec::len).max().unwrap_or(0);
            let text = |index: usize| {
                let part = |texts: &Vec<Vec<u8>>| texts[index % texts.len()].clone();
                each.iter().flat_map(part).collect()
            };
            (0..most).map(text).collect()
        }
    }
}

/// Proves OUT-7a.
#[test]
fn each_alternative_passes_the_guard() {
    let (mut count, mut wrong) = (0, Vec::new());
    for row in ROWS {
        let pattern = super::matcher::build(row.pattern).unwrap();
        for sample in samples(&parsed(row.pattern).unwrap()) {
            let Ok(text) = String::from_utf8(sample) else {
                continue;
            };
            // Adjacent samples may join to a word.
            if !pattern.is_match(text.as_bytes()) {
                continue;
            }
            let exempt = row.unless.and_then(super::matcher::build);
            if exempt.is_some_and(|exempt| exempt.is_match(text.as_bytes())) {
                continue;
            }
            count += 1;
            let mut guard = FactGuard::default();
            guard.see(Line {
                number: 1,
                text: &text,
            });
            let is_noted = guard.missing(&[], 10_000).is_some();
            if !is_noted || shape_alone(&text).is_none() && !text.starts_with("E   ") {
                wrong.push(format!("{text:?} of {}", row.pattern));
            }
        }
    }
    assert!(count > 600, "{count}");
    assert!(
        wrong.is_empty(),
        "{count}, {}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Proves OUT-11: a megabyte of lines that are nearly facts is inspected in linear time.
#[test]
fn long_line_is_inspected_in_part() {
    let mut guard = FactGuard::default();
    let text = format!("error: {}", "a ".repeat(1 << 20));
    guard.see(Line {
        number: 1,
        text: &text,
    });
    let facts = guard.missing(&[], 50_000).unwrap();
    assert!(facts[0].text.starts_with("error: a a"));
    assert!(facts[0].text.len() <= 2048);
    assert!(matches!(FilterPipeline::off().plan("make"), Plan::Plain));
}
