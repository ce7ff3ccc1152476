//! An agent for editors on standard input and output. It lists one stored session after `initialize`.

use std::io::{stdin, stdout};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::BufReader;
use zeph_acp::{HostError, HostedSession, ListedSession, OpenRequest, ServeOptions, SessionHost};

struct Host;

#[zeph_acp::async_trait]
impl SessionHost for Host {
    fn missing_provider(&self) -> Result<Option<String>, HostError> {
        Ok(None)
    }

    fn takes_images(&self) -> bool {
        false
    }

    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn HostedSession>, HostError> {
        Err(HostError::UnknownSession(request.id))
    }

    async fn list(&self, _cwd: Option<&Path>) -> Result<Vec<ListedSession>, HostError> {
        Ok(vec![ListedSession {
            id: "s1".to_owned(),
            cwd: "/project".into(),
            title: Some("Fix the tests".to_owned()),
            updated_at: "2026-01-01T00:00:00Z".to_owned(),
        }])
    }

    async fn delete(&self, _id: &str) -> Result<(), HostError> {
        Ok(())
    }

    fn report(&self, _text: &str, _is_problem: bool) {}
}

/// A standard stream without a buffer.
fn stream(of: impl AsFd) -> std::io::Result<File> {
    Ok(File::from_std(of.as_fd().try_clone_to_owned()?.into()))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let options = ServeOptions {
        name: "lister".to_owned(),
        title: "Lister".to_owned(),
        version: "1.0.0".to_owned(),
        assume_yes: false,
        clean: str::to_owned,
        unread_timeout: Duration::from_secs(60),
    };
    let input = BufReader::new(stream(stdin())?);
    zeph_acp::serve(Arc::new(Host), options, input, stream(stdout())?).await
}

// Reads:
// {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}
// Prints:
// {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":false},"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"fork":{},"resume":{},"close":{}},"auth":{"logout":{}}},"authMethods":[],"agentInfo":{"name":"lister","title":"Lister","version":"1.0.0"}}}
