//! The request of a long conversation: from the transcript to the bytes of the body.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use open_agent_kernel::base::clock::{SharedClock, SystemClock};
use open_agent_kernel::engine::{EngineConfig, Offer, RunLimits, Transcript, build_request};
use open_agent_kernel::model::messages::body;
use open_agent_kernel::model::{Answer, Model, ModelRequest, ModelStream, RequestSettings};
use open_agent_kernel::protocol::ContentBlock;
use serde_json::json;

/// Rounds of prompt, call, result and answer: four entries each.
const ROUNDS: usize = 500;
const ENTRIES: u64 = 2_000;
const MAX_TOKENS: u32 = 4_096;

struct NoModel;

impl Model for NoModel {
    fn stream(&self, _: Arc<ModelRequest>) -> ModelStream {
        Box::pin(futures_util::stream::empty())
    }
}

fn config(clock: SharedClock) -> EngineConfig {
    EngineConfig {
        model: Arc::new(NoModel),
        settings: RequestSettings {
            model: "m".into(),
            max_tokens: MAX_TOKENS,
            cache_marks: true,
            ..RequestSettings::default()
        },
        system: Some("You are helpful.".into()),
        context_window: 200_000,
        stream_text: true,
        tell_whole_texts: false,
        tool_timeout: std::time::Duration::ZERO,
        tell_all: false,
        limits: RunLimits::default(),
        tool_concurrency: 1,
        tool_result_limit: 100_000,
        clock,
    }
}

fn message(id: String, block: ContentBlock) -> Answer {
    Answer {
        id,
        model: "m".into(),
        blocks: vec![block],
        ..Answer::default()
    }
}

fn transcript(clock: SharedClock) -> Transcript {
    let mut transcript = Transcript::new("conversation".into(), clock);
    let text = "a sentence of the conversation ".repeat(8);
    for round in 0..ROUNDS {
        transcript.append_prompt(&text);
        let call = ContentBlock::ToolUse {
            id: format!("toolu_{round}"),
            name: "search".into(),
            input: json!({"query": "weather in Beijing", "limit": 10}),
        };
        for call in transcript.append_answer(message(format!("msg_{round}_call"), call)) {
            let result = ContentBlock::result_text(&call.id, text.as_str(), false);
            transcript.append_result(&call, result, None);
        }
        let spoken = ContentBlock::text(text.as_str());
        transcript.append_answer(message(format!("msg_{round}_text"), spoken));
    }
    transcript.append_prompt("and now?");
    transcript
}

fn request(criterion: &mut Criterion) {
    let clock: SharedClock = Arc::new(SystemClock);
    let (config, offer) = (config(clock.clone()), Offer::default());
    let transcript = transcript(clock);
    let (built, repairs) = build_request(&config, &transcript, &offer);
    assert!(repairs.is_empty() && transcript.entries().len() > 2_000);
    let mut group = criterion.benchmark_group("request of 2,000 entries");
    group.throughput(Throughput::Elements(ENTRIES));
    group.bench_function("build and repair", |bencher| {
        bencher.iter(|| build_request(&config, black_box(&transcript), &offer));
    });
    group.bench_function("body", |bencher| {
        bencher.iter(|| body(black_box(&built), MAX_TOKENS).unwrap());
    });
    group.finish();
}

criterion_group!(benches, request);
criterion_main!(benches);
