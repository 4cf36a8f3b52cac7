//! Processes: which one this is, and children of it.
//!
//! Every child of the kernel is started here, through `oak-helper`, so that nothing of it is left when
//! it, its user or this process ends.

mod child;
mod helper;
mod identity;

pub use child::{Child, ChildSpec, ExitStatus, Limits};
pub use helper::Helper;
pub use identity::ProcessId;
