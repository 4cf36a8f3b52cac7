//! The functions of a store.

use crate::agent::config::Fields;
use crate::agent::host::FunctionId;
use crate::error::{KernelError, Result};
use crate::protocol::Json;

/// The functions of the store, each of which takes one argument.
#[derive(Clone, Copy, Debug)]
pub struct Functions {
    pub append: FunctionId,
    pub load: FunctionId,
    pub list: Option<FunctionId>,
    pub summaries: Option<FunctionId>,
    pub delete: Option<FunctionId>,
    pub subkeys: Option<FunctionId>,
    pub register: Option<FunctionId>,
    pub get: Option<FunctionId>,
    pub query_messages: Option<FunctionId>,
    pub delete_messages: Option<FunctionId>,
    /// Whether an append of an entry with a known uuid puts it in the place of the older.
    pub replaces: bool,
}

/// The functions in what the host program prepared.
pub fn read(path: &str, value: &Json) -> Result<Functions> {
    let fields = Fields::of(path, value)?;
    let needed = |name: &'static str| {
        fields.function(name)?.ok_or_else(|| {
            KernelError::invalid(format!(
                "{path} has no method {name}: a session store has append and load, or save and load"
            ))
        })
    };
    let has_save = fields.get("save").is_some();
    let load = || needed("load");
    // A store that has `save` alone is told what it lacks, not what it need not have.
    let (append, load) = if has_save {
        let load = load()?;
        (needed("append")?, load)
    } else {
        (needed("append")?, load()?)
    };
    Ok(Functions {
        append,
        load,
        list: fields.function("listSessions")?,
        summaries: fields.function("listSessionSummaries")?,
        delete: fields.function("delete")?,
        subkeys: fields.function("listSubkeys")?,
        register: fields.function("registerSession")?,
        get: fields.function("getSession")?,
        query_messages: fields.function("querySessionMessages")?,
        delete_messages: fields.function("deleteSessionMessages")?,
        replaces: fields.boolean("replaces")?.unwrap_or(false),
    })
}
