//! Updates to the JSON text that crosses into JavaScript.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use open_agent_kernel::protocol::{Body, Update};
use open_agent_kernel::render::{RenderOptions, Renderer};

const UPDATES: u64 = 5_000;
/// What crosses at once at most.
const BATCH: usize = 256;

fn updates() -> Vec<Update> {
    let (turn_id, message_id): (Arc<str>, Arc<str>) = ("turn".into(), "msg_1".into());
    let update = |seq| Update {
        turn_id: turn_id.clone(),
        seq,
        parent: None,
        at_ms: 0,
        body: Body::Text {
            message_id: message_id.clone(),
            delta: "twelve chars".into(),
        },
    };
    (0..UPDATES).map(update).collect()
}

fn render(criterion: &mut Criterion) {
    let updates = updates();
    let options = RenderOptions {
        extras: true,
        ..RenderOptions::default()
    };
    let renderer = Renderer::new(options, "session".into());
    let mut group = criterion.benchmark_group("render 5,000 updates");
    group.throughput(Throughput::Elements(UPDATES));
    group.bench_function("batches of 256", |bencher| {
        bencher.iter(|| {
            let batches = black_box(&updates).chunks(BATCH);
            batches
                .map(|batch| renderer.batch(batch).len())
                .sum::<usize>()
        });
    });
    group.finish();
}

criterion_group!(benches, render);
criterion_main!(benches);
