//! The pictures of the documentation: each view of the binary at a terminal, drawn from the grid of an emulator.

use std::num::NonZeroU16;

use crate::rig::{Home, Terminal, picture};

/// A project with a failing test, and a conversation about it.
const CONVERSATION: &str = r##"
[[steps]]
text = "I read the code first, then I run the test."
calls = [
    { tool = "read", input = { path = "src/area.rs" } },
    { tool = "grep", input = { pattern = "area", path = "src" } },
]
[[steps]]
text = "The width is added where it must be multiplied."
calls = [{ tool = "edit", input = { path = "src/area.rs", old_string = "width + height", new_string = "width * height" } }]
[[steps]]
text = """
The area is now correct. **One line** changed:

| file | change |
|---|---|
| `src/area.rs` | `width * height` |

```rust
pub fn area(width: u32, height: u32) -> u32 {
    width * height
}
```
"""
usage = { input = 5321, output = 210, cached = 4800 }
"##;

fn home() -> Home {
    let home = Home::scripted(CONVERSATION);
    home.write(
        "src/area.rs",
        "/// The area of a rectangle.\npub fn area(width: u32, height: u32) -> u32 {\n    width + height\n}\n",
    );
    home
}

fn terminal(home: &Home, args: &[&str], rows: u16, columns: u16) -> Terminal {
    let size = |cells| NonZeroU16::new(cells).unwrap();
    Terminal::sized(home, args, size(rows), size(columns))
}

/// Proves CLI-4, CLI-4b: the display of a question, and of a turn with calls, a table and code.
#[test]
fn line_interface_pictures_match() {
    let home = home();
    let mut terminal = terminal(&home, &[], 34, 92);
    terminal.prompts("");
    terminal.type_keys("The area of a rectangle is wrong. Fix it.\r");
    terminal.shows("[1] once");
    picture("question", &terminal.grid());
    terminal.type_keys("1");
    terminal.shows("tokens in");
    terminal.prompts("");
    picture("conversation", &terminal.grid());
    assert_eq!(terminal.leaves().0.code(), Some(0));
}

/// Proves CLI-5: the display of the full screen, with a question and with all panels.
#[test]
fn full_screen_pictures_match() {
    let home = home();
    let mut terminal = terminal(&home, &["--tui"], 36, 120);
    terminal.shows("? keys");
    terminal.type_keys("The area of a rectangle is wrong. Fix it.\r");
    terminal.shows("[1] once");
    picture("full-screen-question", &terminal.grid());
    terminal.type_keys("1");
    terminal.shows("tokens in");
    terminal.shows("? keys");
    picture("full-screen", &terminal.grid());
    terminal.type_keys("\x04");
    assert_eq!(terminal.ends().0.code(), Some(0));
}
