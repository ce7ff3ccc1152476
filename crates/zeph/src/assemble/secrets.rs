//! What is kept out of all that tools yield and the program says.

use std::sync::Arc;

use zeph_tools::secrets::{KnownValues, Secrets};
use zeph_tools::shell::env::withheld;

use super::provider::VENDOR_KEYS;
use crate::config::{Environment, Loaded};
use crate::output::{redact, stderr_line};

/// The secrets that the configuration names, with the values of providers' keys and of variables
/// that commands do not see. From now on the program itself does not say them either. Patterns that
/// cannot be used are told of, also where little is to be said: what they should protect is open.
pub(crate) fn keep_out(loaded: &Loaded, env: &Environment) -> Arc<Secrets> {
    let config = &loaded.config;
    let providers = config.llm.providers.iter();
    let names = providers.filter_map(|provider| provider.key_env());
    let keys = names
        .chain(VENDOR_KEYS)
        .filter_map(|name| env.var(name)?.to_str());
    let vars: Vec<_> = env.vars.clone().into_iter().collect();
    let known = KnownValues {
        keys: keys.map(str::to_owned).collect(),
        likely: withheld(&vars, &config.tools.shell.env),
    };
    let (secrets, skipped) = Secrets::new(&config.tools.filters.security, &known);
    let secrets = Arc::new(secrets);
    redact::keep_out(Arc::clone(&secrets));
    for pattern in skipped {
        stderr_line(&format!("warning: {pattern}"));
    }
    secrets
}
