//! A provider alone: asks the model of a server with the API of OpenAI. Arguments: the address, the model, the prompt.
#![allow(clippy::print_stdout)]

use zeph_llm::{Message, ProviderConfig, ProviderKind, RetryConfig, build_provider};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |name| {
        arguments
            .next()
            .ok_or(format!("the argument {name} is missing"))
    };
    let config = ProviderConfig::new("local", ProviderKind::Openai)
        .with_base_url(next("ADDRESS")?)
        .with_model(next("MODEL")?);
    let provider = build_provider(&config, RetryConfig::default(), None)?;
    let prompt = Message::user(next("PROMPT")?);
    println!("{}", provider.chat("Be short.", &[prompt]).await?);
    Ok(())
}

// Arguments: SERVER qwen3:8b Hello
// Prints:
// Hello from the server.
