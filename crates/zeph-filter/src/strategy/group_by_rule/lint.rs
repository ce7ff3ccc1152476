//! Parser for scripts that may run ESLint, the TypeScript compiler, or both.

use super::by_file::{Reader, Remarks};
use super::{Line, Sink, eslint, tsc};

struct Lint {
    eslint: Box<dyn Reader>,
    tsc: Box<dyn Reader>,
    /// True if the last diagnostic is from the compiler: indented lines below explain it.
    compiler: bool,
}

pub(super) fn start() -> Box<dyn Reader> {
    Box::new(Lint {
        eslint: eslint::start(),
        tsc: tsc::start(),
        compiler: false,
    })
}

impl Reader for Lint {
    fn line(&mut self, line: Line<'_>, remarks: &mut Remarks, out: &mut dyn Sink) {
        let text = line.text;
        let was = self.compiler;
        self.compiler = tsc::is_diagnostic(text)
            || was && (text.is_empty() || text.starts_with([' ', '\t']) || tsc::is_source(text));
        match (was, self.compiler) {
            (false, true) => self.eslint.finish(remarks, out),
            (true, false) => self.tsc.finish(remarks, out),
            _ => {}
        }
        if self.compiler {
            self.tsc.line(line, remarks, out);
        } else if !(text.starts_with("> ") || text.starts_with("$ ")) {
            // The lines of the package manager before a script are omitted.
            self.eslint.line(line, remarks, out);
        }
    }

    fn finish(&mut self, remarks: &mut Remarks, out: &mut dyn Sink) {
        self.eslint.finish(remarks, out);
        self.tsc.finish(remarks, out);
    }
}
