//! Generated secrets of every kind, assembled at run time, in typical contexts.

use crate::random::{DIGITS, LOWER, Random, UPPER};

/// A text that contains a secret.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The expected kind.
    pub kind: &'static str,
    /// The kind of text around the secret.
    pub context: &'static str,
    /// The text.
    pub text: String,
    /// The texts that redaction must remove: the value, or the lines of a key.
    pub values: Vec<String>,
}

/// A generator of values.
type Make = fn(&mut Random) -> String;

fn jwt(r: &mut Random) -> String {
    let length = 40 + r.below(200);
    let parts = [r.word(34), r.word(length)].map(|part| format!("ey{}{part}", "J"));
    format!("{}.{}", parts.join("."), r.word(43))
}

/// Tokens with a typical prefix.
const TOKENS: &[(&str, Make)] = &[
    ("aws_access_key", |r| {
        format!(
            "AK{}{}",
            "IA",
            r.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)
        )
    }),
    ("aws_access_key", |r| {
        format!(
            "AS{}{}",
            "IA",
            r.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)
        )
    }),
    ("google_key", |r| format!("AI{}{}", "za", r.word(35))),
    ("google_key", |r| format!("GOC{}-{}", "SPX", r.word(28))),
    ("google_key", |r| format!("ya{}.{}", "29", r.word(120))),
    ("github_token", |r| {
        format!("gh{}{}", "p_", r.alphanumeric(36))
    }),
    ("github_token", |r| {
        format!("gh{}{}", "o_", r.alphanumeric(36))
    }),
    ("github_token", |r| {
        format!("gh{}{}", "s_", r.alphanumeric(36))
    }),
    ("github_token", |r| {
        format!(
            "github_{}_{}_{}",
            "pat",
            r.alphanumeric(22),
            r.alphanumeric(59)
        )
    }),
    ("gitlab_token", |r| format!("gl{}-{}", "pat", r.word(20))),
    ("gitlab_token", |r| format!("gl{}-{}", "dt", r.word(20))),
    ("registry_token", |r| {
        format!("np{}{}", "m_", r.alphanumeric(36))
    }),
    ("registry_token", |r| {
        format!("py{}-AgE{}", "pi", r.word(150))
    }),
    ("registry_token", |r| {
        format!("dckr{}{}", "_pat_", r.word(27))
    }),
    ("slack_token", |r| {
        format!(
            "xo{}-{}-{}-{}",
            "xb",
            r.text(DIGITS, 12),
            r.text(DIGITS, 13),
            r.alphanumeric(24)
        )
    }),
    ("slack_token", |r| {
        format!(
            "xo{}-{}-{}-{}-{}",
            "xp",
            r.text(DIGITS, 12),
            r.text(DIGITS, 12),
            r.text(DIGITS, 13),
            r.hex(32)
        )
    }),
    ("stripe_key", |r| {
        format!("sk{}{}", "_live_", r.alphanumeric(24))
    }),
    ("stripe_key", |r| {
        format!("rk{}{}", "_test_", r.alphanumeric(99))
    }),
    ("openai_key", |r| {
        format!(
            "sk-{}T3Bl{}{}",
            r.alphanumeric(20),
            "bkFJ",
            r.alphanumeric(20)
        )
    }),
    ("openai_key", |r| format!("sk-{}-{}", "proj", r.word(120))),
    ("anthropic_key", |r| {
        format!("sk-{}-api03-{}AA", "ant", r.word(93))
    }),
    ("huggingface_token", |r| {
        format!("h{}{}", "f_", r.text(&[LOWER, UPPER].concat(), 34))
    }),
    ("service_key", |r| {
        format!("S{}.{}.{}", "G", r.word(22), r.word(43))
    }),
    ("service_key", |r| format!("dop{}{}", "_v1_", r.hex(64))),
    ("service_key", |r| {
        format!("g{}{}", "sk_", r.alphanumeric(52))
    }),
    ("jwt", jwt),
];

