//! Session stores: appending, loading, and a page of history in short and long sessions.
//!
//! Every driver that this build has; one that is not built is left out.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use open_agent_kernel::agent::history::{HistoryQuery, history};
use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::error::{ErrorKind, Result};
use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{
    Durability, SessionKey, SharedSessionStore, StoreSpec, open,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Entries of one append.
const BATCH: usize = 20;
/// Entries of one append while a session is filled.
const FILL_BATCH: usize = 1_000;
const LOADED: usize = 10_000;
const PAGE: usize = 50;
const SESSIONS: [usize; 2] = [1_000, 100_000];

/// A driver of this build.
struct Driver {
    name: &'static str,
    store: SharedSessionStore,
}

/// A description for every driver that needs no server.
fn specs(folder: &Path) -> Vec<(&'static str, StoreSpec)> {
    let file = |name: &'static str, durability| {
        let root = folder.join(name);
        (name, StoreSpec::File { root, durability })
    };
    let sqlite = |name: &'static str, durability| {
        let spec = StoreSpec::Sqlite {
            path: folder.join(name).with_extension("db"),
            prefix: "oak_".to_owned(),
            durability,
        };
        (name, spec)
    };
    vec![
        ("memory", StoreSpec::Memory),
        file("file", Durability::Process),
        file("file-fsync", Durability::Fsync),
        sqlite("sqlite", Durability::Process),
        sqlite("sqlite-fsync", Durability::Fsync),
    ]
}

fn drivers(runtime: &Runtime, folder: &Path) -> Vec<Driver> {
    let (key, probe) = (SessionKey::main("bench", "probe"), entries(1));
    let specs = specs(folder).into_iter();
    let drivers = specs.filter_map(|(name, spec)| {
        let store = built(open(&spec, Arc::new(SystemClock)))?;
        built(runtime.block_on(store.append(&key, &probe, None)))?;
        Some(Driver { name, store })
    });
    drivers.collect()
}

/// The value, unless the driver does not exist in this build.
fn built<T>(result: Result<T>) -> Option<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotImplemented => None,
        result => Some(result.unwrap()),
    }
}

/// Entries of turns: a prompt, a call, its result, an answer. No two calls give the same ones.
fn entries(count: usize) -> Vec<StoredEntry> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let first = NEXT.fetch_add(count as u64, Ordering::Relaxed);
    let numbers = (first..).take(count);
    let texts = numbers.map(|n| entry(n).to_string());
    texts
        .map(|text| StoredEntry::parse(text).unwrap())
        .collect()
}

fn entry(n: u64) -> Value {
    let text = "a sentence of the conversation ".repeat(8);
    let call = format!("toolu_{}", n / 4);
    let (role, content) = match n % 4 {
        0 => ("user", json!(text)),
        1 => (
            "assistant",
            json!([{"type": "tool_use", "id": call, "name": "search",
            "input": {"query": "weather in Beijing", "limit": 10}}]),
        ),
        2 => (
            "user",
            json!([{"type": "tool_result", "tool_use_id": call, "content": text}]),
        ),
        _ => ("assistant", json!([{"type": "text", "text": text}])),
    };
    let mut message = json!({"role": role, "content": content});
    if role == "assistant" {
        message["id"] = json!(format!("msg_{n}"));
    }
    json!({
        "type": role, "uuid": format!("00000000-0000-4000-8000-{n:012}"), "parentUuid": null,
        "isSidechain": false, "timestamp": "2026-01-02T03:04:05.678Z", "message": message,
    })
}

async fn fill(driver: &Driver, key: &SessionKey, count: usize) {
    for _ in 0..count.div_ceil(FILL_BATCH) {
        let entries = entries(FILL_BATCH.min(count));
        driver.store.append(key, &entries, None).await.unwrap();
    }
}

fn append(criterion: &mut Criterion, runtime: &Runtime, drivers: &[Driver]) {
    let mut group = criterion.benchmark_group("append of 20 entries");
    group.throughput(Throughput::Elements(BATCH as u64));
    let key = SessionKey::main("bench", "append");
    for Driver { name, store } in drivers {
        group.bench_function(*name, |bencher| {
            bencher.iter_batched(
                || entries(BATCH),
                |entries| {
                    runtime
                        .block_on(store.append(&key, &entries, None))
                        .unwrap()
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn load(criterion: &mut Criterion, runtime: &Runtime, drivers: &[Driver]) {
    let mut group = criterion.benchmark_group("load of 10,000 entries");
    group
        .throughput(Throughput::Elements(LOADED as u64))
        .sample_size(20);
    let key = SessionKey::main("bench", "load");
    for driver in drivers {
        runtime.block_on(fill(driver, &key, LOADED));
        group.bench_function(driver.name, |bencher| {
            bencher.iter(|| {
                let loaded = runtime.block_on(driver.store.load(&key, None)).unwrap();
                assert_eq!(black_box(loaded).unwrap().entries.len(), LOADED);
            });
        });
    }
    group.finish();
}

fn page(criterion: &mut Criterion, runtime: &Runtime, drivers: &[Driver]) {
    let mut group = criterion.benchmark_group("history page of 50");
    let query = HistoryQuery {
        limit: PAGE,
        ..HistoryQuery::default()
    };
    for driver in drivers {
        for messages in SESSIONS {
            let key = SessionKey::main("bench", &format!("history-{messages}"));
            runtime.block_on(fill(driver, &key, messages));
            let store = driver.store.as_ref();
            group.bench_function(BenchmarkId::new(driver.name, messages), |bencher| {
                bencher.iter(|| {
                    let page = runtime.block_on(history(store, &key, &query, &[])).unwrap();
                    assert_eq!(black_box(page).records.len(), PAGE);
                });
            });
        }
    }
    group.finish();
}

fn stores(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let drivers = drivers(&runtime, folder.path());
    append(criterion, &runtime, &drivers);
    load(criterion, &runtime, &drivers);
    page(criterion, &runtime, &drivers);
}

criterion_group!(benches, stores);
criterion_main!(benches);
