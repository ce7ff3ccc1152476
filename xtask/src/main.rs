//! Maintenance of the workspace; `cargo xtask --help` lists the commands.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a maintainer's tool starts processes, reads its environment and prints"
)]

mod acp_clients;
mod bench;
mod ci;
mod conformance;
mod counterparts;
mod crash;
mod crate_packages;
mod deny;
mod dist;
mod docs;
mod examples;
mod feature_sets;
mod features;
mod flags;
mod fmt;
mod fuzz;
mod lint;
mod live;
mod load;
mod mcp_clients;
mod mcp_servers;
mod packages;
mod postgres;
mod process;
mod project;
mod prose;
mod release_check;
mod semver;
mod shells;
mod specs;
mod test;
mod tidy;
mod wheel;
mod workflows;

use std::process::ExitCode;

use flags::XtaskCmd;
use project::Project;

fn main() -> ExitCode {
    let flags = flags::Xtask::from_env_or_exit();
    match run(flags.subcommand) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: XtaskCmd) -> anyhow::Result<()> {
    let project = Project::locate()?;
    match command {
        XtaskCmd::Ci(_) => ci::run(&project),
        XtaskCmd::Fmt(flags) => fmt::run(&project, flags.check),
        XtaskCmd::Lint(_) => lint::run(&project),
        XtaskCmd::Test(flags) => test::run(&project, flags.filter.as_deref()),
        XtaskCmd::Tidy(flags) => tidy::run(&project, flags.lower_counts),
        XtaskCmd::Specs(flags) => specs::run(&project, flags.verbose),
        XtaskCmd::Deny(_) => deny::run(&project),
        XtaskCmd::Docs(flags) => docs::run(&project, flags.pictures),
        XtaskCmd::Fuzz(flags) => fuzz::run(&project, &flags),
        XtaskCmd::Crash(flags) => crash::run(&project, &flags),
        XtaskCmd::Bench(flags) => bench::run(&project, &flags),
        XtaskCmd::Load(flags) => load::run(&project, &flags),
        XtaskCmd::Live(_) => live::run(&project),
        XtaskCmd::AcpClients(_) => acp_clients::run(&project),
        XtaskCmd::McpClients(_) => mcp_clients::run(&project),
        XtaskCmd::McpServers(_) => mcp_servers::run(&project),
        XtaskCmd::Postgres(_) => postgres::run(&project),
        XtaskCmd::Shells(_) => shells::run(&project),
        XtaskCmd::Conformance(_) => conformance::run(&project),
        XtaskCmd::Dist(flags) if flags.check => dist::check::run(&project),
        XtaskCmd::Dist(flags) => dist::run(&project, &flags),
        XtaskCmd::Prose(_) => prose::run(&project),
        XtaskCmd::Examples(_) => examples::run(&project, features::Features::Default),
        XtaskCmd::Packages(_) => crate_packages::run(&project),
        XtaskCmd::Workflows(_) => workflows::run(&project),
        XtaskCmd::ReleaseCheck(_) => release_check::run(&project),
    }
}
