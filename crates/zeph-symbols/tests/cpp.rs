//! Symbols of C++: real-world constructs, and any bytes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use proptest::prelude::*;

use zeph_symbols::{Language, symbols};

/// The symbols of a text: line, kind, and name after its container.
fn found(text: &str) -> Vec<String> {
    let symbols = symbols(text.as_bytes(), Language::Cpp);
    assert!(symbols.whole);
    let said = symbols.found.iter().map(|symbol| {
        let dot = if symbol.container.is_empty() { "" } else { "." };
        format!(
            "{} {} {}{dot}{}",
            symbol.line,
            symbol.kind.word(),
            symbol.container,
            symbol.name
        )
    });
    said.collect()
}

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    assert_eq!(found(text), expect, "{text}");
}

/// Proves NAT-5 in part.
#[test]
fn header_symbols_are_found() {
    check(
        r#"#pragma once
#include "base.h"
#define MAX(a, b) \
    ((a) > (b) ? (a) : (b))

namespace net::http {

class Request;  // only named

/** A server { with braces } in its comment. */
template <typename T, typename = std::enable_if_t<(sizeof(T) > 1)>>
class EXPORT_API Server final : public Base<T>, private Mixin<int, 3> {
    Q_OBJECT
public:
    using Handler = std::function<void(const Request&)>;
    enum class State : uint8_t { Idle, Running = 1 << 2, Gone [[deprecated]] };

    explicit Server(int port = kDefault, std::string name = "x{y");
    Server(const Server&) = delete;
    virtual ~Server() noexcept override;
    Server& operator=(Server&& other) noexcept = default;
    bool operator==(const Server& other) const { return port_ == other.port_; }
    void operator()(int) const;
    T& operator[](std::size_t at);
    explicit operator bool() const noexcept { return true; }
    std::ostream& operator<<(std::ostream& out) const;
    auto begin() -> decltype(items_.begin());
    static std::map<std::string, std::vector<int>> all(int limit = max(1, 2));
    [[nodiscard]] constexpr int port() const& { if (x) { return 1; } return port_; }
    template <class U> void visit(U&& f) const requires Callable<U>;
    int (*callback)(int);
    std::function<int(int)> function{[](int x) { return x; }};
    struct Options { int timeout = 3; bool keep{true}; };
protected slots:
    void onRead();
private:
    int port_ = f(3), other_ : 3;
};

template <typename T>
concept Callable = requires(T t) { t(1); { t.x() } -> std::same_as<int>; };

template <class T> requires (sizeof(T) > 4) && std::is_class_v<T>
void send(T value);

inline namespace v2 { struct Point { int x, y; } origin; }
}  // namespace net::http
"#,
        &[
            "3 macro MAX",
            "6 module net",
            "6 module net.http",
            "12 class net.http.Server",
            "15 type net.http.Server.Handler",
            "16 enum net.http.Server.State",
            "16 variant net.http.Server.State.Idle",
            "16 variant net.http.Server.State.Running",
            "16 variant net.http.Server.State.Gone",
            "18 method net.http.Server.Server",
            "19 method net.http.Server.Server",
            "20 method net.http.Server.~Server",
            "21 method net.http.Server.operator=",
            "22 method net.http.Server.operator==",
            "23 method net.http.Server.operator()",
            "24 method net.http.Server.operator[]",
            "25 method net.http.Server.operator bool",
            "26 method net.http.Server.operator<<",
            "27 method net.http.Server.begin",
            "28 method net.http.Server.all",
            "29 method net.http.Server.port",
            "30 method net.http.Server.visit",
            "33 struct net.http.Server.Options",
            "35 method net.http.Server.onRead",
            "41 type net.http.Callable",
            "44 function net.http.send",
            "46 module net.http.v2",
            "46 struct net.http.v2.Point",
        ],
    );
}

