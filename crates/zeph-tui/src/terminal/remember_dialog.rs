//! The second dialog of a permanent approval: the scope of the rules, and an editor for them.
//!
//! The stored rules are those on the screen when the user presses the key: after each edit all rules are shown again.

use std::os::fd::{AsFd, OwnedFd};

use zeph_tools::Confirmation;
use zeph_tools::gate::{ApprovalProposal, Grant};
use zeph_tools::layers::grants::GrantScope;

use super::burst::{Bursts, Input, read};
use super::keyboard::{Key, Show};
use super::line::{Line, Typed};
use super::screen::{ERASE, columns};
use crate::sanitize::visible;
use crate::view::permission_answers::Answer;
use crate::view::render::grant;

/// The result of the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// The rules to store.
    Chosen(Vec<Grant>, GrantScope),
    /// Return to the question.
    Back,
    /// Another key that answers the question.
    Key(Key),
}

/// Asks for the scope of the rules in `asked`. Keys arrive one by one and without echo.
///
/// # Errors
/// If the terminal cannot be read.
pub(super) fn choose(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    (asked, plain): (&Confirmation, bool),
    show: &impl Fn(Show<'_>),
) -> rustix::io::Result<Choice> {
    let (ApprovalProposal::Grants(offered), Some(project)) =
        (&asked.offer.proposal, &asked.offer.project)
    else {
        return Ok(Choice::Back);
    };
    let mut grants = offered.clone();
    let mut bursts = Bursts::default();
    loop {
        let rules: Vec<String> = grants.iter().map(grant).collect();
        let machines = match &asked.offer.shared_place {
            Some(place) => format!("\n  for all machines that use {}:", visible(place)),
            None => String::new(),
        };
        let text = format!(
            "\n  The permanent rules would be:\n    {}{machines}\n  [p] in this project ({})  [g] everywhere \
              [e] edit  [b] back ",
            rules.join("\n    "),
            visible(&project.display().to_string()),
        );
        show(Show::Text(&text));
        match scope_key(&mut bursts, terminal, stop)? {
            ScopeKey::Project => {
                return Ok(Choice::Chosen(grants, GrantScope::Project(project.clone())));
            }
            ScopeKey::Everywhere => return Ok(Choice::Chosen(grants, GrantScope::Global)),
            ScopeKey::Back => return Ok(Choice::Back),
            ScopeKey::Suspend => show(Show::Suspend),
            ScopeKey::End(key) => return Ok(Choice::Key(key)),
            ScopeKey::Edit => {
                for at in 0..grants.len() {
                    if let Some(key) =
                        edit(terminal, stop, (asked, plain), (&mut grants, at), show)?
                    {
                        return Ok(Choice::Key(key));
                    }
                }
            }
        }
    }
}

enum ScopeKey {
    Project,
    Everywhere,
    Edit,
    Back,
    Suspend,
    End(Key),
}

/// The key that decides about the scope; text and pastes decide nothing.
fn scope_key(
    bursts: &mut Bursts,
    terminal: &impl AsFd,
    stop: &OwnedFd,
) -> rustix::io::Result<ScopeKey> {
    loop {
        let key = match bursts.next(terminal, stop)? {
            Input::End => return Ok(ScopeKey::End(Key::Answer(Answer::No))),
            Input::Interrupt => return Ok(ScopeKey::End(Key::Interrupt)),
            Input::Suspend => return Ok(ScopeKey::Suspend),
            Input::Other | Input::Next | Input::Previous => continue,
            Input::Key(byte) => byte,
        };
        match key {
            b'p' | b'P' => return Ok(ScopeKey::Project),
            b'g' | b'G' => return Ok(ScopeKey::Everywhere),
            b'e' | b'E' => return Ok(ScopeKey::Edit),
            b'b' | b'B' | 0x1b => return Ok(ScopeKey::Back),
            0x04 => return Ok(ScopeKey::End(Key::Answer(Answer::No))),
            _ => {}
        }
    }
}

/// Edits the rule at `at`, and returns the key that ended the edit.
fn edit(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    (asked, plain): (&Confirmation, bool),
    (grants, at): (&mut [Grant], usize),
    show: &impl Fn(Show<'_>),
) -> rustix::io::Result<Option<Key>> {
    let say = |text: &str| show(Show::Text(text));
    let Some(edited) = grants.get_mut(at) else {
        return Ok(None);
    };
    let mut line = Line::of(&edited.pattern);
    let prompt = format!("  {}: ", visible(&edited.tool));
    let hint = "\n  Enter accepts the rule, Esc restores the old one\n";
    say(hint);
    let mut before = None;
    loop {
        let (text, cursor) = line.drawn(columns().saturating_sub(prompt.chars().count()));
        let column = prompt.chars().count() + cursor;
        match plain {
            // Without escape sequences, the line is written again after each change.
            true if before.as_ref() == Some(&text) => {}
            true => say(&format!("\n{prompt}{text}")),
            false => say(&format!("{ERASE}{prompt}{text}\r\x1b[{column}C")),
        }
        before = Some(text);
        let Some(bytes) = read(terminal, stop, None)? else {
            return Ok(Some(Key::Answer(Answer::No)));
        };
        match line.typed(&bytes) {
            Typed::More => {}
            Typed::Back => return Ok(None),
            Typed::Interrupt => return Ok(Some(Key::Interrupt)),
            Typed::Suspend => {
                show(Show::Suspend);
                say(hint);
                before = None;
            }
            Typed::Done => match asked.offer.edited(at, &line.text()) {
                Ok(grant) => {
                    *edited = grant;
                    return Ok(None);
                }
                Err(why) => say(&format!("\n  invalid: {}\n", visible(&why))),
            },
        }
    }
}
