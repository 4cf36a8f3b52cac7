//! Prints the TypeScript types of data that crosses to JavaScript, for `npm run types`.
#![expect(clippy::print_stdout, reason = "printing is what this program is for")]

use open_agent_kernel::agent::{SessionStatus, SessionSummary};
use open_agent_kernel::protocol::{
    AbortCause, CallStatus, Choice, ImageRef, LogLevel, MessagePart, MessageRecord, MessageStatus,
    OpenCall, OpenKind, Phase, Question, RestartReason, ToolKind,
};
use open_agent_kernel::render::{acp, events};
use ts_rs::{Config, TS};

/// One exported declaration, with its documentation.
fn declare<T: TS>(config: &Config) {
    let docs = T::docs().unwrap_or_default();
    println!("{docs}export {}\n", T::decl(config));
}

fn main() {
    let config = Config::default();
    declare::<SessionStatus>(&config);
    declare::<SessionSummary>(&config);
    declare::<Phase>(&config);
    declare::<ToolKind>(&config);
    declare::<LogLevel>(&config);
    declare::<AbortCause>(&config);
    declare::<RestartReason>(&config);
    declare::<OpenKind>(&config);
    declare::<OpenCall>(&config);
    declare::<Choice>(&config);
    declare::<Question>(&config);
    declare::<acp::TextType>(&config);
    declare::<acp::TextBlock<'_>>(&config);
    declare::<acp::Chunk<'_>>(&config);
    declare::<acp::ToolCallStatus>(&config);
    declare::<acp::OakMeta<'_>>(&config);
    declare::<acp::ToolMeta<'_>>(&config);
    declare::<acp::ToolCall<'_>>(&config);
    declare::<acp::ToolFailure>(&config);
    declare::<acp::ContentType>(&config);
    declare::<acp::ToolContent>(&config);
    declare::<acp::ToolCallUpdate<'_>>(&config);
    declare::<acp::OpenOak<'_>>(&config);
    declare::<acp::OpenMeta<'_>>(&config);
    declare::<acp::ToolConfirm<'_>>(&config);
    declare::<acp::PermissionOption>(&config);
    declare::<acp::PendingToolCall<'_>>(&config);
    declare::<acp::RequestPermission<'_>>(&config);
    declare::<acp::AskUser<'_>>(&config);
    declare::<acp::UsageTotals>(&config);
    declare::<acp::UsageUpdate>(&config);
    declare::<acp::Log<'_>>(&config);
    declare::<acp::AgentPhase<'_>>(&config);
    declare::<acp::Element<'_>>(&config);
    declare::<events::IdleReason>(&config);
    declare::<events::Event<'_>>(&config);
    declare::<ImageRef>(&config);
    declare::<CallStatus>(&config);
    declare::<MessagePart>(&config);
    declare::<MessageStatus>(&config);
    declare::<MessageRecord>(&config);
}
