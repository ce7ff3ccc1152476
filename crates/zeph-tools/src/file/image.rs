//! Checks of images for models with image input: dimensions from the headers, and completeness. Nothing is decoded.
//! A provider refuses each later request of a conversation that contains a broken image, so truncated images are
//! refused.

use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::error::ToolError;
use crate::output::{ImageContent, ToolOutput};

/// The maximum size in bytes of an image for a model.
const MAX_IMAGE_BYTES: u64 = 5 << 20;
/// The types of images that models accept.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

impl ImageContent {
    /// The reason why models refuse this image; `None` if the type, the encoding and the size are valid. The image may
    /// be incomplete.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        if !IMAGE_TYPES.contains(&self.media_type.as_str()) {
            return Some("its type is not PNG, JPEG, GIF or WebP");
        }
        match STANDARD.decode(&self.data) {
            Err(_) => Some("its data is not base64"),
            Ok(bytes) if bytes.is_empty() => Some("it has no data"),
            Ok(bytes) if bytes.len() as u64 > MAX_IMAGE_BYTES => Some("it has more than 5 MiB"),
            Ok(_) => None,
        }
    }
}

/// Returns the result of `read` for an image of the type `media`: the image, if the model accepts images.
pub(super) fn answer(
    path: &Path,
    shown: &str,
    media: &'static str,
    size: u64,
    takes_images: bool,
    reader: impl Read,
) -> Result<ToolOutput, ToolError> {
    if !takes_images {
        return Err(ToolError::permanent(format!(
            "{shown} is an image ({media}, {size} bytes), not text, and the current model does not \
             accept images"
        )));
    }
    let mut data = Vec::new();
    let read = reader.take(MAX_IMAGE_BYTES + 1).read_to_end(&mut data);
    let length = read.map_err(|error| ToolError::io("read", path, error))? as u64;
    if length > MAX_IMAGE_BYTES {
        return Err(ToolError::permanent(format!(
            "{shown} is an image ({media}, {} bytes) above the limit of {MAX_IMAGE_BYTES} bytes: \
             make a smaller copy and read it",
            size.max(length)
        )));
    }
    let name = name(media);
    let (width, height) = measure(media, &data).map_err(|fault| {
        ToolError::permanent(format!(
            "{shown} is binary: a damaged {name} image ({fault}), {length} bytes"
        ))
    })?;
    let summary = format!("{name} image, {width}×{height}, {} bytes", grouped(length));
    let raw = json!({
        "media_type": media,
        "size": length,
        "width": width,
        "height": height,
    });
    let image = ImageContent {
        media_type: media.to_owned(),
        data: STANDARD.encode(&data),
    };
    Ok(ToolOutput::text(summary).with_raw(raw).with_image(image))
}

fn name(media: &str) -> &'static str {
    match media {
        "image/png" => "PNG",
        "image/jpeg" => "JPEG",
        "image/gif" => "GIF",
        _ => "WebP",
    }
}

/// Returns width and height of an image, or its fault.
fn measure(media: &str, data: &[u8]) -> Result<(u32, u32), &'static str> {
    let found = match media {
        "image/png" => png(data),
        "image/jpeg" => jpeg(data),
        "image/gif" => gif(data),
        _ => webp(data),
    };
    match found.ok_or("the image is truncated or its type does not match its header")? {
        (0, _) | (_, 0) => Err("it has no width or no height"),
        size => Ok(size),
    }
}

/// PNG (W3C, Third Edition, 5.2 to 5.6): chunks from IHDR to IEND, data among them.
fn png(data: &[u8]) -> Option<(u32, u32)> {
    let mut at = 8;
    let mut size = None;
    let mut has_data = false;
    loop {
        let length = usize::try_from(u32::from_be_bytes(array(data, at)?)).ok()?;
        let kind: [u8; 4] = array(data, at + 4)?;
        let end = at.checked_add(length)?.checked_add(12)?;
        data.get(at..end)?;
        match (&kind, size) {
            (b"IHDR", None) if length == 13 => {
                let width = u32::from_be_bytes(array(data, at + 8)?);
                let height = u32::from_be_bytes(array(data, at + 12)?);
                size = Some((width, height));
            }
            (_, None) => return None,
            (b"IDAT", _) => has_data = true,
            (b"IEND", _) => return size.filter(|_| has_data),
            _ => {}
        }
        at = end;
    }
}

