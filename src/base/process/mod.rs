//! Processes: which one this is, and children of it.
//!
//! Every child of the kernel is started here, through `oak-helper`, so that nothing of it is left when
//! it, its user or this process ends. The kernel knows the helper by a socket alone: orders and the
//! child's streams go there, reports come back, and its end is the end of the other side. So there is
//! no handler of SIGCHLD, which belongs to Node.js, and nothing is read from arguments or environment.

mod child;
mod helper;
mod identity;
mod link;
mod reaper;
mod start;
mod tree;
mod watch;
mod wire;

pub use child::{Child, ChildSpec};
pub use helper::Helper;
pub use identity::ProcessId;
pub use wire::{ExitStatus, Limits};
