//! Tests of output that no rule understands, that is too long, or that is not text.

use proptest::prelude::*;

use super::{FilterConfidence, FilterPipeline, FilteredOutput, RuleSet};

/// The result for `printed` by `command`.
fn filter(command: &str, printed: &str, max_chars: usize) -> FilteredOutput {
    let mut run = FilterPipeline::default().start(command, max_chars);
    run.push(printed);
    run.finish(Some(0))
}

/// Lines with their number instead of `#`.
fn lines(text: &str, count: usize) -> Vec<String> {
    let line = |number: usize| text.replace('#', &number.to_string());
    (0..count).map(line).collect()
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Proves OUT-7d: lines with another shape in a long run of similar lines are shown, even if they are short.
#[test]
fn line_of_other_shape_stays() {
    let check = |similar: &str, other: &[&str]| {
        for (command, count) in [("./train", 150), ("./train", 9000), ("cat train.log", 9000)] {
            let mut all = lines(similar, count);
            for (at, other) in other.iter().enumerate() {
                all.insert(count / 3 + at * 17, (*other).to_owned());
            }
            let printed = joined(&all);
            if command.starts_with("cat") && printed.len() < 50_000 {
                continue;
            }
            let text = filter(command, &printed, 50_000).text;
            let shown: Vec<&str> = text.lines().collect();
            for line in other.iter().chain([&all[0].as_str(), &all[count].as_str()]) {
                assert!(shown.contains(line), "{similar}: {line}: {text}");
            }
            assert!(shown.len() < 60, "{similar}: {text}");
            let count = format!("[×{count} like this]");
            assert!(text.contains(&count), "{similar}: {count}: {text}");
        }
    };
    check(
        "epoch # loss 0.#",
        &["loss nan", "checkpoint saved", "early stopping"],
    );
    check("#/9000 ok", &["retry", "paused"]);
    check("step=# loss=0.#", &["step=skipped", "nan detected"]);
    check("# it/s", &["oom"]);
    check("[#] tick", &["[x] tock"]);
    check("iter #: 0.#", &["diverged"]);
    check("val #", &["val inf", "val nan"]);
    check("r#", &["reset", "halt"]);
    check("x=#, y=#", &["x=?, y=7", "singular"]);
    check("frame # 16ms", &["frame dropped"]);
    check(
        "2026-01-02T03:04:05Z beat #",
        &["2026-01-02T03:04:05Z leader lost"],
    );
    check(
        "GET /a/# 200",
        &["SIGHUP", "GET /a/7 500 upstream timed out"],
    );
    check("progress: #%", &["stalled"]);
    check("worker # idle", &["worker busy", "queue full"]);
    check("ep # rew -#.5", &["solved!"]);
    check("page # fetched in #ms", &["rate limited, waiting"]);
    check("\"id\": #,", &["\"id\": null,"]);
    check("行 # 完了", &["失敗"]);
    check("тест # прошёл", &["сбой"]);
    check(
        "uuid 00000000-0000-4000-8000-00000000000a #",
        &["uuid missing"],
    );
    check("commit deadbee# pushed", &["force push"]);
    check("/var/log/#.gz rotated", &["disk is full"]);
    check("temp # C", &["sensor offline"]);
}

/// Proves OUT-7d: from 100 lines on unknown output is grouped; shorter output stays verbatim.
#[test]
fn unknown_output_is_grouped_from_100_lines() {
    let check = |count: usize, grouped: bool| {
        for similar in [
            "stored row #",
            "job # done",
            "#: synced /a/b/#",
            "row # of # in #ms",
        ] {
            let printed = joined(&lines(similar, count));
            let filtered = filter("./unheard-of", &printed, 50_000);
            assert_eq!(
                filtered.text != printed.trim_end(),
                grouped,
                "{count} {similar}"
            );
            assert_eq!(filtered.rule.is_some(), grouped, "{count} {similar}");
            assert_eq!(filtered.left_out.is_some(), grouped);
            let confidence = match printed.len() > 50_000 {
                true => FilterConfidence::Partial,
                false => FilterConfidence::Full,
            };
            assert_eq!(filtered.confidence, confidence, "{count} {similar}");
        }
    };
    for count in [1, 2, 9, 50, 98, 99] {
        check(count, false);
    }
    for count in [100, 101, 150, 999, 20_000] {
        check(count, true);
    }
    // Data and prose are unchanged.
    let verbatim = |printed: &str| {
        assert_eq!(
            filter("./unheard-of", printed, 50_000).text,
            printed.trim_end()
        );
    };
    verbatim(&joined(&lines("#", 300)));
    verbatim(&joined(&lines("#,#.5,-#", 300)));
    let words = |at: usize| -> String {
        let letter = |place: u32| char::from(b'a' + (at / 26_usize.pow(place) % 26) as u8);
        (0..4).map(letter).collect()
    };
    let prose: Vec<String> = (0..300)
        .map(|at| format!("the {} of {}", words(at), words(at * 7)))
        .collect();
    verbatim(&joined(&prose));
}

/// Proves OUT-7c: output that is requested in full stays as it is up to the threshold.
#[test]
fn requested_output_stays_up_to_the_threshold() {
    for command in [
        "cat app.log",
        "git log -n 3",
        "git log -p",
        "git diff --stat",
        "gh pr list --json number",
        "cargo test -- --nocapture",
        "./server | grep x",
        "head -5000 app.log",
        "sed -n 1,900p app.log",
    ] {
        let printed = joined(&lines("GET /items/# 200 in #ms", 1000));
        let filtered = filter(command, &printed, 50_000);
        assert_eq!(filtered.text, printed.trim_end(), "{command}");
        assert_eq!(filtered.left_out, None);
        let printed = printed.repeat(3) + "the needle in it\n" + &printed.repeat(3);
        let filtered = filter(command, &printed, 50_000);
        assert!(filtered.text.contains("the needle in it"), "{command}");
        assert!(filtered.text.contains("[×6000 like this]"), "{command}");
        assert!(
            filtered
                .text
                .starts_with("GET /items/0 200 in 0ms\nGET /items/1 200"),
            "{command}"
        );
        assert!(
            filtered
                .text
                .ends_with("\nGET /items/998 200 in 998ms\nGET /items/999 200 in 999ms"),
            "{command}"
        );
    }
}

/// Proves OUT-7c: a long source file is not grouped: head and tail are shown.
#[test]
fn long_source_text_is_cut_in_the_middle() {
    let mut printed = String::new();
    for at in 0..3000_usize {
        let letters: String = at
            .to_string()
            .bytes()
            .map(|byte| char::from(byte + 49))
            .collect();
        printed += &format!(
            "fn {letters}() {{\n    if ready_{letters} {{\n        return;\n    }}\n}}\n\n"
        );
    }
    let text = filter("cat src/main.rs", &printed, 50_000).text;
    assert!(printed.starts_with(&text[..18_000]));
    let text = text.trim_end();
    assert!(printed.trim_end().ends_with(&text[text.len() - 18_000..]));
}

/// Proves OUT-7d: equal blocks of lines count as one shape, also if they are not adjacent.
#[test]
fn equal_blocks_are_counted() {
    let check = |block: &str, between: &str| {
        for command in ["./server", "cat server.log"] {
            let mut printed = String::new();
            for number in 0..1500 {
                printed += block;
                printed += &between.replace('#', &number.to_string());
            }
            printed += "the needle in it\n";
            for number in 0..20 {
                printed += block;
                printed += &between.replace('#', &number.to_string());
            }
            let filtered = filter(command, &printed, 50_000);
            let text = filtered.text;
            for line in block.lines().filter(|line| !line.is_empty()) {
                let count = text.lines().filter(|shown| shown.starts_with(line)).count();
                assert!((1..=25).contains(&count), "{line}: {count}: {text}");
            }
            assert!(text.contains("the needle in it"), "{text}");
            assert!(text.contains("[×1520 like"), "{text}");
            assert!(
                text.lines().count() < 100,
                "{}: {text}",
                text.lines().count()
            );
        }
    };
    let python = "Traceback (most recent call last):\n  File \"app.py\", line 12, in <module>\n    main()\n  File \"app.py\", line 8, in main\n    raise Odd(\"no\")\napp.Odd: no\n";
    let java = "java.lang.IllegalStateException: no\n\tat a.b.C.run(C.java:10)\n\tat a.b.D.main(D.java:3)\nCaused by: java.io.IOException: gone\n\tat a.b.E.read(E.java:7)\n\t... 2 more\n";
    let node = "Error: no such user\n    at find (/srv/app/user.js:10:5)\n    at run (/srv/app/main.js:3:1)\n";
    let rust = "thread 'main' panicked at src/main.rs:3:5:\nno luck\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
    let warning = "WARN retrying the request\n  because: connection reset\n  attempt: again\n";
    let paragraph =
        "Connecting to the server\nConnection refused by it\nWaiting for five seconds\n";
    let poem = "the first line of it\nthe second line\nthen a third one\nand one more\n";
    for block in [python, java, node, rust, warning, paragraph, poem] {
        for between in ["", "\n", "\nrequest # done\n\n", "\n# requests\n"] {
            check(block, between);
        }
    }
}

/// Proves OUT-7a, OUT-7d: distinct errors and their traces stay.
#[test]
fn distinct_errors_stay() {
    let mut printed = String::new();
    for number in 0..60 {
        printed += &format!(
            "error[E0{number}]: mismatched types\n  --> src/f{number}.rs:{number}:5\n   |\n{number} | let x = {number};\n\n"
        );
        printed += &"tick of the clock\n".repeat(30);
    }
    for command in ["./build", "cat build.log"] {
        let text = filter(command, &printed, 50_000).text;
        for number in 0..60 {
            assert!(text.contains(&format!("error[E0{number}]:")), "{text}");
            assert!(
                text.contains(&format!("--> src/f{number}.rs:{number}:5")),
                "{text}"
            );
        }
    }
}

/// Proves OUT-7d: a rule that leaves too much is grouped before it is cut.
#[test]
fn long_output_of_rule_is_grouped() {
    let mut printed = joined(&lines("[#/9000] emitting object #", 9000));
    printed.insert_str(90_000 - 90_000 % 27, "");
    let at = printed[..120_000].rfind('\n').unwrap() + 1;
    printed.insert_str(at, "ld: section .text will not fit\n");
    for command in [
        "make -j4",
        "cmake --build b",
        "npm run build",
        "kubectl get pods",
    ] {
        let text = filter(command, &printed, 50_000).text;
        assert!(
            text.contains("ld: section .text will not fit"),
            "{command}: {text}"
        );
        assert!(text.len() <= 50_000);
    }
}

/// The text of bytes in UTF-8, or in UTF-16 if they begin with its mark.
fn decoded(bytes: &[u8]) -> String {
    match bytes.strip_prefix(b"\xff\xfe") {
        Some(rest) => {
            let units = rest.as_chunks::<2>().0;
            let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
            String::from_utf16_lossy(&units)
        }
        None => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The result for the bytes of an output.
fn of_bytes(
    filters: &FilterPipeline,
    command: &str,
    bytes: &[u8],
    max_chars: usize,
    code: Option<i32>,
) -> (FilteredOutput, usize) {
    let mut run = filters.start(command, max_chars);
    run.see_bytes(bytes);
    run.push(&decoded(bytes));
    let filtered = run.finish(code);
    let notice = filtered
        .left_out
        .map_or(0, |left_out| left_out.notice().len() + 1);
    let length = filtered.text.len() + notice;
    (filtered, length)
}

/// Bytes without order.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Proves OUT-7c: binary output is reported with format and size.
#[test]
fn binary_output_is_reported() {
    let check = |bytes: &[u8], expect: Option<&str>| {
        let (filtered, length) =
            of_bytes(&FilterPipeline::default(), "cat x", bytes, 50_000, Some(0));
        let text = filtered.text;
        let Some(expect) = expect else {
            assert!(!text.contains("[binary output"), "{text}");
            return;
        };
        let size = format!("{expect}, {} bytes, first bytes ", bytes.len());
        assert!(
            text.contains(&format!("[binary output: {size}")),
            "{expect}: {text}"
        );
        assert!(length < 400 && length < bytes.len(), "{text}");
        assert!(!text.contains('\u{fffd}'), "{text}");
        assert_eq!(filtered.rule.as_deref(), Some("binary"));
        assert!(filtered.left_out.is_some());
    };
    let with = |head: &[u8], count: usize| [head, &noise(count)].concat();
    check(
        &with(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 5000),
        Some("PNG image"),
    );
    check(
        &with(b"\xff\xd8\xff\xe0\0\x10JFIF", 5000),
        Some("JPEG image"),
    );
    check(&with(b"GIF89a", 5000), Some("GIF image"));
    check(&with(b"RIFF\x10\0\0\0WEBPVP8 ", 5000), Some("WebP image"));
    check(&with(b"\x1f\x8b\x08\0\0\0\0\0", 5000), Some("gzip data"));
    check(&with(b"BZh91AY", 5000), Some("bzip2 data"));
    check(&with(b"\xfd7zXZ\0\0\x04", 5000), Some("xz data"));
    check(&with(b"\x28\xb5\x2f\xfd", 5000), Some("zstd data"));
    check(&with(b"PK\x03\x04\x14\0", 5000), Some("zip archive"));
    check(&with(b"7z\xbc\xaf\x27\x1c", 5000), Some("7z archive"));
    check(
        &with(b"\x7fELF\x02\x01\x01\0", 5000),
        Some("ELF executable or library"),
    );
    check(&with(b"MZ\x90\0\x03", 5000), Some("Windows executable"));
    check(&with(b"\xca\xfe\xba\xbe\0\0", 5000), Some("Java class"));
    check(&with(b"\0asm\x01\0\0\0", 5000), Some("WebAssembly module"));
    check(&with(b"SQLite format 3\0", 5000), Some("SQLite database"));
    check(
        &with(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", 5000),
        Some("PDF document"),
    );
    check(&with(b"\0\0\0\x20ftypisom", 5000), Some("MP4 video"));
    check(&with(b"ID3\x04\0\0", 5000), Some("MP3 audio"));
    check(&with(b"OggS\0\x02", 5000), Some("Ogg audio"));
    check(&with(b"wOF2\0\x01", 5000), Some("WOFF font"));
    check(&with(b"\x93NUMPY\x01\0", 5000), Some("NumPy array"));
    check(&noise(300), Some("unknown format"));
    check(&noise(1_000_000), Some("unknown format"));
    check(&[0; 4000], Some("zero bytes"));
    // Text is not reported as binary.
    check(b"", None);
    check(&[0; 5], None);
    check(&noise(60), None);
    check(&joined(&lines("a line of text #", 500)).into_bytes(), None);
    check(
        &joined(&lines("größer als # ✓ 日本語", 500)).into_bytes(),
        None,
    );
    check(
        &joined(&lines("\u{1b}[31mred #\u{1b}[0m\u{8}", 500)).into_bytes(),
        None,
    );
    check(&b"src/a.rs\0src/b.rs\0".repeat(90), None);
    check(&b"caf\xe9 cr\xe8me br\xfbl\xe9e\n".repeat(90), None);
    check(
        &b"\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0\n".repeat(90),
        None,
    );
    check(
        b"PK is two letters and BZh are three\n"
            .repeat(20)
            .as_slice(),
        None,
    );
    check(b"%PDF- is how it begins\n".repeat(20).as_slice(), None);
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain(joined(&lines("a line of text #", 300)).encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    check(&utf16, None);
    let (filtered, _) = of_bytes(&FilterPipeline::default(), "cat x", &utf16, 50_000, Some(0));
    assert!(
        filtered
            .text
            .starts_with("a line of text 0\na line of text 1\n")
    );
}

/// Proves OUT-7c: text around binary data stays.
#[test]
fn text_around_binary_data_stays() {
    let bytes = [
        b"building the image\n".as_slice(),
        &noise(9000),
        b"\nwritten to disk: done\n",
    ]
    .concat();
    let (filtered, _) = of_bytes(
        &FilterPipeline::default(),
        "make image",
        &bytes,
        50_000,
        Some(0),
    );
    assert!(
        filtered
            .text
            .starts_with("building the image\n[binary output: unknown format, 9042 bytes"),
        "{}",
        filtered.text
    );
    assert!(
        filtered.text.ends_with("\nwritten to disk: done"),
        "{}",
        filtered.text
    );
    let (filtered, _) = of_bytes(
        &FilterPipeline::off(),
        "make image",
        &bytes,
        50_000,
        Some(0),
    );
    assert!(!filtered.text.contains("[binary output"));
}

/// Proves OUT-7: lines of a program that resemble those of a build stay.
#[test]
fn arrows_in_program_output_stay() {
    let printed = joined(&lines("node# -> node2", 40)) + "40 edges\n";
    for command in ["dotnet run", "dotnet test"] {
        let filtered = FilterPipeline::default().filter(command, &printed, Some(0));
        let text = filtered.text;
        assert!(text.contains("node1 -> node2"), "{command}: {text}");
    }
}

/// Proves OUT-7: the list of removed packages stays, although its signs resemble a spinner.
#[test]
fn removed_packages_stay() {
    let removed = joined(&lines(" - black==24.1.#", 12));
    let printed = format!("Resolved 9 packages in 2ms\nUninstalled 12 packages in 30ms\n{removed}");
    for code in [0, 1] {
        let filtered = FilterPipeline::default().filter("uv sync", &printed, Some(code));
        let text = filtered.text;
        assert!(text.contains("\n - black==24.1.0\n"), "{code}: {text}");
    }
}

/// Proves OUT-7: the only line that names a missing dependency stays.
#[test]
fn missing_dependency_stays() {
    let missing = "-- Could NOT find PkgConfig (missing: PKG_CONFIG_EXECUTABLE)\n";
    let error = "CMake Error at CMakeLists.txt:9 (pkg_check_modules):\n  \
                 Unknown CMake command \"pkg_check_modules\".\n";
    let printed = "-- Detecting C compiler ABI info\n".repeat(9) + missing + error;
    let filtered = FilterPipeline::default().filter("cmake -B build", &printed, Some(1));
    let text = filtered.text;
    assert!(text.contains("Could NOT find PkgConfig"), "{text}");
    assert!(!text.contains("Detecting"), "{text}");
}

/// A command of every built-in rule, and some without one.
fn commands() -> Vec<String> {
    let book = RuleSet::default();
    let of_rules = book.rules().filter_map(|rule| rule.tests.first());
    let mut commands: Vec<String> = of_rules.map(|test| test.command.clone()).collect();
    commands.extend(["./unheard-of", "cat x", "git log -p", "x | grep y"].map(str::to_owned));
    commands
}

/// Parts of outputs: noise, text, facts, escapes.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::sample::select(vec![
        "error[E0308]: mismatched types\n  --> src/a.rs:1:2\n",
        "ok\n",
        "\n",
        "tick 7\n",
        "├── a\n│   └── b\n",
        "src/a/b.rs\n",
        "test a::b ... FAILED\n",
        "10%\r20%\r",
        "\u{1b}[31mred\u{1b}[0m\n",
        "\u{1b}[9C.",
        "\u{1b}[300C.\n",
        "\u{1b}[8;70H*",
        "\u{1b}[30B-",
        "x\ty\r\u{1b}[60C!\n",
        "\u{8}\u{8}\t\u{1b}[2K",
        "\u{1b}[?1049h\u{1b}[2J\u{1b}[5;5Hmenu\u{1b}[?1049l",
        "\u{fffd}\n",
        "a\tb\n",
        "WARN disk is almost full\n",
        "thread 'main' panicked at src/x.rs:1:2:\nboom\n",
        "4.0K\t./a/b\n",
        "größer ✓\n",
    ]);
    prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..60),
        6 => (text, 1..60_usize).prop_map(|(text, count)| text.repeat(count).into_bytes()),
        1 => (0..5000_usize).prop_map(|count| [b"error: ".to_vec(), vec![b'x'; count]].concat()),
        1 => (0..900_usize).prop_map(|count| vec![0xe9; count]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Proves OUT-7b: a result with its notice is never longer than the raw output.
    #[test]
    fn result_is_never_longer_than_the_output(
        command in prop::sample::select(commands()),
        pieces in prop::collection::vec(pieces(), 0..12),
        max_chars in prop_oneof![Just(50_000_usize), 1000..3000_usize],
        code in prop::option::of(0..3_i32),
    ) {
        let bytes = pieces.concat();
        // UTF-16 is decoded, and may have more bytes in UTF-8.
        prop_assume!(!bytes.starts_with(&[0xff, 0xfe]) && !bytes.starts_with(&[0xfe, 0xff]));
        let (filtered, length) = of_bytes(&FilterPipeline::default(), &command, &bytes, max_chars, code);
        prop_assert!(length <= bytes.len(), "{command}: {length} of {}: {:?}", bytes.len(), filtered.text);
    }
}
