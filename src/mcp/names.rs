//! The names under which the model sees the tools of servers.
//!
//! A name is `mcp__<server>__<tool>` with what the gateway refuses replaced, and cut to its limit. It
//! is the same whichever servers and tools are there at the moment, as far as that is possible: what
//! has to be told apart gets a hash of its own full name.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::tool::NAME_LENGTH;

/// The names of one server's tools.
#[derive(Clone, Debug)]
pub struct Prefix {
    key: String,
    /// `mcp__<server>__`.
    text: String,
    /// Beginnings of tool names that would read as tools of another server.
    ambiguous: Vec<String>,
}

/// The prefixes of all servers of an agent, in their order.
pub fn prefixes(keys: &[&str]) -> Vec<Prefix> {
    let mut texts: Vec<_> = keys
        .iter()
        .map(|key| {
            let cleaned = clean(key);
            let same = keys.iter().filter(|other| clean(other) == cleaned).count();
            // The one whose key needs no cleaning keeps it.
            if same > 1 && cleaned != **key {
                format!("mcp__{cleaned}_{}__", hash(key))
            } else {
                format!("mcp__{cleaned}__")
            }
        })
        .collect();
    let all = texts.clone();
    keys.iter()
        .zip(texts.drain(..))
        .map(|(key, text)| Prefix {
            key: (*key).to_owned(),
            ambiguous: all
                .iter()
                .filter(|other| **other != text)
                .filter_map(|other| other.strip_prefix(&text).map(str::to_owned))
                .collect(),
            text,
        })
        .collect()
}

impl Prefix {
    /// The names of tools, in their order; no two are equal.
    pub fn names(&self, tools: &[&str]) -> Vec<String> {
        let cleaned: Vec<_> = tools.iter().map(|tool| clean(tool)).collect();
        let mut seen = HashSet::new();
        let shared: HashSet<_> = cleaned.iter().filter(|name| !seen.insert(*name)).collect();
        tools
            .iter()
            .zip(&cleaned)
            .map(|(tool, cleaned)| {
                let is_shared = shared.contains(cleaned) && cleaned != tool;
                let is_ambiguous = self
                    .ambiguous
                    .iter()
                    .any(|other| cleaned.starts_with(other));
                self.name(tool, cleaned, is_shared || is_ambiguous)
            })
            .collect()
    }

    fn name(&self, tool: &str, cleaned: &str, needs_hash: bool) -> String {
        let name = format!("{}{cleaned}", self.text);
        if name.len() <= NAME_LENGTH && !needs_hash {
            return name;
        }
        let hash = hash(&format!("{}\0{tool}", self.key));
        // What was cleaned is ASCII: any byte is a place to cut.
        let kept = name.len().min(NAME_LENGTH - hash.len() - 1);
        format!("{}_{hash}", &name[..kept])
    }
}

fn clean(name: &str) -> String {
    let accepted = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars()
        .map(|c| if accepted(c) { c } else { '_' })
        .collect()
}

fn hash(text: &str) -> String {
    let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(text.as_bytes()));
    format!("{:08x}", u32::from_be_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::is_valid_name;

    fn names(key: &str, tools: &[&str]) -> Vec<String> {
        prefixes(&[key])[0].names(tools)
    }

    #[test]
    fn fc_f7_names_that_the_gateway_refuses_are_mapped() {
        let long = "x".repeat(200);
        let longer = "x".repeat(201);
        let all = names("files", &["a.b", "Créer fichier", &long, &longer, "plain"]);
        assert_eq!(all[0], "mcp__files__a_b");
        assert_eq!(all[1], "mcp__files__Cr_er_fichier");
        assert!(all[2].len() == NAME_LENGTH && all[2].starts_with("mcp__files__xxxx"));
        assert_ne!(all[2], all[3]);
        assert_eq!(all[4], "mcp__files__plain");
        assert!(all.iter().all(|name| is_valid_name(name)), "{all:?}");
    }

    #[test]
    fn fc_f7_tools_that_collide_after_cleaning_are_told_apart() {
        let all = names("s", &["a.b", "a_b", "a b"]);
        assert_eq!(all[1], "mcp__s__a_b");
        assert!(all[0].starts_with("mcp__s__a_b_") && all[2].starts_with("mcp__s__a_b_"));
        assert_ne!(all[0], all[2]);
        // In another order, each has the name that it had.
        let turned = names("s", &["a b", "a_b", "a.b"]);
        assert_eq!(turned, [&*all[2], &*all[1], &*all[0]]);
    }

    #[test]
    fn fc_f7_two_servers_with_one_tool_have_two_names() {
        let both = prefixes(&["weather", "wea.ther", "wea_ther", "天气"]);
        let all: HashSet<_> = both
            .iter()
            .flat_map(|prefix| prefix.names(&["get"]))
            .collect();
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(all.contains("mcp__weather__get") && all.contains("mcp__wea_ther__get"));
        assert!(all.iter().all(|name| is_valid_name(name)), "{all:?}");
    }

    #[test]
    fn fc_f7_a_server_does_not_take_the_names_of_another() {
        let both = prefixes(&["a", "a__b"]);
        let (first, second) = (both[0].names(&["b__c", "c"]), both[1].names(&["c"]));
        assert_eq!(second, ["mcp__a__b__c"]);
        assert_eq!(first[1], "mcp__a__c");
        assert!(first[0].starts_with("mcp__a__b__c_"));
    }

    #[test]
    fn a_long_key_leaves_room_for_the_hash() {
        let key = "k".repeat(300);
        let all = names(&key, &["one", "two"]);
        assert_ne!(all[0], all[1]);
        assert!(all.iter().all(|name| is_valid_name(name)), "{all:?}");
    }
}
