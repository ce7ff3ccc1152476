//! Tests of listings in each format.

use super::*;
use crate::strategy::testing::collected;

fn listing(format: &str, text: &str) -> (String, FilterConfidence) {
    let table = format!("format = {format:?}\nmax_lines = 8\nmax_folders = 6\nmax_names = 12");
    collected(make, &table, text, Some(0))
}

fn paths(folder: &str, count: usize) -> String {
    (0..count)
        .map(|number| format!("{folder}/f{number}.js\n"))
        .collect()
}

#[test]
fn short_lists_stay() {
    let text = "a\nb\nfind: x: Permission denied\n";
    assert_eq!(
        listing("paths", text),
        (text.to_owned(), FilterConfidence::Fallback)
    );
}

/// Proves OUT-4.
#[test]
fn generated_paths_are_collapsed() {
    let text = format!(
        ".\n./README.md\n./src\n./src/main.rs\n{}find: ‘./x’: Permission denied\n./z.txt\n",
        paths("./node_modules/a", 90)
    );
    let (told, confidence) = listing("paths", &text);
    assert_eq!(
        told,
        "find: ‘./x’: Permission denied\n.\n./README.md\n./src\n./src/main.rs\n./z.txt\n./node_modules/a/ (90): f0.js f1.js f2.js f3.js f4.js f5.js f6.js f7.js f8.js f9.js f10.js f11.js … +78 more, last f89.js; of all: 90 .js\n"
    );
    assert_eq!(confidence, FilterConfidence::Full);
}

#[test]
fn sections_of_ls_become_lines() {
    let text = format!(
        "src:\ntotal 12\n{}\nsrc/x:\ntotal 0\nlrwxrwxrwx 1 a a 8 Nov 22 05:42 l -> m\n",
        "-rw-r--r-- 1 a a 1 Nov 22 05:42 f.rs\n".repeat(9)
    );
    let (told, _) = listing("ls", &text);
    assert!(told.contains("src/x/l\n"), "{told}");
    assert!(told.contains("src/ (9): f.rs"), "{told}");
}

#[test]
fn equal_branches_of_tree_have_equal_shares() {
    let mut text = ".\n".to_owned();
    for folder in 0..4 {
        text += &format!("├── d{folder}\n");
        for file in 0..9 {
            text += &format!("│   ├── f{file}\n");
        }
    }
    text += "\n4 directories, 36 files\n";
    let (told, _) = listing("tree", &text);
    let branch = |at: usize| format!("├── d{at} … 9 entries\n");
    let branches: String = (0..4).map(branch).collect();
    assert_eq!(told, format!(".\n{branches}\n4 directories, 36 files\n"));
}

/// The output of `tree`: directories, each with a number of files, and of files in a subdirectory.
fn tree(folders: &[(&str, usize, usize)]) -> String {
    let mut text = ".\n".to_owned();
    for (name, files, deep) in folders {
        text += &format!("├── {name}\n");
        for file in 0..*files {
            text += &format!("│   ├── {name}-{file}.x\n");
        }
        if *deep > 0 {
            text += &format!("│   └── {name}-deep\n");
        }
        for file in 0..*deep {
            text += &format!("│       ├── {name}-d{file}.x\n");
        }
    }
    text + "├── Makefile\n└── README.md\n\n9 directories, 99 files\n"
}