/// Contexts of a token. The token replaces `@`.
const TOKEN_CONTEXTS: &[(&str, &str)] = &[
    ("bare", "@\n"),
    ("env", "DEPLOY_VALUE=@\n"),
    ("export", "export MY_TOKEN='@'\n"),
    ("json", "  \"credential\": \"@\",\n"),
    (
        "json in a string",
        "{\"body\":\"{\\\"token\\\":\\\"@\\\"}\"}\n",
    ),
    ("yaml", "    value: @\n"),
    ("toml", "key = \"@\"\n"),
    (
        "log",
        "2026-01-02T03:04:05Z INFO client: using @ for host=a.example\n",
    ),
    ("diff", "+const K = '@';\n"),
    ("trace", "+ curl -H 'X-Key: @' https://a.example/v1\n"),
    ("header", "> Authorization: Bearer @\r\n"),
    ("query", "GET /v1/items?api_key=@&page=2 HTTP/1.1\n"),
    (
        "url",
        "remote: https://x-access-token:@@git.example/o/r.git\n",
    ),
    ("code", "let client = Client::new(\"@\");\n"),
    ("colour", "\u{1b}[32mtoken\u{1b}[0m \u{1b}[1m@\u{1b}[m\n"),
    ("no line break", "the token is @"),
];

fn password(r: &mut Random) -> String {
    loop {
        let value = match r.below(4) {
            0 => r.text(&[LOWER, UPPER, DIGITS, "!#%^*?~_-+"].concat(), 14),
            1 => r.alphanumeric(16),
            2 => format!(
                "{}{}!{}",
                r.text(UPPER, 1),
                r.text(LOWER, 6),
                r.text(DIGITS, 3)
            ),
            _ => r.hex(24),
        };
        let signs = value.starts_with(|c: char| !c.is_ascii_alphanumeric())
            || value.ends_with(['%', '-', '_']);
        if !signs && value.bytes().any(|byte| byte.is_ascii_digit()) {
            return value;
        }
    }
}

fn generated(r: &mut Random) -> String {
    match r.below(3) {
        0 => r.alphanumeric(32),
        1 => r.hex(40),
        _ => format!("{}==", r.base64(42)),
    }
}

/// Contexts of a value that a name identifies.
const ASSIGNMENTS: &[(&str, &str, Make)] = &[
    ("env", "DB_PASSWORD=@\n", password),
    ("export", "export PGPASSWORD=\"@\"\n", password),
    ("env", "STRIPE_WEBHOOK_SECRET=@\n", generated),
    ("env", "SECRET_KEY_BASE=@\n", generated),
    ("trace", "+ MYSQL_PWD=@ mysql -u root\n", password),
    ("json", "  \"password\": \"@\",\n", password),
    (
        "json",
        "{\"user\":\"a\",\"clientSecret\":\"@\",\"n\":1}\n",
        generated,
    ),
    (
        "json in a string",
        "\"{\\\"api_key\\\": \\\"@\\\"}\"\n",
        generated,
    ),
    ("yaml", "  password: @\n", password),
    ("yaml", "    apiKey: \"@\"\n", generated),
    ("yaml", "- secret_key: @\n", generated),
    ("toml", "auth_token = \"@\"\n", generated),
    ("ini", "password = @\n", password),
    ("ini", "secret=@\n", generated),
    (
        "python",
        "client = connect(user='a', password='@')\n",
        password,
    ),
    ("rust", "const API_KEY: &str = \"@\";\n", generated),
    ("javascript", "const accessToken = `@`;\n", generated),
    ("php", "'db_password' => '@',\n", password),
    ("xml", "<password>@</password>\n", password),
    ("xml", "<add key=\"ApiSecret\" value=\"@\" />\n", generated),
    ("header", "Authorization: Bearer @\r\n", generated),
    ("header", "> X-Api-Key: @\r\n", generated),
    (
        "header",
        "curl -H \"Authorization: Basic @\" https://a.example\n",
        generated,
    ),
    ("option", "+ deploy --token @ --host a.example\n", generated),
    ("option", "mysql --password=@ -u root\n", password),
    (
        "query",
        "POST https://a.example/hook?access_token=@&x=1\n",
        |r| r.hex(40),
    ),
    ("log", "connecting with password=@ timeout=30\n", password),
    ("diff", "-DATABASE_PASSWORD=@\n", password),
    ("grep", "config/.env:12:REDIS_PASSWORD=@\n", password),
    (
        "netrc",
        "machine a.example login bob password @\n",
        password,
    ),
    (
        "colour",
        "\u{1b}[33mexport\u{1b}[0m API_\u{1b}[1mSECRET\u{1b}[m=@\n",
        generated,
    ),
];