/// JPEG (ITU-T T.81, B.1 and B.2): segments up to the first scan, and an end marker after it.
fn jpeg(data: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    let mut size = None;
    loop {
        let [mark, marker] = array(data, at)?;
        match (mark, marker) {
            // Any number of fill bytes may precede a marker.
            (0xFF, 0xFF) => {
                at += 1;
                continue;
            }
            (0xFF, 0x01 | 0xD0..=0xD7) => {
                at += 2;
                continue;
            }
            (0xFF, 0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF) => {
                let height = u16::from_be_bytes(array(data, at + 5)?);
                let width = u16::from_be_bytes(array(data, at + 7)?);
                size = Some((width.into(), height.into()));
            }
            (0xFF, 0xDA) => {
                let rest = data.get(at + 2..)?;
                let mut ends = rest.windows(2).rev();
                return size.filter(|_| ends.any(|pair| pair == [0xFF, 0xD9]));
            }
            (0xFF, 0xC4 | 0xC8 | 0xCC | 0xDB..=0xFE) => {}
            _ => return None,
        }
        let length = usize::from(u16::from_be_bytes(array(data, at + 2)?));
        at += 2 + Some(length).filter(|length| *length >= 2)?;
    }
}

/// GIF (87a and 89a, Appendix B): blocks up to the trailer, an image among them. The trailer may be missing after
/// complete blocks, as other decoders allow.
fn gif(data: &[u8]) -> Option<(u32, u32)> {
    let width = u16::from_le_bytes(array(data, 6)?);
    let height = u16::from_le_bytes(array(data, 8)?);
    let mut at = 13 + colours(*data.get(10)?);
    data.get(..at)?;
    let mut images = 0;
    while let Some(kind) = data.get(at) {
        at += match kind {
            0x21 => 2,
            0x2C => {
                images += 1;
                // The descriptor, its colour table, the code size.
                11 + colours(*data.get(at + 9)?)
            }
            0x3B => break,
            _ => return None,
        };
        loop {
            let length = usize::from(*data.get(at)?);
            at += 1 + length;
            if length == 0 {
                break;
            }
        }
    }
    (images > 0).then_some((width.into(), height.into()))
}

/// Returns the size in bytes of the colour table that the flags `packed` declare.
fn colours(packed: u8) -> usize {
    if packed & 0x80 == 0 {
        0
    } else {
        3 << ((packed & 7) + 1)
    }
}

