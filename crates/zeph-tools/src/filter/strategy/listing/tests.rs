//! Listings of every kind.

use super::*;
use crate::filter::strategy::testing::collected;

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
fn what_tools_made_gives_way() {
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
fn the_upper_levels_of_a_tree_stay() {
    let mut text = ".\n".to_owned();
    for folder in 0..4 {
        text += &format!("├── d{folder}\n");
        for file in 0..9 {
            text += &format!("│   ├── f{file}\n");
        }
    }
    text += "\n4 directories, 36 files\n";
    let (told, _) = listing("tree", &text);
    assert_eq!(
        told,
        ".\n├── d0 (+9 below)\n├── d1 (+9 below)\n├── d2 (+9 below)\n├── d3 (+9 below)\n\n4 directories, 36 files\n"
    );
}

proptest::proptest! {
    #[test]
    fn errors_stay_whatever_comes(lines in proptest::collection::vec("[a-c/.]{1,9}|find: [a-c]: Permission denied|├── [ab]|│   └── [ab]", 0..60)) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        for format in ["paths", "ls", "tree"] {
            let (told, _) = listing(format, &text);
            for line in lines.iter().filter(|line| line.starts_with("find: ")) {
                proptest::prop_assert!(told.contains(line.as_str()), "{format}: {told}");
            }
        }
    }
}
