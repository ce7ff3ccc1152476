//! The supported languages and their file names.

use std::path::Path;

/// A language of source files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// C.
    C,
    /// A header of C or C++; the content decides.
    CHeader,
    /// C++ and CUDA.
    Cpp,
    /// Go.
    Go,
    /// Java.
    Java,
    /// JavaScript and JSX.
    JavaScript,
    /// JSON, which has no symbols.
    Json,
    /// Python.
    Python,
    /// Rust.
    Rust,
    /// TypeScript and TSX.
    TypeScript,
}

impl Language {
    /// Returns the language that the extension of a file name implies.
    ///
    /// ```
    /// use std::path::Path;
    /// use zeph_symbols::Language;
    ///
    /// assert_eq!(Language::from_path(Path::new("src/main.rs")), Some(Language::Rust));
    /// assert_eq!(Language::from_path(Path::new("notes.txt")), None);
    /// ```
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()? {
            "c" => Self::C,
            "h" => Self::CHeader,
            "cc" | "cpp" | "cxx" | "c++" | "C" | "cppm" | "ixx" | "hh" | "hpp" | "hxx" | "h++"
            | "H" | "ipp" | "inl" | "tpp" | "txx" | "cu" | "cuh" => Self::Cpp,
            "go" => Self::Go,
            "java" => Self::Java,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "json" => Self::Json,
            "py" | "pyi" => Self::Python,
            "rs" => Self::Rust,
            "ts" | "mts" | "cts" | "tsx" => Self::TypeScript,
            _ => return None,
        })
    }

    /// Returns the language with a name such as `rust` or `py`, as at the start of a code block in Markdown.
    ///
    /// ```
    /// use zeph_symbols::Language;
    ///
    /// assert_eq!(Language::from_name("Python"), Some(Language::Python));
    /// assert_eq!(Language::from_name("text"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_str() {
            "rust" => Self::Rust,
            "python" | "python3" => Self::Python,
            "javascript" | "node" => Self::JavaScript,
            "typescript" => Self::TypeScript,
            "jsonc" | "json5" | "jsonl" => Self::Json,
            "golang" => Self::Go,
            "c++" | "cuda" | "h" => Self::Cpp,
            _ => return Self::from_path(Path::new(&format!("a.{name}"))),
        })
    }

    /// Whether files of the language have symbols.
    #[must_use]
    pub fn has_symbols(self) -> bool {
        self != Self::Json
    }
}
