//! The category and the text of each error of the web, as the model sees them.

use std::time::Duration;

use zeph_web::{
    CssSelector, PageError, RequestErrorKind, StatusCode, Url, UrlGuard, UrlRefusal, WebConfig,
    WebError,
};

use crate::ToolError;
use crate::category::ToolErrorCategory as Category;
use crate::web::error::{page_error, selector_error, tool_error};

fn url() -> Url {
    Url::parse("https://example.org/a").unwrap()
}

fn status(status: u16, retry_after: Option<&str>) -> WebError {
    WebError::Status {
        url: url(),
        status: StatusCode::from_u16(status).unwrap(),
        retry_after: retry_after.map(str::to_owned),
    }
}

fn request(kind: RequestErrorKind) -> WebError {
    WebError::Request {
        host: "example.org".to_owned(),
        kind,
        cause: "reset".to_owned(),
    }
}

fn no_address(reason: Option<&str>) -> WebError {
    WebError::NoAddress {
        name: "example.org".to_owned(),
        reason: reason.map(str::to_owned),
    }
}

fn refused(text: &str) -> WebError {
    let lists = |name: &str| vec![name.to_owned()];
    let config = WebConfig {
        allowed_domains: lists("example.org"),
        denied_domains: lists("denied.example.org"),
        ..WebConfig::default()
    };
    let guard = UrlGuard::new(&config).unwrap();
    WebError::Refused(guard.check(text).unwrap_err())
}

/// Proves WEB-3, WEB-7, WEB-9.
#[test]
fn errors_of_requests_have_a_category_and_a_text() {
    let check = |error: WebError, category: Category, is_refusal: bool, text: &str| {
        let error = tool_error(error);
        assert_eq!(error.to_string(), text);
        assert_eq!(error.category(), category, "{text}");
        assert_eq!(error.is_refusal(), is_refusal, "{text}");
    };
    let blocked = |url: &str, text: &str| check(refused(url), Category::PolicyBlocked, true, text);
    blocked("http://example.org/", "only https:// is allowed, not http:");
    blocked(
        "https://u:p@example.org/",
        "a URL with a user name or a password is not allowed",
    );
    blocked("https://./", "the URL has no host");
    blocked(
        "https://a..example.org/",
        "\"a..example.org\" is not the name of a host",
    );
    blocked(
        "https://printer.local/",
        "printer.local is a name of the local network",
    );
    blocked(
        "https://intranet./",
        "intranet is a name of the local network: it has one part only",
    );
    blocked(
        "https://127.1/",
        "127.0.0.1 is not an address of the public Internet",
    );
    blocked(
        "https://x.denied.example.org/",
        "x.denied.example.org is in `tools.scrape.denied_domains`",
    );
    blocked(
        "https://other.org/",
        "other.org is not in `tools.scrape.allowed_domains`",
    );
    blocked(
        &format!("https://example.org/{}", "a".repeat(8173)),
        "the URL has 8193 bytes; 8192 is the limit",
    );
    check(
        refused("example.org"),
        Category::InvalidParameters,
        false,
        "\"example.org\" is not a URL (relative URL without a base); write it as in https://example.org/page",
    );
    let address = UrlRefusal::Address("10.0.0.1".parse().unwrap());
    check(
        WebError::RefusedName {
            name: "example.org".to_owned(),
            reason: address,
        },
        Category::PolicyBlocked,
        true,
        "example.org is refused: 10.0.0.1 is not an address of the public Internet",
    );
    check(
        no_address(None),
        Category::NetworkError,
        false,
        "example.org has no address",
    );
    check(
        no_address(Some("this name does not exist")),
        Category::NetworkError,
        false,
        "example.org has no address: this name does not exist",
    );
    for (kind, category) in [
        (RequestErrorKind::Network, Category::NetworkError),
        (RequestErrorKind::Invalid, Category::PermanentFailure),
        (RequestErrorKind::Timeout, Category::Timeout),
    ] {
        let text = "the request to example.org failed: reset";
        check(request(kind), category, false, text);
    }
    let permanent = |error: WebError, text: &str| {
        check(error, Category::PermanentFailure, false, text);
    };
    permanent(
        status(404, Some("1")),
        "https://example.org/a answers 404 Not Found",
    );
    permanent(
        WebError::TooManyRedirects {
            number: 4,
            from: "https://a.org/".to_owned(),
            to: "https://b.org/".to_owned(),
        },
        "redirect 4 from https://a.org/ to https://b.org/ is not followed: 3 is the limit",
    );
    permanent(
        WebError::InvalidRedirect {
            from: url(),
            to: "https://[".to_owned(),
            error: Url::parse("https://[").unwrap_err(),
        },
        "https://example.org/a redirects to \"https://[\", which is not a URL: invalid IPv6 address",
    );
    permanent(
        WebError::Coding {
            url: url(),
            coding: "br".to_owned(),
        },
        "https://example.org/a is compressed with \"br\", which was not requested",
    );
    permanent(
        WebError::Client("no roots".to_owned()),
        "no HTTPS client: no roots",
    );
    check(
        WebError::Timeout {
            url: "https://example.org".to_owned(),
            limit: Duration::from_secs(15),
        },
        Category::Timeout,
        false,
        "the request for https://example.org took longer than 15s",
    );
}

