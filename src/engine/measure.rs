//! Spans and metrics of requests and tool calls, under the names of the OpenTelemetry GenAI
//! conventions.

use std::time::Duration;

use serde_json::json;

use crate::base::telemetry::{Metric, OpenSpan, SpanKind, Trace};
use crate::model::{Answer, RequestSettings};
use crate::protocol::{Json, JsonMap, Usage};

/// A model request under way.
pub struct RequestMeasure {
    span: OpenSpan,
    model: String,
}

impl RequestMeasure {
    pub fn start(trace: &Trace, settings: &RequestSettings) -> Self {
        let mut span = trace.span(|| format!("chat {}", settings.model), SpanKind::Client);
        span.set("gen_ai.operation.name", || "chat");
        span.set("gen_ai.request.model", || settings.model.clone());
        span.set("gen_ai.request.max_tokens", || settings.max_tokens);
        Self {
            span,
            model: settings.model.clone(),
        }
    }

    /// The request was answered.
    pub fn answered(mut self, trace: &Trace, answer: &Answer, took: Duration) {
        self.span.set("gen_ai.response.id", || answer.id.clone());
        self.span
            .set("gen_ai.response.model", || answer.model.clone());
        self.span.set("gen_ai.response.finish_reasons", || {
            json!([answer.stop_reason])
        });
        set_usage(&mut self.span, &answer.usage);
        let tokens = [
            (
                "input",
                answer.usage.context_tokens() - answer.usage.output_tokens,
            ),
            ("output", answer.usage.output_tokens),
        ];
        for (kind, count) in tokens {
            trace.metric(|| Metric {
                name: "gen_ai.client.token.usage",
                value: count as f64,
                unit: "{token}",
                attributes: attributes(&self.model, [("gen_ai.token.type", json!(kind))]),
            });
        }
        duration(trace, took, attributes(&self.model, []));
    }

    /// The request failed for good.
    pub fn failed(mut self, trace: &Trace, code: &str, took: Duration) {
        self.span.fail(code);
        let error = ("error.type", json!(code));
        duration(trace, took, attributes(&self.model, [error]));
    }
}

fn duration(trace: &Trace, took: Duration, attributes: JsonMap) {
    trace.metric(|| Metric {
        name: "gen_ai.client.operation.duration",
        value: took.as_secs_f64(),
        unit: "s",
        attributes,
    });
}

/// The first visible piece of an answer came.
pub fn first_piece(trace: &Trace, model: &str, after: Duration) {
    trace.metric(|| Metric {
        name: "gen_ai.server.time_to_first_token",
        value: after.as_secs_f64(),
        unit: "s",
        attributes: attributes(model, []),
    });
}

/// A tool call under way.
pub struct ToolMeasure {
    span: OpenSpan,
    name: String,
}

impl ToolMeasure {
    pub fn start(trace: &Trace, name: &str, call_id: &str) -> Self {
        let mut span = trace.span(|| format!("execute_tool {name}"), SpanKind::Internal);
        span.set("gen_ai.operation.name", || "execute_tool");
        span.set("gen_ai.tool.name", || name);
        span.set("gen_ai.tool.call.id", || call_id);
        span.set("gen_ai.tool.type", || "function");
        Self {
            span,
            name: name.to_owned(),
        }
    }

    pub fn ended(mut self, trace: &Trace, is_error: bool, took: Duration) {
        if is_error {
            self.span.fail("tool_error");
        }
        trace.metric(|| Metric {
            name: "oak.tool.duration",
            value: took.as_secs_f64(),
            unit: "s",
            attributes: JsonMap::from_iter([
                ("gen_ai.tool.name".to_owned(), json!(self.name)),
                ("error".to_owned(), json!(is_error)),
            ]),
        });
    }
}

/// Token counts of a request or a run.
pub fn set_usage(span: &mut OpenSpan, usage: &Usage) {
    span.set("gen_ai.usage.input_tokens", || {
        usage.context_tokens() - usage.output_tokens
    });
    span.set("gen_ai.usage.output_tokens", || usage.output_tokens);
    span.set("gen_ai.usage.cache_read.input_tokens", || {
        usage.cache_read_input_tokens
    });
    span.set("gen_ai.usage.cache_creation.input_tokens", || {
        usage.cache_creation_input_tokens
    });
}

fn attributes<const N: usize>(model: &str, more: [(&str, Json); N]) -> JsonMap {
    let operation = ("gen_ai.operation.name".to_owned(), json!("chat"));
    let model = ("gen_ai.request.model".to_owned(), json!(model));
    let more = more
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    [operation, model].into_iter().chain(more).collect()
}