/// Values that names of cloud services identify.
const CLOUD: &[(&str, &str, &str, Make)] = &[
    (
        "aws_access_key",
        "credentials",
        "aws_secret_access_key = @\n",
        |r| r.base64(40),
    ),
    ("aws_access_key", "env", "AWS_SECRET_ACCESS_KEY=@\n", |r| {
        r.base64(40)
    }),
    (
        "aws_access_key",
        "json",
        "    \"SecretAccessKey\": \"@\",\n",
        |r| r.base64(40),
    ),
    (
        "aws_access_key",
        "env",
        "export AWS_SESSION_TOKEN=@\n",
        |r| r.base64(300),
    ),
    (
        "azure_key",
        "connection string",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=@;EndpointSuffix=core.windows.net\n",
        |r| format!("{}==", r.base64(86)),
    ),
    (
        "azure_key",
        "connection string",
        "Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=@\n",
        |r| format!("{}=", r.base64(43)),
    ),
    (
        "azure_key",
        "url",
        "https://a.blob.core.windows.net/c/b?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig=@\n",
        |r| format!("{}%3D", r.alphanumeric(43)),
    ),
];

/// Credentials in URLs.
const URLS: &[(&str, &str)] = &[
    ("env", "DATABASE_URL=postgres://app:@@db.example:5432/app\n"),
    ("log", "connecting to redis://:@@cache.example:6379/0 ...\n"),
    (
        "yaml",
        "url: mongodb+srv://root:@@cluster.example/test?retryWrites=true\n",
    ),
    ("git", "origin\thttps://bob:@@git.example/o/r.git (fetch)\n"),
    (
        "code",
        "conn = create_engine(\"mysql://u:@@localhost/db\")\n",
    ),
    ("json", "{\"amqp\":\"amqps://svc:@@mq.example/vhost\"}\n"),
];

/// Signs in passwords of URLs that also occur in code.
const URL_SIGNS: &[&str] = &["$", ",", "(", ")", ":"];

/// A private key with `label`, wrapped to lines of `width`.
fn key_lines(r: &mut Random, label: &str, headers: &[&str], width: usize) -> Vec<String> {
    let mut lines = vec![format!("-----BE{} {label}-----", "GIN")];
    lines.extend(headers.iter().map(|header| (*header).to_owned()));
    for _ in 0..6 + r.below(20) {
        lines.push(r.base64(width));
    }
    let last = 8 + r.below(width - 10);
    lines.push(format!("{}==", r.base64(last)));
    lines.push(format!("-----E{} {label}-----", "ND"));
    lines
}

fn keys(r: &mut Random, samples: &mut Vec<Sample>) {
    const LABELS: &[(&str, &[&str], usize)] = &[
        ("RSA PRIV_ATE KEY", &[], 64),
        ("PRIV_ATE KEY", &[], 64),
        ("EC PRIV_ATE KEY", &[], 64),
        ("OPENSSH PRIV_ATE KEY", &[], 70),
        ("ENCRYPTED PRIV_ATE KEY", &[], 64),
        (
            "RSA PRIV_ATE KEY",
            &[
                "Proc-Type: 4,ENCRYPTED",
                "DEK-Info: AES-128-CBC,0123456789ABCDEF0123456789ABCDEF",
                "",
            ],
            64,
        ),
        ("PGP PRIV_ATE KEY BLOCK", &["Version: GnuPG v2", ""], 64),
    ];
    const FORMS: &[&str] = &[
        "file",
        "indented",
        "diff",
        "grep",
        "json",
        "env",
        "concatenated",
        "numbered",
        "cut off",
        "crlf",
    ];
    for (label, headers, width) in LABELS {
        let label = label.replace('_', "");
        for form in FORMS {
            let lines = key_lines(r, &label, headers, *width);
            let body: Vec<String> = lines[1 + headers.len()..lines.len() - 1].to_vec();
            let each = |before: &str, after: &str| -> String {
                lines
                    .iter()
                    .map(|line| format!("{before}{line}{after}\n"))
                    .collect()
            };
            let text = match *form {
                "file" => each("", ""),
                "indented" => format!("key: |\n{}next: 1\n", each("    ", "")),
                "diff" => each("+", ""),
                "grep" => lines
                    .iter()
                    .enumerate()
                    .map(|(n, line)| format!("conf/tls.pem:{}:{line}\n", n + 9))
                    .collect(),
                "json" => format!(
                    "{{\"private_key\": \"{}\\n\", \"id\": 1}}\n",
                    lines.join("\\n")
                ),
                "env" => format!("TLS_KEY=\"{}\"\n", lines.join("\\n")),
                "concatenated" => each("    \"", "\\n\" +"),
                "numbered" => lines
                    .iter()
                    .enumerate()
                    .map(|(n, line)| format!("{:>6}\t{line}\n", n + 1))
                    .collect(),
                "cut off" => lines[..lines.len() - 2]
                    .iter()
                    .map(|line| format!("{line}\n"))
                    .collect(),
                _ => each("", "\r"),
            };
            let cut = usize::from(*form == "cut off");
            let values = body[..body.len() - cut].to_vec();
            samples.push(Sample {
                kind: "private_key",
                context: form,
                text: format!("before\n{text}"),
                values,
            });
        }
    }
}

