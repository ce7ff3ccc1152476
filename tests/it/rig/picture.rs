//! Pictures of a terminal: the grid of the emulator as SVG.
//!
//! Values that differ between runs (times, identifiers, temporary folders) are replaced by fixed text. A picture
//! changes only with the display.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;
use vt100::{Color, Screen};

/// The width and height of a cell, and the offset of the base line in it.
const CELL: (f32, f32, f32) = (8.4, 18.0, 13.5);
/// The margin around the grid.
const MARGIN: f32 = 12.0;
const FOREGROUND: &str = "#d6d6d6";
const BACKGROUND: &str = "#16181d";
/// The palette of the sixteen colours.
const PALETTE: [&str; 16] = [
    "#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf",
    "#6b727d", "#ff7b85", "#b5e890", "#ffd98e", "#7fc4ff", "#dc95ef", "#6fd3df", "#ffffff",
];

/// The look of a cell.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    foreground: String,
    background: String,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

/// Neighbouring cells of one look.
struct Run {
    column: usize,
    width: usize,
    text: String,
    look: Look,
}

/// Compares the screen with `docs/pictures/NAME.svg`. With `ZEPH_PICTURES=write`, the file is written instead.
#[track_caller]
#[allow(
    clippy::disallowed_methods,
    reason = "a maintainer asks for new pictures with a variable"
)]
pub(crate) fn picture(name: &str, screen: &Screen) {
    let drawn = svg(screen);
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("docs/pictures/{name}.svg"));
    if std::env::var("ZEPH_PICTURES").is_ok_and(|value| value == "write") {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, drawn).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        stored == drawn,
        "{} is not the current display; `cargo xtask docs --pictures` draws it again:\n{}",
        file.display(),
        screen.contents()
    );
}

/// The grid as an SVG file.
fn svg(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let (width, height, _) = CELL;
    let total = (
        f32::from(columns) * width + 2.0 * MARGIN,
        f32::from(rows) * height + 2.0 * MARGIN,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\" font-family=\"DejaVu Sans Mono, Menlo, \
         Consolas, monospace\" font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n",
        total.0, total.1
    );
    for row in 0..rows {
        for run in runs(screen, row, columns) {
            draw(&run, row, &mut out);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn draw(run: &Run, row: u16, out: &mut String) {
    let (width, height, base) = CELL;
    #[allow(clippy::cast_precision_loss, reason = "columns of a terminal")]
    let (x, wide) = (MARGIN + run.column as f32 * width, run.width as f32 * width);
    let y = MARGIN + f32::from(row) * height;
    let look = &run.look;
    if look.background != BACKGROUND {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{height:.1}\" fill=\"{}\"/>",
            look.background
        );
    }
    if run.text.trim().is_empty() {
        return;
    }
    let mut style = String::new();
    for (is_set, attribute) in [
        (look.bold, " font-weight=\"bold\""),
        (look.dim, " opacity=\"0.6\""),
        (look.italic, " font-style=\"italic\""),
        (look.underline, " text-decoration=\"underline\""),
    ] {
        if is_set {
            style.push_str(attribute);
        }
    }
    // Few fonts have the mark of a result.
    let text = run
        .text
        .replace('⎿', "└")
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"{}\" textLength=\"{wide:.1}\" xml:space=\"preserve\"{style}>{text}</text>",
        y + base,
        look.foreground
    );
}

/// The runs of a row. Trailing blank cells of the default look are not part of them.
fn runs(screen: &Screen, row: u16, columns: u16) -> Vec<Run> {
    let mut cells: Vec<(String, usize, Look)> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else {
            continue;
        };
        if cell.is_wide_continuation() {
            continue;
        }
        let text = match cell.has_contents() {
            true => cell.contents().to_owned(),
            false => " ".to_owned(),
        };
        cells.push((text, 1 + usize::from(cell.is_wide()), look_of(cell)));
    }
    mask(&mut cells);
    let mut runs: Vec<Run> = Vec::new();
    let mut column = 0;
    for (text, width, look) in cells {
        match runs.last_mut() {
            Some(run) if run.look == look => {
                run.text.push_str(&text);
                run.width += width;
            }
            _ => runs.push(Run {
                column,
                width,
                text,
                look,
            }),
        }
        column += width;
    }
    if let Some(last) = runs.last_mut()
        && last.look.background == BACKGROUND
    {
        let text = last.text.trim_end();
        last.width -= last.text.len() - text.len();
        last.text = text.to_owned();
    }
    runs.retain(|run| run.width > 0);
    runs
}

fn look_of(cell: &vt100::Cell) -> Look {
    let foreground = colour(cell.fgcolor(), FOREGROUND);
    let background = colour(cell.bgcolor(), BACKGROUND);
    let (foreground, background) = match cell.inverse() {
        true => (background, foreground),
        false => (foreground, background),
    };
    Look {
        foreground,
        background,
        bold: cell.bold(),
        dim: cell.dim(),
        italic: cell.italic(),
        underline: cell.underline(),
    }
}

fn colour(colour: Color, default: &str) -> String {
    match colour {
        Color::Default => default.to_owned(),
        Color::Idx(index) => match PALETTE.get(usize::from(index)) {
            Some(colour) => (*colour).to_owned(),
            None => xterm_colour(index),
        },
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    }
}

/// A colour of the cube or the grey ramp of xterm.
fn xterm_colour(index: u8) -> String {
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let (r, g, b) = match index {
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
        _ => {
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
    };
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Texts that differ between runs, and their replacements.
static MASKS: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
    let regex = |text: &str| Regex::new(text).unwrap();
    [
        (regex(r"/[\w./-]*/project\b"), "~/project"),
        (
            regex(r"[0-9a-f]{8}-[0-9a-f-]{20,27}"),
            "0198ab3c-0000-7000-8000-000000000000",
        ),
        (regex(r"\b\d+\.\d s\b"), "0.4 s"),
        (regex("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"), "⠋"),
    ]
});

/// Parts of a frame, which stay at their column.
const FRAMES: [&str; 4] = ["│", "║", "┃", "┌"];

/// Replaces the variable parts of a row. The cells that become free are blank cells before the next frame, or the last
/// cells of the row.
fn mask(cells: &mut Vec<(String, usize, Look)>) {
    for (mask, replacement) in &*MASKS {
        let text: String = cells.iter().map(|(text, ..)| text.as_str()).collect();
        let mut found: Vec<_> = mask.find_iter(&text).map(|found| found.range()).collect();
        found.reverse();
        for range in found {
            let mut start = 0;
            let starts = cells.iter().map(|(text, ..)| {
                start += text.len();
                start - text.len()
            });
            let inside: Vec<usize> = starts
                .enumerate()
                .filter_map(|(index, start)| range.contains(&start).then_some(index))
                .collect();
            let (Some(first), Some(last)) = (inside.first(), inside.last()) else {
                continue;
            };
            let look = cells[*first].2.clone();
            let (before, after) = (inside.len(), replacement.chars().count());
            let fixed = replacement
                .chars()
                .map(|c| (c.to_string(), 1, look.clone()));
            cells.splice(*first..=*last, fixed);
            let mut rest = cells.iter().skip(*first + after);
            let frame = rest.position(|(text, ..)| FRAMES.contains(&text.as_str()));
            let end = frame.map_or(cells.len(), |at| *first + after + at);
            let blank = cells[end - 1].2.clone();
            for _ in after..before {
                cells.insert(end, (" ".to_owned(), 1, blank.clone()));
            }
        }
    }
}
