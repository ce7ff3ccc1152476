//! Symbols of each language, and any text.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use proptest::prelude::*;

use zeph_symbols::{Language, Symbol, symbols};

/// The symbols of a file: line, kind, and name after its container.
fn found(name: &str, text: &str) -> Vec<String> {
    let language = Language::from_path(Path::new(name)).expect("a language");
    let symbols = symbols(text.as_bytes(), language);
    assert!(symbols.whole, "in time");
    let said = symbols.found.iter().map(|symbol| {
        let Symbol {
            name,
            kind,
            line,
            container,
        } = symbol;
        let dot = if container.is_empty() { "" } else { "." };
        format!("{line} {} {container}{dot}{name}", kind.word())
    });
    said.collect()
}

/// Proves NAT-5 in part.
#[test]
fn every_language_has_its_symbols() {
    let check = |name: &str, text: &str, expect: &[&str]| {
        assert_eq!(found(name, text), expect, "{name}");
    };
    check(
        "a.rs",
        "pub mod m {\n    pub struct Point<T> { x: T }\n    impl<T> Show for Point<T> {\n        fn show(&self) { fn inner() {} }\n    }\n    trait Show { fn show(&self); }\n}\nenum E { A, B }\nconst N: u8 = 1;\nstatic S: u8 = 1;\ntype T = u8;\nmacro_rules! mac { () => {} }\nasync fn go() {}\n",
        &[
            "1 module m",
            "2 struct m.Point",
            "4 method m.Point.show",
            "4 function m.Point.show.inner",
            "6 trait m.Show",
            "6 method m.Show.show",
            "8 enum E",
            "8 variant E.A",
            "8 variant E.B",
            "9 const N",
            "10 variable S",
            "11 type T",
            "12 macro mac",
            "13 function go",
        ],
    );
    check(
        "a.py",
        "LIMIT = 3\n\n@dec\nclass A(B):\n    size: int = 1\n    def go(self):\n        local = 1\n        def inner(): pass\n\nasync def top(): pass\n",
        &[
            "1 variable LIMIT",
            "4 class A",
            "5 field A.size",
            "6 method A.go",
            "8 function A.go.inner",
            "10 function top",
        ],
    );
    check(
        "a.ts",
        "export interface Shape { area(): number }\nexport type Id = string;\nenum Color { Red }\nnamespace N { export const one = 1 }\nexport abstract class Box<T> implements Shape {\n  private items: T[] = [];\n  area(): number { const local = 1; return local }\n  handler = () => 1;\n}\nexport const make = async (x: number) => x;\nfunction over(x: string): void;\nfunction over(x: unknown) {}\n",
        &[
            "1 interface Shape",
            "1 method Shape.area",
            "2 type Id",
            "3 enum Color",
            "4 module N",
            "4 const N.one",
            "5 class Box",
            "6 field Box.items",
            "7 method Box.area",
            "8 method Box.handler",
            "10 function make",
            "11 function over",
            "12 function over",
        ],
    );
    check(
        "a.jsx",
        "class A { go() { return <i>{1}</i> } }\nfunction* gen() {}\nconst { a, b } = c;\nlet d = function () {};\n",
        &[
            "1 class A",
            "1 method A.go",
            "2 function gen",
            "4 function d",
        ],
    );
    check(
        "a.go",
        "package a\n\ntype Server struct { n int }\ntype Doer interface { Do() error }\ntype Id = int\nconst ( A, B = 1, 2 )\nvar x int\nfunc (s *Server) Run(y int) { var z int }\nfunc (m Map[K]) Get() {}\nfunc main() {}\n",
        &[
            "3 struct Server",
            "4 interface Doer",
            "4 method Doer.Do",
            "5 type Id",
            "6 const A",
            "6 const B",
            "7 variable x",
            "8 method Server.Run",
            "9 method Map.Get",
            "10 function main",
        ],
    );
    check(
        "A.java",
        "package p;\npublic class A<T> {\n  static final int N = 1;\n  A() {}\n  int go(int x) { int local = 1; return x; }\n  enum E { X, Y }\n  record R(int a) {}\n  interface I { void f(); }\n}\n",
        &[
            "2 class A",
            "3 field A.N",
            "4 method A.A",
            "5 method A.go",
            "6 enum A.E",
            "6 variant A.E.X",
            "6 variant A.E.Y",
            "7 class A.R",
            "8 interface A.I",
            "8 method A.I.f",
        ],
    );
    check(
        "a.c",
        "#define MAX 3\n#define SQ(x) ((x)*(x))\nstruct point { int x; };\ntypedef struct { int y; } vec_t;\nenum e { ONE, TWO };\nstruct point *make(int n);\nint (*callback)(int);\nstatic int *go(struct point *p) { int local(void); return 0; }\n",
        &[
            "1 macro MAX",
            "2 macro SQ",
            "3 struct point",
            "4 type vec_t",
            "5 enum e",
            "5 variant e.ONE",
            "5 variant e.TWO",
            "6 function make",
            "8 function go",
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_accepted(
        text in "[a-z{}()\\[\\];:,.\"'<>=*&\n é#@-]{0,120}",
        name in proptest::sample::select(vec!["a.rs", "a.py", "a.tsx", "a.go", "a.java", "a.c", "a.h", "a.cpp"]),
    ) {
        let lines = u32::try_from(text.split('\n').count()).unwrap();
        let language = Language::from_path(Path::new(name)).unwrap();
        let symbols = symbols(text.as_bytes(), language).found;
        prop_assert!(symbols.iter().all(|symbol| symbol.line >= 1 && symbol.line <= lines));
    }
}