/// WebP (RFC 9649, 2): the canvas of the extended format, or the image of a simple format.
fn webp(data: &[u8]) -> Option<(u32, u32)> {
    let length = usize::try_from(u32::from_le_bytes(array(data, 4)?)).ok()?;
    let data = data.get(..length.checked_add(8)?)?;
    let kind: [u8; 4] = array(data, 12)?;
    match &kind {
        b"VP8X" => {
            let [a, b, c, d, e, f] = array(data, 24)?;
            let width = u32::from_le_bytes([a, b, c, 0]) + 1;
            let height = u32::from_le_bytes([d, e, f, 0]) + 1;
            Some((width, height))
        }
        b"VP8L" if data.get(20) == Some(&0x2F) => {
            let bits = u32::from_le_bytes(array(data, 21)?);
            Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        b"VP8 " if data.get(23..26) == Some(&[0x9D, 0x01, 0x2A]) => {
            let width = u16::from_le_bytes(array(data, 26)?) & 0x3FFF;
            let height = u16::from_le_bytes(array(data, 28)?) & 0x3FFF;
            Some((width.into(), height.into()))
        }
        _ => None,
    }
}

/// Returns `N` bytes from offset `at`.
fn array<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

/// Formats a number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[..], kind, data, &[0; 4]].concat()
    }

    fn a_png(width: u32, height: u32) -> Vec<u8> {
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        let header = [&size[..], &[8, 2, 0, 0, 0]].concat();
        let chunks = [
            chunk(b"IHDR", &header),
            chunk(b"IDAT", b"xx"),
            chunk(b"IEND", b""),
        ];
        [b"\x89PNG\r\n\x1a\n", &chunks.concat()[..]].concat()
    }

    fn a_jpeg(width: u16, height: u16) -> Vec<u8> {
        let [h, w] = [height.to_be_bytes(), width.to_be_bytes()];
        let frame = [
            0xFF, 0xFF, 0xC2, 0, 11, 8, h[0], h[1], w[0], w[1], 1, 0, 0, 0,
        ];
        // A preview in the metadata has its own frame and end marker.
        let exif = [0xFF, 0xE1, 0, 10, 0xFF, 0xD8, 0xFF, 0xC0, 0xFF, 0xD9, 0, 0];
        let scan = [0xFF, 0xDA, 0, 2, 1, 2, 3, 0xFF, 0xD9, 0];
        [&[0xFF, 0xD8][..], &exif, &frame, &scan].concat()
    }

    /// An animated GIF: two images, each after an extension block.
    fn a_gif(width: u16, height: u16) -> Vec<u8> {
        let size = [width.to_le_bytes(), height.to_le_bytes()].concat();
        let colours = [&[0x80, 0, 0][..], &[0; 6]].concat();
        let picture = [
            &[0x21, 0xF9, 4, 0, 1, 0, 0, 0][..],
            &[0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2],
            &[2, 0x44, 1, 0],
        ]
        .concat();
        [b"GIF89a", &size[..], &colours, &picture, &picture, &[0x3B]].concat()
    }

    fn a_webp(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap();
        let body = [b"WEBP", &kind[..], &length.to_le_bytes(), data].concat();
        let whole = u32::try_from(body.len()).unwrap().to_le_bytes();
        [b"RIFF", &whole[..], &body].concat()
    }

    fn samples() -> Vec<(&'static str, Vec<u8>, (u32, u32))> {
        let lossy = [0, 0, 0, 0x9D, 0x01, 0x2A, 0x20, 0x03, 0x58, 0x02, 0, 0];
        let bits = (800_u32 - 1) | (600 - 1) << 14;
        let lossless = [&[0x2F][..], &bits.to_le_bytes(), &[0]].concat();
        let canvas = [0x12, 0, 0, 0, 0x1F, 0x03, 0, 0x57, 0x02, 0];
        vec![
            ("image/png", a_png(800, 600), (800, 600)),
            ("image/jpeg", a_jpeg(800, 600), (800, 600)),
            ("image/gif", a_gif(800, 600), (800, 600)),
            ("image/webp", a_webp(b"VP8 ", &lossy), (800, 600)),
            ("image/webp", a_webp(b"VP8L", &lossless), (800, 600)),
            ("image/webp", a_webp(b"VP8X", &canvas), (800, 600)),
        ]
    }

    /// Proves FILE-11 for the reported dimensions of an image.
    #[test]
    fn sizes_are_read_from_headers() {
        for (media, data, size) in samples() {
            assert_eq!(measure(media, &data), Ok(size), "{media}");
        }
        for (media, data) in [
            ("image/png", a_png(0, 1)),
            ("image/jpeg", a_jpeg(1, 0)),
            ("image/gif", a_gif(0, 0)),
        ] {
            let fault = measure(media, &data).unwrap_err();
            assert!(fault.contains("no width"), "{media}: {fault}");
        }
    }

    /// Proves FILE-11: an image that is truncated anywhere is refused.
    #[test]
    fn truncated_image_is_damaged() {
        for (media, data, _) in samples() {
            // A GIF without its trailer is complete. Other bytes may follow the end marker of a JPEG.
            let whole = match media {
                "image/gif" | "image/jpeg" => data.len() - 1,
                _ => data.len(),
            };
            for length in 0..whole {
                // An animated GIF is also complete between two blocks after its first image.
                if media == "image/gif" && [42, 50].contains(&length) {
                    continue;
                }
                let found = measure(media, &data[..length]);
                assert!(found.is_err(), "{media} {length} of {}", data.len());
            }
        }
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, expect) in [
            (0, "0"),
            (999, "999"),
            (12_345, "12,345"),
            (5_242_880, "5,242,880"),
        ] {
            assert_eq!(grouped(number), expect);
        }
    }

    proptest! {
        /// Any file is measured or refused without a panic.
        #[test]
        fn any_bytes_are_judged(which in 0usize..6, at in 0usize..80, byte: u8, tail in proptest::collection::vec(any::<u8>(), 0..40)) {
            let (media, mut data, _) = samples().swap_remove(which);
            let at = at % data.len();
            data[at] = byte;
            let _ = measure(media, &data);
            data.truncate(at);
            data.extend(tail);
            let _ = measure(media, &data);
        }
    }
}