/// Proves WEB-6, ERR-20: the text names the redirect, and the refusal or the requested delay remains.
#[test]
fn errors_of_redirects_keep_their_kind() {
    let check = |error: WebError, category: Category, is_refusal: bool, text: &str| {
        let error = tool_error(WebError::Redirect {
            number: 2,
            url: "https://example.org/a".to_owned(),
            error: Box::new(error),
        });
        let expect = format!("redirect 2, to https://example.org/a: {text}");
        assert_eq!(error.to_string(), expect);
        assert_eq!(error.category(), category, "{text}");
        assert_eq!(error.is_refusal(), is_refusal, "{text}");
        error
    };
    check(
        refused("https://denied.example.org/"),
        Category::PolicyBlocked,
        true,
        "denied.example.org is in `tools.scrape.denied_domains`",
    );
    check(
        WebError::RefusedByCaller(Box::new(ToolError::blocked("by a rule"))),
        Category::PolicyBlocked,
        true,
        "by a rule",
    );
    check(
        no_address(None),
        Category::NetworkError,
        false,
        "example.org has no address",
    );
    let deferred = check(
        status(429, Some("7")),
        Category::RateLimited,
        false,
        "https://example.org/a answers 429 Too Many Requests; the server requests a wait of 7 s",
    );
    assert_eq!(deferred.retry_after(), Some(Duration::from_secs(7)));
}

#[test]
fn errors_of_pages_and_selectors_have_a_category_and_a_text() {
    let check = |error: ToolError, category: Category, text: &str| {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.category(), category, "{text}");
    };
    check(
        page_error(PageError::TooDeep { limit: 512 }),
        Category::PermanentFailure,
        "the page cannot be parsed: its elements are nested more than 512 deep",
    );
    check(
        page_error(PageError::TooCostly),
        Category::PermanentFailure,
        "the page cannot be parsed: it has too many elements, or they are nested too deep",
    );
    check(
        page_error(PageError::Parser("why".to_owned())),
        Category::PermanentFailure,
        "the page cannot be parsed: why",
    );
    check(
        page_error(PageError::Timeout(Duration::from_secs(5))),
        Category::Timeout,
        "processing the page took longer than 5s",
    );
    check(
        page_error(PageError::Cancelled),
        Category::Cancelled,
        "the call was cancelled",
    );
    let selector = |text: &str| selector_error(&CssSelector::parse(text).unwrap_err());
    check(
        selector(&"a".repeat(1025)),
        Category::InvalidParameters,
        "`select` has 1025 bytes; 1024 is the limit",
    );
    let error = selector("[");
    let text = error.to_string();
    let expect = "`select` \"[\" is no CSS selector: invalid selector";
    assert!(text.starts_with(expect), "{text}");
    assert_eq!(error.category(), Category::InvalidParameters);
}
