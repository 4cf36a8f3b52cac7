//! Short ways to ask the checker.

use std::collections::BTreeMap;

use open_agent_kernel::sandbox::checker::{
    CheckerEnv, Denial, Platform, SandboxChecker, SandboxSettings,
};
use serde_json::{Value as Json, json};

/// The surroundings of the table of cases.
pub fn surroundings() -> CheckerEnv {
    CheckerEnv {
        cwd: "/project".to_owned(),
        home: "/home/dev".to_owned(),
        platform: Platform::Linux,
        variables: BTreeMap::from([
            ("HOME".to_owned(), "/home/dev".to_owned()),
            ("PWD".to_owned(), "/project".to_owned()),
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ]),
    }
}

pub fn settings(json: &Json) -> SandboxSettings {
    SandboxSettings::from_json(json).unwrap()
}

/// Judges a command with the given commands denied.
pub fn denying(names: &[&str], command: &str) -> Result<(), Denial> {
    let settings = settings(&json!({ "deniedCommands": names }));
    SandboxChecker::new(&settings, &surroundings()).check_command(command)
}
