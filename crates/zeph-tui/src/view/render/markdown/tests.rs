//! Tests of rendered documents.

use super::render;

fn shown(source: &str, width: usize) -> String {
    let lines: Vec<String> = render(source, width)
        .iter()
        .map(ToString::to_string)
        .collect();
    lines.join("\n")
}

/// Proves CLI-4a: blocks wrap with a hanging indent.
#[test]
fn blocks_are_rendered() {
    let check = |source, expect: &str| assert_eq!(shown(source, 20), expect, "{source:?}");
    check("plain *it* **b** `c` ~~s~~", "plain it b c s");
    check(
        "one two three four five six",
        "one two three four\nfive six",
    );
    check("# Title\ntext", "# Title\ntext");
    check("text\n## Sub", "text\n\n## Sub");
    check(
        "- one two three four five\n- six",
        "• one two three four\n  five\n• six",
    );
    check("9. a\n10. b\n    - c", "9. a\n10. b\n    • c");
    check("1. a\n\n2. b\n\npara", "1. a\n\n2. b\n\npara");
    check("- [ ] a\n- [x] b", "☐ a\n☑ b");
    check("- - a\n  - b", "• • a\n  • b");
    check("-\n- a", "•\n• a");
    check(
        "> a b c d e f g h i j k\n>\n> l",
        "│ a b c d e f g h i\n│ j k\n│\n│ l",
    );
    check("> - a b c d e f g h i j", "│ • a b c d e f g h\n│   i j");
    check("---", "────────────────────");
    check("a\n\n    code\n\nb", "a\n\ncode\n\nb");
    check("- a\n  ```sh\n  ls\n    x\n  ```\n  b", "• a\nls\n  x\n  b");
    check("1. ```sh\n   ls\n   ```", "1.\nls");
    check("> ```\n> a\n> ```", "│ a");
    check("a\n```\nx\n\n y\n```\nb", "a\n\nx\n\n y\n\nb");
    check("<div>\n  a\n</div>", "<div>\n  a\n</div>");
    check("a  \nb\\\nc", "a\nb\nc");
    check("a&nbsp;b &lt; &#27;[1m", "a\u{a0}b < [1m");
    check(
        "see [a]\n\n[a]: http://b",
        "see a (http://b)\n[a]: http://b",
    );
    check("[a](u) <http://b> http://c", "a (u) http://b\nhttp://c");
    check("![alt](pic.png)", "alt (pic.png)");
    check("漢字漢字漢字漢字漢字漢字", "漢字漢字漢字漢字漢字\n漢字");
    check("", "");
}

/// Proves CLI-4a: code is not wrapped and not indented.
#[test]
fn code_is_the_original_text() {
    let code = format!("    {}\n\tx", "long ".repeat(20).trim_end());
    let source = format!("```\n{code}\n```");
    assert_eq!(shown(&source, 20), code.replace('\t', "    "));
}

/// Proves CLI-4a: tables fit or fold.
#[test]
fn tables_fit_or_fold() {
    let table = "| Name | Description | N |\n|:--|:-:|--:|\n| **a** | some words that are long | 1 |\n| 漢字 | x | 22 |\n";
    let check = |width, expect: &str| assert_eq!(shown(table, width), expect);
    check(
        60,
        "Name │       Description        │  N\n─────┼──────────────────────────┼───\na    │ some words that are long │  1\n漢字 │            x             │ 22",
    );
    check(
        30,
        "Name │    Description     │  N\n─────┼────────────────────┼───\na    │  some words that   │  1\n     │      are long      │ \n漢字 │         x          │ 22",
    );
    check(
        18,
        "Name: a\nDescription: some\n  words that are\n  long\nN: 1\n\nName: 漢字\nDescription: x\nN: 22",
    );
    assert_eq!(shown("| a |\n|---|\n", 18), "a\n─");
}
