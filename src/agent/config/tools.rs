//! `config.tools`.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::host::Host;
use crate::agent::host_tool::HostTool;
use crate::error::{KernelError, Result};
use crate::protocol::{Json, ToolKind};
use crate::tool::{
    AskUser, Origin, SchemaCheck, Tool, ToolSet, ToolSpec, describes_object, is_valid_name,
};

use super::Fields;
use super::fields::pure_json;

const MAX_TOOLS: usize = 1_000;
const MAX_TIMEOUT_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// The tools of an agent. `asks`: whether the model may ask the user.
pub fn check(config: &Fields<'_>, asks: bool, host: &Arc<dyn Host>) -> Result<ToolSet> {
    let mut built_in: Vec<Arc<dyn Tool>> = Vec::new();
    if asks {
        built_in.push(Arc::new(AskUser::new()?));
    }
    let Some(list) = config.array("tools")? else {
        return ToolSet::new(built_in);
    };
    if list.len() > MAX_TOOLS {
        return Err(KernelError::invalid(format!(
            "config.tools has {} elements; at most {MAX_TOOLS} tools are supported",
            list.len()
        )));
    }
    let tools = list
        .iter()
        .enumerate()
        .map(|(at, value)| tool(config, at, value, host));
    let tools = tools.chain(built_in.into_iter().map(Ok));
    ToolSet::new(tools.collect::<Result<_>>()?)
}

/// Whether the model may ask the user, and whether it is told so beside the tool.
pub fn ask_user(config: &Fields<'_>) -> Result<(bool, bool)> {
    match config.get("askUser") {
        None | Some(Json::Bool(false)) => Ok((false, false)),
        Some(Json::Bool(true)) => Ok((true, true)),
        Some(Json::Object(_)) => {
            let hint = match config.object("askUser")? {
                Some(fields) => fields.boolean("hint")?,
                None => None,
            };
            Ok((true, hint.unwrap_or(true)))
        }
        Some(_) => Err(config.wrong("askUser", "true, false or {hint}")),
    }
}

fn tool<'a>(
    config: &Fields<'a>,
    at: usize,
    value: &'a Json,
    host: &Arc<dyn Host>,
) -> Result<Arc<dyn Tool>> {
    let source = format!("config.tools[{at}]");
    let fields = config.element(source.clone(), value)?;
    let name = name(&fields)?;
    let named = |error: KernelError| error.within(format!("tool \"{name}\""));
    let execute = fields.function("execute").map_err(named)?;
    let is_client_side = fields.boolean("clientSide").map_err(named)?;
    if execute.is_none() && is_client_side == Some(false) {
        let message = "clientSide is false, so that execute must be a function";
        return Err(named(KernelError::invalid(format!("{source}: {message}"))));
    }
    let execute = execute.filter(|_| is_client_side != Some(true));
    fields.boolean("needsApproval").map_err(named)?;
    fields
        .not_built("needsApproval", |value| value == &Json::Bool(false))
        .map_err(named)?;
    let own_check = fields.function("checkInput").map_err(named)?;
    let (schema, check) = schema(&fields, own_check.is_some()).map_err(named)?;
    let own_timeout = fields
        .integer("timeoutMs", 0..=MAX_TIMEOUT_MS)
        .map_err(named)?;
    let spec = ToolSpec {
        name: name.into(),
        description: fields
            .string("description")
            .map_err(named)?
            .unwrap_or_default()
            .to_owned(),
        schema,
        origin: match execute {
            Some(_) => Origin::Custom,
            None => Origin::Client,
        },
        kind: ToolKind::Other,
        read_only: fields.boolean("readOnly").map_err(named)?.unwrap_or(false),
        idempotent: fields
            .boolean("idempotent")
            .map_err(named)?
            .unwrap_or(false),
        timeout: own_timeout.map(Duration::from_millis),
        check,
        source,
    };
    Ok(Arc::new(HostTool {
        spec,
        execute,
        check: own_check,
        host: host.clone(),
    }))
}

fn name<'a>(fields: &Fields<'a>) -> Result<&'a str> {
    let name = fields
        .text("name")?
        .ok_or_else(|| fields.wrong("name", "a non-empty string"))?;
    if !is_valid_name(name) {
        return Err(KernelError::invalid(format!(
            "{} \"{}\" is not a tool name: use 1 to 64 letters, digits, _ and -",
            fields.path("name"),
            crate::base::text::excerpt(name, 80)
        )));
    }
    if name.starts_with("mcp__") {
        return Err(KernelError::invalid(format!(
            "{} \"{name}\" begins with mcp__, which is kept for tools of MCP servers",
            fields.path("name")
        )));
    }
    Ok(name)
}

/// The schema for the model, and the check unless the tool checks its input itself.
fn schema(fields: &Fields<'_>, checks_itself: bool) -> Result<(Json, Option<SchemaCheck>)> {
    let Some(schema) = fields.get("parameters") else {
        return Err(fields.wrong("parameters", "a zod schema or a JSON Schema of type object"));
    };
    pure_json(&fields.path("parameters"), schema)?;
    let path = fields.path("parameters");
    // Such a schema is written for the model: a library may use what no other validator knows.
    let check = if checks_itself {
        describes_object(schema, &path)?;
        None
    } else {
        Some(SchemaCheck::compile(schema, &path)?)
    };
    let mut schema = schema.clone();
    if let Some(map) = schema.as_object_mut() {
        // The Messages API wants the type spelled out.
        map.entry("type").or_insert_with(|| "object".into());
    }
    Ok((schema, check))
}