/// Proves OUT-4: a big branch does not hide the others.
#[test]
fn branch_of_tree_has_its_own_budget() {
    let check = |folders: &[(&str, usize, usize)], there: &[&str], gone: &[&str]| {
        let (told, confidence) = collected(
            make,
            "format = \"tree\"\nmax_lines = 20",
            &tree(folders),
            Some(0),
        );
        for (name, _, _) in folders {
            assert!(told.contains(&format!("├── {name}")), "{name}:\n{told}");
        }
        for text in there.iter().chain(&["Makefile", "README.md", "99 files"]) {
            assert!(told.contains(text), "{text}:\n{told}");
        }
        for text in gone {
            assert!(!told.contains(text), "{text}:\n{told}");
        }
        assert!(told.lines().count() < 60, "{told}");
        assert_eq!(confidence, FilterConfidence::Full);
        let shown = told.lines().filter(|line| line.contains("── ")).count() as u64;
        let counted = told.lines().filter_map(|line| line.split_once(" … "));
        let counted: u64 = counted
            .map(|(_, rest)| rest.split(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        let all = folders
            .iter()
            .map(|(_, files, deep)| 1 + files + deep + usize::from(*deep > 0));
        assert_eq!(shown + counted, all.sum::<usize>() as u64 + 2, "{told}");
    };
    check(
        &[("node_modules", 3000, 0), ("src", 5, 3)],
        &["src-4.x", "src-d2.x", "node_modules … 3000 entries"],
        &["node_modules-1.x"],
    );
    check(
        &[("src", 5, 3), ("target", 0, 3000)],
        &["src-4.x", "src-d2.x", "target … 3001 entries"],
        &["target-d1.x"],
    );
    check(
        &[("data", 4000, 0), ("src", 3, 3), ("tests", 2, 0)],
        &[
            "src-2.x",
            "src-d2.x",
            "tests-1.x",
            "data-0.x",
            "more entries",
        ],
        &["data-3999.x"],
    );
    check(
        &[("a", 300, 0), ("b", 300, 0), ("c", 2, 1)],
        &["c-1.x", "c-d0.x", "a-0.x", "b-0.x"],
        &["a-299.x", "b-299.x"],
    );
    check(
        &[("one", 2, 2500), ("two", 2, 0)],
        &["one-1.x", "one-deep", "two-1.x"],
        &["one-d2499.x"],
    );
    check(
        &[(".git", 900, 9), ("lib", 1, 1)],
        &["lib-0.x", "lib-d0.x"],
        &[".git-1.x"],
    );
    check(
        &[(".venv", 9, 900), ("app", 3, 0)],
        &["app-2.x"],
        &[".venv-d1.x"],
    );
    check(
        &[("__pycache__", 90, 0), ("pkg", 6, 0)],
        &["pkg-5.x"],
        &["__pycache__-1.x"],
    );
    check(
        &[("vendor", 500, 0), ("dist", 500, 0), ("web", 4, 2)],
        &[
            "web-3.x",
            "web-d1.x",
            "vendor … 500 entries",
            "dist … 500 entries",
        ],
        &["dist-1.x"],
    );
    let many: Vec<String> = (0..45).map(|number| format!("dir{number}")).collect();
    let many: Vec<(&str, usize, usize)> = many.iter().map(|name| (name.as_str(), 9, 0)).collect();
    check(&many, &["dir44 … 9 entries"], &["dir0-1.x"]);
}

/// Proves OUT-4: the top level of every kind of listing stays visible.
#[test]
fn top_level_of_listing_stays_visible() {
    let check = |format: &str, text: &str, there: &[&str], most: usize| {
        let table = format!("format = {format:?}");
        let (told, _) = collected(make, &table, text, Some(0));
        for text in there {
            assert!(told.contains(text), "{format}: {text}:\n{told}");
        }
        assert!(told.lines().count() <= most, "{told}");
    };
    let folders = |root: &str, count: usize, files: usize| -> String {
        let folder = |at: usize| paths(&format!("{root}/d{at}/lib"), files);
        (0..count).map(folder).collect()
    };
    let small = "./src/main.rs\n./src/util/a.rs\n./src/util/b.rs\n./src/util/deep/c.rs\n./src/util/deep/d.rs\n./tests/t.rs\n./README.md\n";
    let there = [
        "src",
        "main.rs",
        "src/util",
        "src/util/deep",
        "d.rs",
        "tests",
        "README.md",
    ];
    for big in [
        "./data",
        "./node_modules",
        "./target",
        "./a/very/deep/place/for/data",
        "./packages",
    ] {
        for (count, files) in [(300, 3), (5000, 1), (2, 4000), (70, 70)] {
            let text = format!("{small}{}", folders(big, count, files));
            check("paths", &text, &there, 90);
            let text = format!("{}{small}", folders(big, count, files));
            check("paths", &text, &there, 90);
        }
    }
    // Absolute paths have a common prefix.
    let text = format!("{small}{}", folders("./data", 3000, 1)).replace("./", "/srv/ada/proj/");
    let there = [
        "/src",
        "main.rs",
        "/src/util",
        "deep",
        "d.rs",
        "/tests",
        "README.md",
    ];
    check("paths", &text, &there, 90);
    // Sections of ls.
    let mut text = ".:\nREADME.md\nbig\nsrc\n\n".to_owned();
    for at in 0..3000 {
        text += &format!("./big/d{at}:\nf.js\n\n");
    }
    text += "./src:\nmain.rs\nutil\n\n./src/util:\na.rs\n";
    check(
        "ls",
        &text,
        &["README.md", "big", "main.rs", "./src/util", "a.rs"],
        90,
    );
    // Sizes of directories.
    let mut text = String::new();
    for at in 0..3000 {
        text += &format!("8.0K\t./node_modules/d{at}/lib\n12K\t./node_modules/d{at}\n");
    }
    text += "36M\t./node_modules\n4.0K\t./src/util/deep\n8.0K\t./src/util\n16K\t./src\n4.0K\t./tests\n37M\t.\n";
    check(
        "usage",
        &text,
        &[
            "36M\t./node_modules … 6000 entries",
            "4.0K\t./src/util/deep\n",
            "16K\t./src\n",
            "4.0K\t./tests\n",
            "37M\t.",
        ],
        20,
    );
    let flat: String = (0..90).map(|at| format!("{at}K\td{at}\n")).collect();
    check("usage", &flat, &["0K\td0", "89K\td89"], 90);
    let denied = format!("du: cannot read directory './x': Permission denied\n{text}");
    check(
        "usage",
        &denied,
        &["Permission denied", "./src/util/deep"],
        20,
    );
    let deep: String = (0..30_000)
        .map(|at| format!("4K\t./big/{}/d{at}\n", at % 9))
        .collect();
    check(
        "usage",
        &format!("{deep}9M\t./big\n4K\t./src\n9M\t.\n"),
        &["9M\t./big", "4K\t./src", "9M\t."],
        130,
    );
}

proptest::proptest! {
    #[test]
    fn errors_are_retained_in_any_listing(lines in proptest::collection::vec("[a-c/.]{1,9}|find: [a-c]: Permission denied|├── [ab]|│   └── [ab]", 0..60)) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        for format in ["paths", "ls", "tree"] {
            let (told, _) = listing(format, &text);
            for line in lines.iter().filter(|line| line.starts_with("find: ")) {
                proptest::prop_assert!(told.contains(line.as_str()), "{format}: {told}");
            }
        }
    }
}
