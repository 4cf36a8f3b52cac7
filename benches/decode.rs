//! A long answer from the bytes of the wire to the finished message.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use open_agent_kernel::base::sse::SseDecoder;
use open_agent_kernel::model::gateway::Decoder;
use open_agent_kernel::model::messages::EventDecoder;
use open_agent_kernel::model::{Answer, AnswerBuilder};
use serde_json::{Value, json};

const DELTAS: u64 = 5_000;
/// What one read from the socket brings.
const CHUNK: usize = 16 << 10;

fn wire() -> String {
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "twelve chars"}});
    let mut text = String::new();
    let mut event = |data: &Value| {
        let name = data["type"].as_str().unwrap();
        write!(text, "event: {name}\ndata: {data}\n\n").unwrap();
    };
    event(
        &json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 9, "output_tokens": 1}}}),
    );
    event(
        &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    );
    (0..DELTAS).for_each(|_| event(&delta));
    event(&json!({"type": "content_block_stop", "index": 0}));
    event(
        &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5_000}}),
    );
    event(&json!({"type": "message_stop"}));
    text
}

fn split(wire: &str) -> usize {
    let mut sse = SseDecoder::default();
    let mut bytes = 0;
    for chunk in wire.as_bytes().chunks(CHUNK) {
        sse.push(chunk).unwrap();
        while let Some(data) = sse.next_event() {
            bytes += data.len();
        }
    }
    bytes
}

fn answer(wire: &str) -> Answer {
    let taken = HashSet::new();
    let mut sse = SseDecoder::default();
    let mut decoder = EventDecoder::new(None);
    let mut builder = AnswerBuilder::new(&taken);
    for chunk in wire.as_bytes().chunks(CHUNK) {
        sse.push(chunk).unwrap();
        while let Some(data) = sse.next_event() {
            for event in decoder.decode(&data).unwrap() {
                builder.apply(event).unwrap();
            }
        }
    }
    builder.finish()
}

fn decode(criterion: &mut Criterion) {
    let wire = wire();
    assert_eq!(answer(&wire).usage.output_tokens, DELTAS);
    let mut group = criterion.benchmark_group("decode 5,000 deltas");
    group.throughput(Throughput::Elements(DELTAS));
    group.bench_function("sse split alone", |bencher| {
        bencher.iter(|| split(black_box(&wire)));
    });
    group.bench_function("bytes to answer", |bencher| {
        bencher.iter(|| answer(black_box(&wire)));
    });
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
