//! One size limit for the output of every kind of tool.

use crate::base::text::{Cut, keep_ends};
use crate::protocol::ContentBlock;

use super::ToolOutput;

/// Cuts the texts of an output so that together they have at most `limit` characters, the first and
/// the last half of each cut text kept. The uncut output is not kept anywhere. What was cut before
/// stays as it is.
pub fn fit(mut output: ToolOutput, limit: usize) -> ToolOutput {
    if output.cut.is_some() {
        return output;
    }
    let mut left = limit;
    let mut total: Option<Cut> = None;
    for block in &mut output.blocks {
        let ContentBlock::Text { text, .. } = block else {
            continue;
        };
        match keep_ends(text, left) {
            Some((short, cut)) => {
                *text = short;
                left = 0;
                let before = total.unwrap_or(Cut {
                    original: 0,
                    removed: 0,
                });
                total = Some(Cut {
                    original: before.original + cut.original,
                    removed: before.removed + cut.removed,
                });
            }
            None => left = left.saturating_sub(text.chars().count()),
        }
    }
    if total.is_some() {
        // The stream is bounded as well: it shows what the model reads.
        output.structured = None;
    }
    output.cut = total;
    output
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cut_output_is_not_cut_again() {
        let once = fit(ToolOutput::text("x".repeat(500)), 100);
        assert_eq!(fit(once.clone(), 100), once);
    }

    #[test]
    fn an_output_within_the_limit_is_untouched() {
        let output = ToolOutput::value(json!({"a": 1}));
        assert_eq!(fit(output.clone(), 100), output);
    }

    #[test]
    fn a_large_output_keeps_its_ends_and_tells_its_size() {
        let output = fit(ToolOutput::value(json!(["x".repeat(5_000_000)])), 1_000);
        assert_eq!(output.cut.unwrap().original, 5_000_004);
        let text = output.to_json();
        let text = text.as_str().unwrap();
        assert!(text.starts_with("[\"xxx") && text.ends_with("xxx\"]"));
        assert!(text.contains("of 5000004 characters"));
        assert!(text.len() < 1_100);
    }

    #[test]
    fn the_limit_holds_over_all_blocks_together() {
        let mut output = ToolOutput::text("a".repeat(80));
        output.blocks.push(ContentBlock::text("b".repeat(80)));
        let cut = fit(output, 100).cut.unwrap();
        assert_eq!(cut.removed, 60);
    }
}
