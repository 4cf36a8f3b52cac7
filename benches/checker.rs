//! What the sandbox checker costs a command.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use open_agent_kernel::sandbox::checker::{CheckerEnv, Platform, SandboxChecker, SandboxSettings};

/// Commands as agents write them: short, piped, long.
const COMMANDS: [(&str, &str); 4] = [
    ("short", "git status --short"),
    (
        "typical",
        "cd packages/core && npm run build 2>&1 | tail -20",
    ),
    (
        "find",
        "find src -name '*.ts' -exec grep -ln 'TODO' {} + | sort | uniq -c > /project/build/todo.txt",
    ),
    (
        "loop",
        "for f in a b c; do if [ -f \"$f\" ]; then echo \"$(wc -l < \"$f\")\"; fi; done",
    ),
];

fn checker(c: &mut Criterion) {
    let env = CheckerEnv {
        cwd: "/project".to_owned(),
        home: "/home/dev".to_owned(),
        platform: Platform::Linux,
        variables: BTreeMap::new(),
    };
    let settings = SandboxSettings {
        allowed_read_paths: vec!["/project".to_owned()],
        allowed_write_paths: vec!["/project".to_owned()],
        denied_commands: ["rm", "sudo", "curl", "git push"]
            .map(str::to_owned)
            .to_vec(),
        ..SandboxSettings::default()
    };
    let checker = SandboxChecker::new(&settings, &env);
    let mut group = c.benchmark_group("checker");
    for (name, command) in COMMANDS {
        assert!(
            checker.check_command(command).is_ok(),
            "{command} is refused"
        );
        group.bench_function(name, |b| {
            b.iter(|| checker.check_command(black_box(command)));
        });
    }
    group.finish();
}

criterion_group!(benches, checker);
criterion_main!(benches);
