//! What a caller of `getHistory` asks for.

use super::cursor;
use crate::agent::config::Fields;
use crate::error::{KernelError, Result};
use crate::protocol::Json;

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;
/// Largest whole number that JavaScript can say exactly.
const MAX_MS: u64 = 9_007_199_254_740_991;

/// Options of `getHistory`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Most records of the page, at most 1,000; 0, the default, means 100.
    pub limit: usize,
    /// Begins at the newest record that was created before this time, in milliseconds since the epoch.
    /// Only for the first page: with a cursor it has no effect.
    pub before_ms: Option<u64>,
    /// Ends before the newest record that was not created after this time.
    pub after_ms: Option<u64>,
    /// Continues before a record.
    pub cursor: Option<String>,
}

impl HistoryQuery {
    /// Checks the options: `limit`, `before`, `after`, `cursor`. A time of 0 counts as not given.
    pub fn parse(options: &Json) -> Result<Self> {
        let fields = Fields::optional("getHistory options", options)?;
        let limit = fields.integer("limit", 0..=MAX_LIMIT as u64)?;
        let time = |key| -> Result<Option<u64>> {
            let ms = fields.integer(key, 0..=MAX_MS)?;
            Ok(ms.filter(|&ms| ms > 0))
        };
        let (before_ms, after_ms) = (time("before")?, time("after")?);
        let cursor = fields.string("cursor")?;
        cursor.map(cursor::decode).transpose()?;
        if let Some(unknown) = fields.unknown().first() {
            return Err(KernelError::invalid(format!(
                "{unknown} is not an option of getHistory"
            )));
        }
        Ok(Self {
            limit: limit.map_or(0, |limit| usize::try_from(limit).unwrap_or(MAX_LIMIT)),
            before_ms,
            after_ms,
            cursor: cursor.map(str::to_owned),
        })
    }

    /// Most records of the page.
    pub(super) fn limit(&self) -> usize {
        match self.limit {
            0 => DEFAULT_LIMIT,
            limit => limit.min(MAX_LIMIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_values() {
        let none = HistoryQuery::parse(&Json::Null).unwrap();
        assert_eq!(none, HistoryQuery::default());
        assert_eq!(none.limit(), 100);
        let zero = HistoryQuery::parse(&json!({"limit": 0, "before": 0, "cursor": null})).unwrap();
        assert_eq!(zero, none);
        let all = json!({"limit": 7, "before": 9.0, "after": 3, "cursor": "sz"});
        let all = HistoryQuery::parse(&all).unwrap();
        assert_eq!(
            (all.limit(), all.before_ms, all.after_ms),
            (7, Some(9), Some(3))
        );
        assert_eq!(all.cursor.as_deref(), Some("sz"));
    }

    #[test]
    fn refusals_name_the_field() {
        for (options, field) in [
            (json!({"limit": 1_001}), "limit"),
            (json!({"limit": -1}), "limit"),
            (json!({"limit": 1.5}), "limit"),
            (json!({"before": "yesterday"}), "before"),
            (json!({"after": -5}), "after"),
            (json!({"cursor": 5}), "cursor"),
            (json!({"cursor": "nonsense"}), "cursor"),
            (json!({"offset": 5}), "offset"),
        ] {
            let error = HistoryQuery::parse(&options).unwrap_err();
            assert_eq!(error.code(), "E_INVALID_CONFIG");
            let path = format!("getHistory options.{field}");
            assert!(error.message().contains(&path), "{}", error.message());
        }
        assert!(HistoryQuery::parse(&json!([])).is_err());
    }
}
