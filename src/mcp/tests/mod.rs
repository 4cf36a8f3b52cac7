//! Behaviour of clients against peers that speak the wire, well and badly.

mod calls;
mod faults;
mod in_process;
mod life;
mod peer;
