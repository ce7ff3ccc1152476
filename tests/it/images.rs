//! `read` of images: models with image input receive them, other models read a description.

use serde_json::{Value, json};

use crate::rig::{Home, OpenAi, Reply, assert_has, audit, openai_config, results_of};
use crate::tools_call::call;

/// A PNG of 800×600 with `more` bytes of data, and 59 bytes in addition.
fn png(more: usize) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[..], kind, data, &[0; 4]].concat()
    };
    let size = [800_u32.to_be_bytes(), 600_u32.to_be_bytes()].concat();
    let chunks = [
        chunk(b"IHDR", &[&size[..], &[8, 2, 0, 0, 0]].concat()),
        chunk(b"IDAT", &[b"xx", &vec![7; more][..]].concat()),
        chunk(b"IEND", b""),
    ];
    [b"\x89PNG\r\n\x1a\n", &chunks.concat()[..]].concat()
}

/// The base64 text of `gif`, an image of one pixel.
pub(crate) const GIF: &str = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";

pub(crate) fn gif() -> Vec<u8> {
    let mut bytes = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff".to_vec();
    bytes.extend(b"\x21\xf9\x04\x01\0\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x01\x44\0\x3b");
    bytes
}

/// A server with image input whose model reads `paths` in one batch.
fn looking_at(paths: &'static [&'static str]) -> (OpenAi, Home) {
    let server = OpenAi::start(move |n, _| match n {
        0 => {
            let calls: Vec<_> = paths
                .iter()
                .map(|path| ("read", json!({ "path": path })))
                .collect();
            Reply::calls("a", &calls)
        }
        _ => Reply::text("Seen."),
    });
    let home = Home::new();
    home.config(&format!("{}images = true\n", openai_config(&server.url())));
    std::fs::write(home.path("shot.txt"), png(0)).unwrap();
    std::fs::write(home.path("dot.gif"), gif()).unwrap();
    (server, home)
}

fn messages(server: &OpenAi) -> Vec<Value> {
    server.last().json()["messages"].as_array().unwrap().clone()
}

/// Proves FILE-11, LLM-6: images are sent after the results of their batch, are stored, and are sent again in
/// later turns. The content determines the type, not the name.
#[test]
fn model_that_accepts_images_receives_them() {
    let (server, home) = looking_at(&["shot.txt", "dot.gif"]);
    home.zeph(["-p", "look"]).code(0).prints(&["Seen."]);
    let sent = messages(&server);
    let results = results_of(&sent);
    assert_eq!(results[0].1, "PNG image, 800×600, 59 bytes");
    assert_eq!(results[1].1, "GIF image, 1×1, 42 bytes");
    let shown = sent.last().unwrap();
    assert_eq!(shown["role"], "user");
    let parts = shown["content"].as_array().unwrap();
    assert_eq!(parts.len(), 4, "{shown}");
    let url = parts[1]["image_url"]["url"].as_str().unwrap();
    assert!(
        url.starts_with("data:image/png;base64,iVBORw0KGgo"),
        "{url}"
    );
    assert_has(parts[2]["text"].as_str().unwrap(), &["call_a_1"]);
    assert_eq!(
        parts[3]["image_url"]["url"],
        format!("data:image/gif;base64,{GIF}")
    );

    home.zeph(["--continue", "-p", "once more"]).code(0);
    let again = messages(&server);
    assert_eq!(again[..sent.len()], sent[..]);
    let entry = &audit(&home.database())[0];
    assert_eq!(entry.result, "success");

    // Another model of the session without image input.
    home.config(&openai_config(&server.url()));
    home.zeph(["--continue", "-p", "and you?"]).code(0);
    let blind = server.last();
    assert!(!String::from_utf8_lossy(&blind.raw).contains("base64"));
    let text = blind.json()["messages"][sent.len() - 1]["content"].to_string();
    assert_eq!(text.matches("does not accept images").count(), 2, "{text}");
}

/// Proves FILE-11: if an image is not accepted, too large or damaged, the result says so.
#[test]
fn unusable_image_is_refused() {
    let (server, home) = looking_at(&["shot.txt", "large.png", "cut.png"]);
    std::fs::write(home.path("large.png"), png(5 << 20)).unwrap();
    std::fs::write(home.path("cut.png"), &png(0)[..40]).unwrap();
    let results = |home: &Home| {
        home.zeph(["-p", "look"]).code(0);
        let sent = messages(&server);
        assert_eq!(sent.last().unwrap()["role"], "user");
        results_of(&sent)
    };
    let results = results(&home);
    assert_has(&results[0].1, &["PNG image, 800×600"]);
    assert_has(
        &results[1].1,
        &[
            "[tool_error]",
            "image/png, 5242939 bytes",
            "above the limit of 5242880 bytes",
        ],
    );
    assert_has(
        &results[2].1,
        &["cut.png is binary: a damaged PNG image", "40 bytes"],
    );
}

/// Proves FILE-11: by default, a server other than OpenAI receives no images.
#[test]
fn model_without_images_receives_type_and_size() {
    let (server, home) = looking_at(&["shot.txt"]);
    home.config(&openai_config(&server.url()));
    home.zeph(["-p", "look"]).code(0);
    let sent = messages(&server);
    assert_eq!(sent.last().unwrap()["role"], "tool");
    let results = &results_of(&sent)[0].1;
    assert_has(
        results,
        &[
            "[tool_error]",
            "image/png, 59 bytes",
            "does not accept images",
        ],
    );
    assert_eq!(audit(&home.database())[0].result, "error");
}

/// Proves FILE-11: a call of the user shows the properties of the image, without its data.
#[test]
fn image_properties_are_shown_to_the_user() {
    let home = Home::new();
    std::fs::write(home.path("a"), png(12_286)).unwrap();
    home.write("b.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n");
    let params = json!({ "path": "a" });
    home.zeph(["tools", "call", "read", &params.to_string()])
        .code(0)
        .prints(&["PNG image, 800×600, 12,345 bytes\n"]);
    let form = call(&home, "read", &params);
    let expect = json!({
        "media_type": "image/png", "size": 12345, "width": 800, "height": 600,
    });
    assert_eq!(form["raw_response"], expect);
    assert!(form.to_string().len() < 1000, "{form}");
    let form = call(&home, "read", &json!({ "path": "b.svg" }));
    assert_has(form["data"].as_str().unwrap(), &["1\t<svg"]);
}

/// Proves LLM-9, FILE-11: a scenario accepts images if it says so.
#[test]
fn scenario_can_accept_images() {
    for (images, expected) in [
        (true, "PNG image, 800×600"),
        (false, "does not accept images"),
    ] {
        let home = Home::scripted(&format!(
            r#"
            images = {images}
            [[steps]]
            expect = {{ images = 0 }}
            calls = [{{ tool = "read", input = {{ path = "a.png" }} }}]
            [[steps]]
            expect = {{ images = {}, tool_result_contains = "{expected}" }}
            text = "Seen."
            "#,
            u8::from(images)
        ));
        std::fs::write(home.path("a.png"), png(0)).unwrap();
        home.zeph(["-p", "look"]).code(0).prints(&["Seen."]);
    }
}