/// Proves NAT-5 in part: as the headers of standard libraries are written.
#[test]
fn macros_are_not_names_and_delegation_is_not_a_constructor() {
    check(
        "namespace std _GLIBCXX_VISIBILITY(default)\n{\nclass map\n{\n  map(size_t n, const Alloc& a)\n  : map(n, \
         hasher(), a)\n  { }\n  map(int n)\n  : base(n), other_{1}\n  { }\n  bool on : f(3);\n};\n}\nnamespace API net {}\n\
         namespace a::inline b API {}\nnamespace ABI {}\nnamespace [[deprecated]] old {}\n",
        &[
            "1 module std",
            "3 class std.map",
            "5 method std.map.map",
            "8 method std.map.map",
            "14 module net",
            "15 module a",
            "15 module a.b",
            "16 module ABI",
            "17 module old",
        ],
    );
}

/// Proves NAT-5 in part.
#[test]
fn source_symbols_are_found() {
    check(
        r##"#include <vector>
using namespace std;
using std::string;
extern "C" { int c_function(int x); }
extern "C" void c_other(void) {}
namespace { const char* text = R"sql(class Not { void f() {} })sql"; int hidden() { return 1'000; } }
namespace fs = std::filesystem;

Server::Server(int port) : Base<int>{port}, port_(port), items_{1, 2, {3}} {
    auto f = [&](int x) { return x; };
}
template <typename T>
Server<T>::~Server() { if (a < b) { c(); } }
template <>
void net::Server<std::map<int, int>>::run<int>(const string& s) const noexcept(true) try {
    struct Local {};
} catch (const std::exception& e) {
}
Server::operator bool() const { return true; }
std::ostream& operator<<(std::ostream& out, const Server& s) { return out; }
long double operator""_km(long double x) { return x; }
void* Server::operator new(std::size_t size) { return 0; }
static auto make = [](int x) { return x; };
int table[] = { 1, 2, f(3) };
std::vector<int> list{1, 2};
Server instance(1);
std::string named("text");
auto trailing(int x) -> std::vector<int> { return {}; }
int main(int argc, char** argv) { for (;;) { } }
TEST(Suite, Case) { EXPECT_EQ(1, 1); }
EXPORT(x) int exported() { return 0; }
int guarded() GUARDED_BY(mu) { return 1; }
struct stat* status(struct stat* s, int n) { return s; }
typedef struct node { struct node* next; } node_t, *node_p;
typedef int (*compare_fn)(const void*, const void*);
typedef std::map<std::string, int> Counts;
typedef unsigned char byte_t, buffer_t[16];
union Value { int i; float f; };
enum { ANONYMOUS_A, ANONYMOUS_B = sizeof(int) };
enum Color : int;
struct Outer::Inner { void go(); };
template struct Explicit<int>;
template <> struct Special<int> : Base { int x; };
class __attribute__((packed)) Packed {};
class EXPORTED(1) Marked {};
"##,
        &[
            "4 function c_function",
            "5 function c_other",
            "6 function hidden",
            "9 method Server.Server",
            "13 method Server.~Server",
            "15 method net.Server.run",
            "16 struct net.Server.run.Local",
            "19 method Server.operator bool",
            "20 function operator<<",
            "21 function operator\"\"_km",
            "22 method Server.operator new",
            "28 function trailing",
            "29 function main",
            "30 function TEST",
            "31 function exported",
            "32 function guarded",
            "33 function status",
            "34 type node_t",
            "34 type node_p",
            "34 struct node",
            "35 type compare_fn",
            "36 type Counts",
            "37 type byte_t",
            "37 type buffer_t",
            "38 union Value",
            "39 variant ANONYMOUS_A",
            "39 variant ANONYMOUS_B",
            "41 struct Outer.Inner",
            "41 method Outer.Inner.go",
            "43 struct Special",
            "44 class Packed",
            "45 class Marked",
        ],
    );
}

/// Proves NAT-5 in part.
#[test]
fn preprocessor_branches_are_read() {
    check(
        "#ifdef A\nvoid f(int x) {\n#else\nvoid f(long x) {\n#endif\n  body();\n}\nvoid g() {}\n",
        &["4 function f", "8 function g"],
    );
    check(
        "class A {\n#if X\n  void a() { if (x) { } }\n#else\n  void b();\n#endif\n  void c();\n};\n",
        &["1 class A", "3 method A.a", "5 method A.b", "7 method A.c"],
    );
    check(
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint one(void);\n#ifdef __cplusplus\n}\n#endif\nint two(void);\n",
        &["4 function one", "8 function two"],
    );
    check(
        "#define BLOCK(x) \\\n  { if (x) \\\n  /* } */ {\nvoid f() {}\n#if 0 // \"it's\n#error it's fine\n#endif\nvoid g() {}\n",
        &["1 macro BLOCK", "4 function f", "8 function g"],
    );
    check(
        "int f(int a,\n#if X\n int b\n#else\n long b\n#endif\n) { }\nint g() {}",
        &["1 function f", "8 function g"],
    );
}

/// Invalid code hides few of the symbols after it.
#[test]
fn recovers_after_unparsable_code() {
    check(
        "void f() { } } } }\nvoid g() { }\n",
        &["1 function f", "2 function g"],
    );
    check("FOO(a, (b;\nvoid g();\n", &["2 function g"]);
    check(
        "class A { void f( };\nvoid g();\n",
        &["1 class A", "2 function g"],
    );
    check(
        "const char* s = \"open;\nvoid g();\nchar c = '\nint h();",
        &[],
    );
    check("int x = ] ) > ;\nvoid g();\n", &["2 function g"]);
    check("~\nvoid ~;\n::f();\nvoid ::g();\n", &["4 function g"]);
    check("enum E { A, B\nvoid g();", &["1 variant A", "2 function g"]);
}

/// Proves NAT-5 in part.
#[test]
fn content_of_a_header_decides_its_language() {
    let check = |text: &str, expect: &[&str]| {
        let symbols = symbols(text.as_bytes(), Language::CHeader);
        let names: Vec<_> = symbols.found.iter().map(|symbol| &*symbol.name).collect();
        assert_eq!(names, expect, "{text}");
    };
    check(
        "struct a { int class; };\nint new(int private);\n",
        &["a", "new"],
    );
    check(
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(void);\n#ifdef __cplusplus\n}\n#endif\n",
        &["f"],
    );
    check("class A { void f(); };", &["A", "f"]);
    check("namespace a { int f(); }", &["a", "f"]);
    check("template <class T> T f();", &["f"]);
    check("std::size_t f();", &["f"]);
    check("struct A { int f(); private: int g(); };", &["A", "f", "g"]);
}

/// Nesting and repetition end at the limit of CPU time.
#[test]
fn parse_time_is_limited() {
    for piece in [
        "{",
        "(",
        "<",
        "a<",
        "[",
        "namespace a{",
        "class A{",
        "#if X\n",
        "a(b){",
        "R\"x(",
        "/*",
        "template<",
        "operator(",
        "class A ",
        ") A(b) ",
        "{ A ",
    ] {
        let text = piece.repeat((1 << 18) / piece.len());
        let start = Instant::now();
        let _ = symbols(text.as_bytes(), Language::Cpp);
        assert!(start.elapsed() < Duration::from_secs(20), "{piece:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_accepted(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec![
                "class ", "struct ", "enum ", "namespace ", "template", "operator", "using ", "typedef ", "~", "::", "->", "{", "}", "(", ")",
                "<", ">", "[", "]", ";", ":", ",", "=", "#if\n", "\n#else\n", "\n#endif\n", "\n#define ", "//", "/*", "*/", "\"", "'", "R\"(",
                ")\"", "\\\n", "A", "b ", "\n", "requires ", "extern \"C\" ", "public:", "*", "&", "concept ", "final", "0x1'2",
            ]).prop_map(|piece| piece.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..4),
        ], 0..80),
    ) {
        let text = pieces.concat();
        let lines = u32::try_from(text.split(|byte| *byte == b'\n').count()).unwrap();
        let found = symbols(&text, Language::Cpp).found;
        prop_assert!(found.iter().all(|symbol| symbol.line >= 1 && symbol.line <= lines && !symbol.name.is_empty()));
        let _ = symbols(&text, Language::CHeader);
    }
}
