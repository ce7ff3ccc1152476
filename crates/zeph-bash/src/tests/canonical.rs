//! Checks of the canonical text: it has the same tree, and bash runs it with the same effects.

use super::grammar::Scripts;
use super::{command, decide};
use crate::Verdict;
use crate::syntax::ast::List;
use crate::syntax::dialect::Dialect;
use crate::syntax::reading::read;

/// The canonical text of `text`.
fn canonical(text: &str) -> String {
    match read(text, Dialect::Bash) {
        Ok(reading) => reading.canonical,
        Err(error) => panic!("{text:?}: {error}"),
    }
}

/// The reason why the canonical text is not exact.
fn wrong(text: &str) -> Option<String> {
    let Ok(first) = read(text, Dialect::Bash) else {
        return None;
    };
    let again = match read(&first.canonical, Dialect::Bash) {
        Ok(again) => again,
        Err(error) => return Some(format!("{text:?}\n  {:?}\n  {error}", first.canonical)),
    };
    if again.canonical != first.canonical {
        return Some(format!(
            "{text:?}\n  {:?}\n  {:?}",
            first.canonical, again.canonical
        ));
    }
    let tree = |list: List| {
        let list = List {
            doubt: None,
            ..list
        };
        format!("{list:?}")
            .replace("Backticks", "CommandSubstitution")
            .replace("Nothing, ", "")
    };
    let (one, two) = (tree(first.list), tree(again.list));
    let same = one
        .bytes()
        .zip(two.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let differing = |tree: &str| {
        tree.chars()
            .skip(same.saturating_sub(60))
            .take(200)
            .collect::<String>()
    };
    (one != two).then(|| {
        let (one, two) = (differing(&one), differing(&two));
        format!("{text:?}\n  {:?}\n  {one}\n  {two}", first.canonical)
    })
}

/// Proves SH-12a.
#[test]
fn canonical_text_is_fully_quoted() {
    let check = |text: &str, expect: &str| assert_eq!(canonical(text), expect, "{text}");
    check("ls -la", "ls -la");
    check("  ls\t-la  ; pwd", "ls -la; pwd");
    check("ls # sudo", "ls");
    check(
        "git commit -m \"a 'b' c\"",
        "git commit -m 'a '\\''b'\\'' c'",
    );
    check("echo \"a $x `b`\"", "echo \"a $x $( b )\"");
    check("echo `a \\`b\\``", "echo $( a $( b ) )");
    check("su\"d\"o", "su'd'o");
    check("su\\\ndo x", "sudo x");
    check("$'\\x73udo' $'a\\'b'", "'sudo' 'a'\\''b'");
    check("echo $'\\xff\\n'", "echo $'\\377\\012'");
    check("a&>f", "a > f 2>&1");
    check("a &>> 'f g' b", "a >> 'f g' 2>&1 b");
    check("a >&'$(x)'", "a > '$(x)' 2>&1");
    check("a 1>&f", "a > f 2>&1");
    check("a >&-b", "a >&- b");
    check("a >& -b <& \\\n-c", "a >&- b <&- c");
    check("a $((1)\\\n)", "a $((1))");
    check("a 2>&1 3>&- 4<&0 {fd}<f", "a 2>&1 3>&- 4<&0 {fd}< f");
    check("cat <<-\\E\n\tx $y\n\tE\nls", "cat <<'E'\nx $y\nE\nls");
    check("cat <<'a b'\nEOF\na b\n", "cat <<'EOF_1'\nEOF\nEOF_1\n");
    check("cat <<E; ls\nx \\$y\nE\n", "cat <<'E'; ls\nx $y\nE\n");
    check(
        "cat <<E\nx $y \\$z \"q\"\nE\n",
        "cat <<E\nx $y \\$z \"q\"\nE\n",
    );
    check("if a;then b;fi", "if a; then b; fi");
    check(
        "case $x in a|b)c;;*)d;esac",
        "case $x in ( a | b ) c ;; ( * ) d; esac",
    );
    check("((x<<\"1\"))", "((x<<\"1\"))");
    check("((ls 'a'); ls)", "( ( ls 'a' ); ls )");
    check("echo $((ls); ls)", "echo $( ( ls ); ls )");
    check(
        "for((i=0;i<3;i++));do a;done",
        "for ((i=0;i<3;i++)); do a; done",
    );
    check("f(){ a;}", "f () { a; }");
    check("function f { a; }", "function f () { a; }");
    check("x=(a \"b c\"  [3]=d) y+=z", "x=(a 'b c' [3]=d) y+=z");
    check(
        "[[ $a =~ ^(x|y)\\.z$ && ! -e \"q\" ]]",
        "[[ $a =~ ^(x|y)\\.z$ && ! -e 'q' ]]",
    );
    check("[[ a == @(b|c d) ]]", "[[ a == @(b|c d) ]]");
    check("echo a\u{a0}b", "echo a'\u{a0}'b");
    check(
        "${x:-<(a)} \"${y//\\//$z}\"",
        "${x:-<( a )} \"${y//\\//$z}\"",
    );
    check("a |& b & c && d || ! e", "a |& b & c && d || ! e");
    check("time -p a", "time -p a");
    check("coproc N { a; }", "coproc N { a; }");
}

/// Proves SH-12a.
#[test]
fn canonical_text_of_tables_has_the_same_tree() {
    let tables = [
        include_str!("allowed.txt"),
        include_str!("refused.txt"),
        include_str!("everyday.txt"),
    ];
    let mut all: Vec<String> = Vec::new();
    for line in tables.iter().flat_map(|table| table.lines()) {
        let line = command(
            line.split_once(' ')
                .map_or(line, |(kind, rest)| match kind {
                    "A" | "B" | "C" | "CA" => rest,
                    _ => line,
                }),
        );
        all.extend(wrong(&line));
    }
    assert!(all.is_empty(), "{} wrong:\n{}", all.len(), all.join("\n"));
}

/// Proves SH-12a.
#[test]
fn canonical_text_of_any_script_has_the_same_tree() {
    let mut source = Scripts::new(7, "/bin");
    let wrong: Vec<String> = (0..4000)
        .filter_map(|_| wrong(&source.script()))
        .take(20)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Proves SH-12a.
#[test]
fn text_for_another_shell_needs_one_reading() {
    let table = include_str!("dialect.txt");
    assert!(table.lines().count() > 60);
    super::all_wrong(table, |line| {
        let Some((kind, line)) = line.split_once(' ') else {
            return Err(format!("no entry: {line}"));
        };
        match (kind, decide(&command(line))) {
            ("#", _)
            | ("B", Verdict::Block { .. })
            | ("A", Verdict::Ask { .. })
            | ("O", Verdict::Allow) => Ok(()),
            (_, other) => Err(format!("{kind} {line}\n    {other:?}")),
        }
    });
}
