//! `trust` and `untrust` of `zeph commands` and `zeph agents`: the trust in the definitions of a project.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::filter::trust::agrees;
use super::{Exit, print};
use crate::assemble::{DefinitionFolders, FolderPins, FolderTrust};
use crate::config::{Environment, project_directories};
use crate::output::sanitize::visible;
use crate::output::stderr_line;

/// Shows the definitions of the project, each as `text_of` formats it, and trusts them after the user's approval.
///
/// # Errors
/// The project has no definitions; errors of reading and writing.
pub(super) fn trust<T>(
    folders: &DefinitionFolders<T>,
    pins: &FolderPins,
    text_of: fn(&T) -> String,
    yes: bool,
) -> anyhow::Result<Exit> {
    let name = folders.kind.name;
    let Some((folder, read)) = &folders.project else {
        bail!("this project has no folder {}", folders.kind.project_folder);
    };
    if folders.trust == FolderTrust::Trusted {
        print(&format!("the {name} of this project are already trusted"))?;
        return Ok(Exit::Done);
    }
    let texts: Vec<String> = read.items.iter().map(text_of).collect();
    print(&texts.join("\n"))?;
    for refused in &read.refused {
        let file = refused.file.display();
        stderr_line(&visible(&format!("{file} is not used: {}", refused.reason)));
    }
    if !yes && !agrees(&format!("Trust the {name} of this project? y/N"))? {
        stderr_line(&format!("the {name} of this project are not trusted"));
        return Ok(Exit::Refused);
    }
    pins.put(folder, &read.sha256)
        .with_context(|| format!("the trust in these {name} cannot be stored"))?;
    print(&format!(
        "the {name} of this project are trusted until a file of their folder changes"
    ))?;
    Ok(Exit::Done)
}

/// Revokes the trust in the definitions of the project. Their folder may be absent, for example on
/// another branch.
///
/// # Errors
/// Errors of reading and writing.
pub(super) fn untrust<T>(
    folders: &DefinitionFolders<T>,
    pins: &FolderPins,
    env: &Environment,
) -> anyhow::Result<()> {
    let name = folders.kind.name;
    let possible: Vec<PathBuf> = match &folders.project {
        Some((folder, _)) => vec![folder.clone()],
        None => {
            let directories = project_directories(env).0.into_iter();
            directories
                .map(|directory| directory.join(folders.kind.project_folder))
                .collect()
        }
    };
    let mut was_trusted = false;
    for folder in &possible {
        was_trusted |= pins.remove(folder).context("trust could not be revoked")?;
    }
    print(&match was_trusted {
        true => format!("the {name} of this project are no longer trusted"),
        false => format!("no {name} of this project were trusted"),
    })?;
    Ok(())
}

/// Adds a line for each refused file.
pub(super) fn list_refused<T>(folders: &DefinitionFolders<T>, text: &mut String) {
    for refused in folders.refused() {
        let file = refused.file.display();
        let _ = writeln!(text, "{file}: refused: {}", refused.reason);
    }
}
