//! `tapstone completions`: what a shell needs to complete verbs and options, made from their
//! definitions.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::exit::Exit;
use crate::print::out;

/// Print completions of verbs and options for a shell.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  tapstone completions bash > ~/.local/share/bash-completion/completions/tapstone
  tapstone completions zsh > ~/.zfunc/_tapstone        with fpath+=~/.zfunc before compinit
  tapstone completions fish > ~/.config/fish/completions/tapstone.fish

Exit codes: 0 done.";

pub(crate) fn run_completions(arguments: &Arguments, definitions: Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut for_people(definitions), "tapstone", &mut script);
    out!("{}", String::from_utf8(script)?);
    Ok(Exit::Done)
}

/// Without the verbs that are processes of Tapstone's own: shells would offer them. A command can
/// be added to and not be taken from, so those with verbs are made anew.
fn for_people(command: Command) -> Command {
    if !command.has_subcommands() {
        return command;
    }
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut shown = Command::new(command.get_name().to_owned())
        .disable_help_subcommand(true)
        .args(command.get_arguments())
        .subcommands(verbs.cloned().map(for_people));
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    match command.get_version() {
        Some(version) => shown.version(version.to_owned()),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_see_is_completed_and_nothing_else() {
        let inner = Command::new("inner").arg(clap::Arg::new("depth").long("depth"));
        let door = Command::new("door")
            .subcommands([inner, Command::new("worker").hide(true)])
            .about("at a door");
        let all = Command::new("tapstone")
            .version("1")
            .subcommands([door, Command::new("worker").hide(true)]);
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut script = Vec::new();
            generate(shell, &mut for_people(all.clone()), "tapstone", &mut script);
            let script = String::from_utf8(script).unwrap();
            assert!(script.contains("inner") && script.contains("depth"), "{shell}: {script}");
            assert!(script.contains("version"), "{shell}: {script}");
            assert!(!script.contains("worker"), "{shell}: {script}");
        }
    }
}