/// Labels of keys that are found in base64, too.
pub const ENCODED_KEYS: &[&str] = &[
    "PRIV_ATE KEY",
    "RSA PRIV_ATE KEY",
    "EC PRIV_ATE KEY",
    "OPENSSH PRIV_ATE KEY",
    "ENCRYPTED PRIV_ATE KEY",
];

/// Contexts of a key in base64, which replaces `@`.
const ENCODED_CONTEXTS: &[(&str, &str)] = &[
    ("kubeconfig", "    client-key-data: @\n"),
    ("kubernetes secret", "    \"tls.key\": \"@\"\n"),
];

/// A PEM text with `count` lines of data, in base64.
pub fn encoded_pem(r: &mut Random, label: &str, count: usize) -> String {
    let label = label.replace('_', "");
    let mut pem = format!("-----BE{} {label}-----\n", "GIN");
    for _ in 0..count {
        pem += &format!("{}\n", r.base64(64));
    }
    pem += &format!("-----E{} {label}-----\n", "ND");
    encode_base64(pem.as_bytes())
}

/// Encodes bytes in base64 (RFC 4648, section 4).
fn encode_base64(bytes: &[u8]) -> String {
    let alphabet = [UPPER, LOWER, DIGITS, "+/"].concat();
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| chunk.get(at).copied().unwrap_or_default();
        let word = u32::from_be_bytes([0, byte(0), byte(1), byte(2)]);
        for place in 0..4 {
            let sextet = (word >> (18 - 6 * place)) as usize & 63;
            text.push(match place <= chunk.len() {
                true => char::from(alphabet.as_bytes()[sextet]),
                false => '=',
            });
        }
    }
    text
}

/// The labelled set.
pub fn samples(seed: u64) -> Vec<Sample> {
    let mut r = Random(seed);
    let mut samples = Vec::new();
    for (kind, make) in TOKENS {
        for (context, template) in TOKEN_CONTEXTS {
            let value = make(&mut r);
            // In `@@`, a value precedes the `@` of a host.
            let text = template
                .replace("@@", &format!("{value}\u{0}"))
                .replace('@', &value)
                .replace('\u{0}', "@");
            samples.push(Sample {
                kind,
                context,
                text,
                values: vec![value],
            });
        }
    }
    let mut put = |kind: &'static str, context: &'static str, template: &str, value: String| {
        let text = template
            .replace("@@", &format!("{value}\u{0}"))
            .replace('@', &value)
            .replace('\u{0}', "@");
        samples.push(Sample {
            kind,
            context,
            text,
            values: vec![value],
        });
    };
    for (context, template, make) in ASSIGNMENTS {
        for _ in 0..10 {
            put("assignment", context, template, make(&mut r));
        }
    }
    for (kind, context, template, make) in CLOUD {
        for _ in 0..10 {
            put(kind, context, template, make(&mut r));
        }
    }
    for (context, template) in URLS {
        for n in 0..10 {
            let mut value = if r.below(2) == 0 {
                r.alphanumeric(12)
            } else {
                r.word(24)
            };
            if n % 2 == 1 {
                value.insert_str(6, &format!("{}b5c", URL_SIGNS[n / 2]));
            }
            put("url_credentials", context, template, value);
        }
    }
    keys(&mut r, &mut samples);
    for label in ENCODED_KEYS {
        for (context, template) in ENCODED_CONTEXTS {
            let value = encoded_pem(&mut r, label, 4);
            samples.push(Sample {
                kind: "private_key",
                context,
                text: template.replace('@', &value),
                values: vec![value],
            });
        }
    }
    samples
}
