//! Ways to a server, one file a kind.

mod decode;
mod http;
mod in_process;
mod lines;
mod outbox;
mod sse;
mod stdio;
mod web;

use std::time::Duration;

use async_trait::async_trait;

use super::connection::{Connection, Opening};
use super::settings::{Program, Target};
use crate::base::http::ProxyRules;
use crate::base::process::{ChildSpec, Helper, Limits};
use crate::error::{ErrorKind, KernelError, Result};
use in_process::InProcess;
#[cfg(test)]
pub(super) use stdio::Process;
use stdio::Stdio;
pub(super) use stdio::Streams;
pub(super) use web::SESSION_ENDED;

/// Time that a child gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Makes connections to one server.
#[async_trait]
pub(super) trait Dial: Send + Sync {
    async fn dial(&self, opening: Opening) -> Result<Connection>;
}

/// What connections need of this process.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Starts children.
    pub helper: Helper,
    /// Variables that every child gets.
    pub env: Vec<(String, String)>,
    pub proxy: ProxyRules,
}

/// A configured server.
pub(super) struct Configured {
    pub target: Target,
    pub surroundings: Surroundings,
}

#[async_trait]
impl Dial for Configured {
    async fn dial(&self, opening: Opening) -> Result<Connection> {
        match &self.target {
            Target::Stdio(program) => self.start(program, opening).await,
            Target::InProcess(factory) => {
                let link = factory.open().await?;
                let transport =
                    InProcess::new(link, opening.diagnosis.clone(), opening.clock.clone());
                Ok(opening.over(transport))
            }
            Target::Http { url, headers } => {
                let transport = http::connect(url, headers, &self.surroundings.proxy)?;
                Ok(opening.over(transport))
            }
            Target::Sse { url, headers } => {
                let transport = sse::connect(url, headers, &self.surroundings.proxy).await?;
                Ok(opening.over(transport))
            }
        }
    }
}

impl Configured {
    async fn start(&self, program: &Program, opening: Opening) -> Result<Connection> {
        let spec = child(program, &self.surroundings.env);
        let mut child = self.surroundings.helper.start(spec).await?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            let message = "the child has no standard streams";
            return Err(KernelError::new(ErrorKind::Internal, message));
        };
        let streams = Streams {
            stdin,
            stdout,
            stderr,
        };
        let (diagnosis, clock) = (opening.diagnosis.clone(), opening.clock.clone());
        let transport = Stdio::new(streams, Box::new(child), diagnosis, clock);
        Ok(opening.over(transport))
    }
}

/// The child of a stdio server. Nothing of this process's environment reaches it but `base`.
fn child(program: &Program, base: &[(String, String)]) -> ChildSpec {
    let own = |name: &str| program.env.iter().any(|(other, _)| other == name);
    let base = base.iter().filter(|(name, _)| !own(name)).cloned();
    let given = program.env.iter();
    let given = given.map(|(name, value)| (name.clone(), value.expose().to_owned()));
    ChildSpec {
        program: program.command.clone(),
        args: program.args.clone(),
        env: base.chain(given).collect(),
        cwd: program.cwd.clone(),
        limits: Limits::default(),
        grace: GRACE,
    }
}

/// A child with streams that a test holds.
#[cfg(test)]
pub(super) fn stdio_over<R, W, E>(
    opening: Opening,
    streams: Streams<R, W, E>,
    process: Box<dyn Process>,
) -> Connection
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
    E: tokio::io::AsyncRead + Send + Unpin + 'static,
{
    let (diagnosis, clock) = (opening.diagnosis.clone(), opening.clock.clone());
    opening.over(Stdio::new(streams, process, diagnosis, clock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::secret::Secret;

    #[test]
    fn the_environment_of_a_child_is_the_base_and_what_was_configured() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let program = Program {
            command: "server".into(),
            args: vec!["--port".into()],
            env: vec![
                ("PATH".into(), Secret::new("/own")),
                ("TOKEN".into(), Secret::new("t")),
            ],
            cwd: None,
        };
        let spec = child(&program, &[pair("HOME", "/home/me"), pair("PATH", "/bin")]);
        let expected = [
            pair("HOME", "/home/me"),
            pair("PATH", "/own"),
            pair("TOKEN", "t"),
        ];
        assert_eq!(spec.env, expected);
    }
}
