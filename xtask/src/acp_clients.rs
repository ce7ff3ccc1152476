//! `cargo xtask acp-clients`: clients of the Agent Client Protocol against `zeph acp` on this machine.
//!
//! They are the official TypeScript library, acpx and the official Python library. All steps have deadlines.

use std::process::Command;

use anyhow::{Result, anyhow, ensure};

use crate::counterparts::{Counterparts, Place};
use crate::project::Project;

pub(crate) fn run(project: &Project) -> Result<()> {
    let installed = Counterparts::install(project)?;
    let acpx = installed.modules.join("acpx/dist/cli.js");
    let clients: [(&str, Command, Vec<_>); 3] = [
        (
            "the TypeScript library",
            installed.node("acp_clients/typescript_client.mjs"),
            vec![&installed.modules],
        ),
        (
            "acpx",
            installed.python("acp_clients/acpx_client.py"),
            vec![&installed.node, &acpx],
        ),
        (
            "the Python library",
            installed.python("acp_clients/python_client.py"),
            Vec::new(),
        ),
    ];
    let mut failed = Vec::new();
    // They wait most of the time.
    std::thread::scope(|scope| {
        let running = clients.map(|(name, mut command, args)| {
            let installed = &installed;
            scope.spawn(move || {
                let place = Place::new(installed)?;
                command.arg(&installed.zeph).arg(place.root()).args(args);
                place.run(name, command)
            })
        });
        for client in running {
            let ended = client.join();
            match ended.unwrap_or_else(|_| Err(anyhow!("a thread panicked"))) {
                Ok(text) => println!("{text}"),
                Err(error) => failed.push(format!("{error:#}")),
            }
        }
    });
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}
