//! Lines of bytes from the client, with a maximum size.
//!
//! A line that is too long or not UTF-8 is reported as such, and the next line is read.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// The maximum size of a line in bytes.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A line of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputLine {
    /// A line of text without its line break.
    Text(String),
    /// A line of more bytes than the maximum.
    TooLong,
    /// A line that is not UTF-8.
    NotUtf8,
}

/// Reads the next line that is not blank; `None` at the end of input.
///
/// # Errors
/// If the input cannot be read.
pub async fn next_line(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> io::Result<Option<InputLine>> {
    loop {
        let Some(line) = any_line(input, max_bytes).await? else {
            return Ok(None);
        };
        match &line {
            InputLine::Text(text) if text.trim().is_empty() => {}
            _ => return Ok(Some(line)),
        }
    }
}

async fn any_line(
    input: &mut (impl AsyncBufRead + Unpin),
    max_bytes: usize,
) -> io::Result<Option<InputLine>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    let mut has_read = false;
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            break;
        }
        has_read = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        if line.len() + part.len() > max_bytes {
            is_too_long = true;
            line = Vec::new();
        } else if !is_too_long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(available.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    if !has_read {
        return Ok(None);
    }
    if is_too_long {
        return Ok(Some(InputLine::TooLong));
    }
    Ok(Some(match String::from_utf8(line) {
        Ok(text) => InputLine::Text(text),
        Err(_) => InputLine::NotUtf8,
    }))
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn lines(bytes: &[u8], max_bytes: usize) -> Vec<InputLine> {
        // A small buffer, so that lines arrive in parts.
        let mut input = BufReader::with_capacity(3, bytes);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, max_bytes).await.unwrap() {
            lines.push(line);
        }
        lines
    }

    fn text(text: &str) -> InputLine {
        InputLine::Text(text.to_owned())
    }

    /// Proves ACP-7.
    #[tokio::test]
    async fn bad_line_does_not_affect_the_next_one() {
        let bytes = b"first\n\n \r\nmuch too long\n\xff\xfe\nlast";
        let expect = [
            text("first"),
            InputLine::TooLong,
            InputLine::NotUtf8,
            text("last"),
        ];
        assert_eq!(lines(bytes, 6).await, expect);
        assert_eq!(lines(b"", 6).await, []);
        assert_eq!(
            lines(b"123456\n1234567", 6).await,
            [text("123456"), InputLine::TooLong]
        );
    }
}
