//! Types and charsets.

use proptest::prelude::*;

use zeph_web::body::{BodyKind as Kind, decode, essence, kind};

/// Proves WEB-1.
#[test]
fn content_types_are_detected() {
    let check = |header: &str, body: &str, expect: Kind| {
        assert_eq!(kind(header, body.as_bytes()), expect, "{header:?} {body:?}");
    };
    for header in [
        "text/html",
        "Text/HTML; charset=x",
        "application/xhtml+xml",
        "text/html,text/html",
    ] {
        check(header, "", Kind::Html);
    }
    for header in [
        "application/json",
        "application/problem+json; charset=utf-8",
        "text/plain",
        "text/markdown",
        "text/css",
        "application/rss+xml",
        "image/svg+xml",
        "application/x-ndjson",
    ] {
        check(header, "", Kind::Text);
    }
    for header in [
        "application/pdf",
        "image/png",
        "application/octet-stream",
        "application/zip",
        "video/mp4",
        "nonsense",
    ] {
        check(header, "<html>", Kind::Other);
    }
    check("", " \n<!DOCTYPE html><p>", Kind::Html);
    check("", "\u{feff}<HTML>", Kind::Html);
    check("", "plain", Kind::Text);
    check("", "", Kind::Text);
    check("", "a\0b", Kind::Other);
    assert_eq!(essence(" Text/HTML ; charset=utf-8"), "text/html");
}

/// Proves WEB-2.
#[test]
fn body_is_decoded_by_its_charset() {
    let check = |body: &[u8], header: &str, kind: Kind, expect: &str| {
        assert_eq!(
            decode(body, header, kind, false),
            expect,
            "{header:?} {body:?}"
        );
    };
    let html = Kind::Html;
    // The header.
    check(b"caf\xe9", "text/html; charset=ISO-8859-1", html, "café");
    check(
        b"caf\xe9",
        "text/html; a=b; Charset = \"latin1\"",
        html,
        "café",
    );
    check(
        b"\x93\xfa\x96\x7b",
        "text/plain; charset=shift_jis",
        Kind::Text,
        "日本",
    );
    check(b"\xd0\xbf", "text/plain; charset=utf-8", Kind::Text, "п");
    check(
        b"\xcf\xd2\xcf",
        "text/plain;charset=koi8-r",
        Kind::Text,
        "оро",
    );
    // The byte order mark is stronger than the header.
    check(
        b"\xef\xbb\xbf\xc3\xa9",
        "text/html; charset=latin1",
        html,
        "é",
    );
    check(b"\xff\xfeh\0i\0", "text/html; charset=latin1", html, "hi");
    check(b"\xfe\xff\0h\0i", "", Kind::Text, "hi");
    // The header is stronger than `<meta>`.
    check(
        b"<meta charset=utf-8>\xe9",
        "text/html; charset=latin1",
        html,
        "<meta charset=utf-8>é",
    );
    // `<meta>`.
    check(
        b"<meta charset=\"latin1\">\xe9",
        "text/html",
        html,
        "<meta charset=\"latin1\">é",
    );
    check(
        b"<META CharSet = koi8-r />\xcf",
        "text/html",
        html,
        "<META CharSet = koi8-r />о",
    );
    check(
        b"<!-- <meta charset=koi8-r> --><meta charset=latin1>\xe9",
        "text/html",
        html,
        "<!-- <meta charset=koi8-r> --><meta charset=latin1>é",
    );
    check(
        b"<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>\xe9",
        "text/html",
        html,
        "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>й",
    );
    check(
        b"<meta charset=utf-16>\xc3\xa9",
        "text/html",
        html,
        "<meta charset=utf-16>é",
    );
    // `<meta>` in a plain text has no effect.
    check(
        b"<meta charset=latin1>\xc3\xa9",
        "text/plain",
        Kind::Text,
        "<meta charset=latin1>é",
    );
    // Without a declared charset.
    check("é".as_bytes(), "text/html", html, "é");
    check(b"caf\xe9", "text/html", html, "café");
    check(b"caf\xe9", "text/plain", Kind::Text, "caf\u{fffd}");
    check(b"caf\xe9", "text/html; charset=unknown-8", html, "café");
    // Control characters.
    check(
        b"a\0b\x1b[31mc\r\nd\re\tf",
        "text/plain",
        Kind::Text,
        "ab[31mc\nd\ne\tf",
    );
}

/// Proves WEB-2: a cut through a character leaves no replacement character.
#[test]
fn partial_character_at_the_cut_is_removed() {
    let body = &"aé".as_bytes()[..2];
    assert_eq!(decode(body, "text/html", Kind::Html, true), "a");
    assert_eq!(
        decode(body, "text/plain; charset=utf-8", Kind::Text, false),
        "a\u{fffd}"
    );
}

proptest! {
    /// Proves WEB-2: no body and no header breaks it.
    #[test]
    fn any_bytes_become_text(body in prop::collection::vec(any::<u8>(), 0..200), header in "[a-z/;= \"-]{0,40}") {
        let kind = kind(&header, &body);
        let text = decode(&body, &header, kind, false);
        prop_assert!(!text.contains('\0'));
    }

    /// Proves WEB-2: no `<meta>` breaks it.
    #[test]
    fn any_meta_tag_is_parsed_without_a_panic(body in "(<|<!--|-->|<meta|>| |charset|=|\"|'|utf-8|é|;|/){0,20}") {
        let text = decode(body.as_bytes(), "text/html", Kind::Html, false);
        prop_assert!(text.len() >= body.chars().count() || !body.is_ascii());
    }
}
