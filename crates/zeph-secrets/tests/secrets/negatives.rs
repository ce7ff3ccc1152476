//! Texts without secrets that resemble secrets.

use crate::random::{LOWER, Random};

/// Texts with their kind.
pub fn texts(seed: u64) -> Vec<(&'static str, String)> {
    let mut r = Random(seed);
    let mut texts: Vec<(&str, String)> = Vec::new();
    let mut many = |name, count: usize, line: &mut dyn FnMut(&mut Random) -> String| {
        let text: String = (0..count).map(|_| line(&mut r) + "\n").collect();
        texts.push((name, text));
    };
    many("cargo lock", 3000, &mut |r| {
        let name = r.text(LOWER, 7);
        format!(
            "[[package]]\nname = \"{name}-token\"\nversion = \"1.{}.0\"\nchecksum = \"{}\"",
            r.below(90),
            r.hex(64)
        )
    });
    many("npm lock", 2000, &mut |r| {
        let name = r.text(LOWER, 8);
        format!(
            "    \"node_modules/{name}-key\": {{\n      \"resolved\": \"https://registry.example/{name}/-/{name}-1.2.{}.tgz\",\n      \"integrity\": \"sha512-{}==\"",
            r.below(99),
            r.base64(86)
        )
    });
    many("git log", 3000, &mut |r| {
        format!(
            "commit {}\nAuthor: A Key <key@a.example>\n    rotate the token of {}",
            r.hex(40),
            r.text(LOWER, 6)
        )
    });
    many("base64", 3000, &mut |r| r.base64(76));
    many("images", 200, &mut |r| {
        format!("<img src=\"data:image/png;base64,{}\">", r.base64(900))
    });
    many("uuids", 3000, &mut |r| {
        format!("id: {} token_id={}", r.uuid(), r.uuid())
    });
    many("hashes", 2000, &mut |r| {
        format!(
            "{}  target/{}.o\nsha256:{}\nETag: \"{}\"",
            r.hex(64),
            r.text(LOWER, 9),
            r.hex(64),
            r.hex(32)
        )
    });
    many("css", 2000, &mut |r| {
        format!(
            ".sk-{}-{} {{ color: #{}; }} .sk-fading-circle-container-element-{} {{}}",
            r.text(LOWER, 6),
            r.below(12),
            r.hex(6),
            r.below(12)
        )
    });
    many("minified", 300, &mut |r| {
        let mut line = String::new();
        for _ in 0..60 {
            let (a, b) = (r.text(LOWER, 1), r.text(LOWER, 2));
            line += &format!(
                "function {a}{b}(t,e){{var n=t.token,r=e.key;return n===r?t.password=e.password:(this.secret=null,{a}.getToken(e))}}"
            );
        }
        line
    });
    for (name, lines) in LINES {
        many(name, 20 * lines.len(), &mut |r| {
            (*r.pick(lines)).replace('#', &r.below(100).to_string())
        });
    }
    texts
}

/// Lines of programs, logs and documents.
const LINES: &[(&str, &[&str])] = &[
    (
        "placeholders",
        &[
            "password=xxxxxxxxxxxx",
            "API_KEY=<your api key>",
            "api_key: ${API_KEY}",
            "token: \"{{ secrets.TOKEN }}\"",
            "SECRET_KEY=changeme",
            "password: example-password",
            "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
            "OPENAI_API_KEY=sk-...",
            "Authorization: Bearer <token>",
            "curl -H \"Authorization: Bearer $TOKEN\" https://a.example",
            "postgres://user:password@localhost/db",
            "https://${USER}:${PASS}@a.example/x",
            "PASSWORD=",
            "password: ********",
            "token=[redacted:github_token]",
            "secret: null",
            "DB_PASSWORD=your_password_here",
            "redis://:${REDIS_PASSWORD}@cache:6379",
            "http://user:pass@proxy.example:8080",
            "password = os.environ[\"DB_PASSWORD\"]",
            "--password \"$PASSWORD\"",
            "TOKEN=$(cat /run/secrets/token)",
        ],
    ),
    (
        "code",
        &[
            "let password = get_password(user_#)?;",
            "password = getpass.getpass(\"Password: \")",
            "token: Token::new(kind, span#),",
            "self.secret = secret",
            "if token == other.token {",
            "    api_key: Option<String>,",
            "const token = await getToken(user#);",
            "pub fn access_token(&self) -> &str {",
            "let key = map_key.clone();",
            "password: String,",
            "passwd = args.passwd_#",
            "type Token = string | number;",
            "assert_eq!(parser.token(), Token::Ident(\"a#\"));",
            "$password = $_POST['password'];",
            "private_key: PrivateKey2048,",
            "auth_token=auth_token,",
            "input type=\"password\" autocomplete=\"current-password\"",
            "cancellation_token: CancellationToken::new(),",
            "secretKeyRef: { name: db-secret-#, key: password }",
            "\"token\": \"identifier\",",
            "tokenizer = AutoTokenizer.from_pretrained(\"bert-base\")",
            "max_tokens=4096, token_count=#",
            "password_hash: [u8; 32],",
            "csrf_token = form.csrf_token",
            "user.password = hash_password(password, salt16)",
            "return jwt.sign(payload, config.jwtSecret)",
            "@Value(\"${app.api.key}\") String apiKey;",
            "secret = Secret.from_file(path_#)",
            "key = 'primary_key_#'",
            "def test_token_3(self): token = token1",
        ],
    ),
    (
        "logs",
        &[
            "2026-01-02 03:04:05.#6 INFO auth: token refreshed for user #",
            "warning: unused variable: `password`",
            "error[E0308]: mismatched types: expected `Token`, found `&str`",
            "Password: ",
            "Enter your password to continue.",
            "HTTP/1.1 200 OK",
            "   Compiling tokenizers v0.#.1",
            "Downloading https://registry.example/key-#.tar.gz",
            "PASS tests/password.test.js (#.5 s)",
            "http://localhost:80#0/path@2x.png",
            "PWD=/home/user/project",
            "total 12\n-rw-r--r-- 1 user user 12 Jan  2 03:04 token_#.rs",
            "test secrets::tests::password_# ... ok",
            "ssh://git@git.example/o/r.git",
            "cargo install --token-file=x",
            "key: Enter",
        ],
    ),
];
