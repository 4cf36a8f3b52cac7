//! Text that is meant to hurt the checker: deep, long, broken. The answer comes soon, it is a
//! refusal, and nothing panics or overflows the stack.

use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::support::denying;

/// Far above what the worst text needs, far below what a loop without bound would take.
const SOON: Duration = Duration::from_secs(5);
/// As small as the stacks of test threads are: what fits here fits on any thread.
const STACK: usize = 2 * 1024 * 1024;

/// The verdict, from a thread with a small stack.
fn judge(command: String) -> (bool, Duration) {
    let thread = std::thread::Builder::new().stack_size(STACK);
    let judged = thread.spawn(move || {
        let started = Instant::now();
        (denying(&["rm"], &command).is_ok(), started.elapsed())
    });
    judged.unwrap().join().unwrap()
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}true{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn deep_long_and_broken_text_is_refused_soon() {
    let forms = [
        ("$(", ")"),
        ("echo $(echo ", ")"),
        ("echo \"$(echo ", ")\""),
        ("echo \"${a:-", "}\""),
        ("echo ${a:-${a/", "}}"),
        ("echo $((", "))"),
        ("echo $[", "]"),
        ("( ", " )"),
        ("((", "))"),
        ("{ ", "; }"),
        ("if ", "; then :; fi"),
        ("if true; then ", "; fi"),
        ("while ", "; do :; done"),
        ("for i in a; do ", "; done"),
        ("case a in a) ", ";; esac"),
        ("case a in a) ", " esac"),
        ("f() { ", "; }"),
        ("function f { ", "; }"),
        ("cat <(", ")"),
        ("eval '", "'"),
        ("bash -c \"", "\""),
        ("[[ ( ", " ) ]]"),
        ("! ", ""),
        ("time ", ""),
        ("coproc ", ""),
        ("env ", ""),
        ("sudo -u x ", ""),
        ("nice xargs ", ""),
        ("git -c alias.a=! ", ""),
        ("cat <<A\n$(", ")\nA\n"),
        ("a=( ", " )"),
        ("a[", "]=1"),
        ("echo {a,", "}"),
        ("echo {{", "}}"),
        ("echo `", "`"),
        ("\\", ""),
        ("'", ""),
        ("\"", ""),
        ("<<A ", ""),
        ("> ", ""),
        ("$((a[", "]))"),
        ("${a[", "]}"),
        ("echo \"$(cat <<'E'\n((", "\nE\n)\""),
    ];
    for (open, close) in forms {
        for depth in [20, 70, 200, 1_500, 16_000] {
            for text in [nested(open, close, depth), open.repeat(depth)] {
                let length = text.len();
                let (_, took) = judge(format!("{text}; rm x"));
                assert!(
                    took < SOON,
                    "{open:?} x {depth} ({length} bytes) took {took:?}"
                );
            }
        }
        for text in [nested(open, close, 2_000), open.repeat(2_000)] {
            let (allowed, _) = judge(format!("{text}; rm x"));
            assert!(!allowed, "{open:?} x 2000 is allowed");
        }
    }
}

#[test]
fn a_megabyte_is_refused_soon() {
    for text in [
        "a", "a b ", "echo x; ", "$(", "'", "\"$x\" ", "\n", "{a,b}", "é", "\0",
    ] {
        let command = text.repeat(1024 * 1024 / text.len());
        let (allowed, took) = judge(command);
        assert!(!allowed, "{text:?} is allowed");
        assert!(took < Duration::from_millis(500), "{text:?} took {took:?}");
    }
}

#[test]
fn as_much_as_is_read_is_read_soon() {
    let units = [
        "echo x; ",
        "echo \"$x\" 'y' | ",
        "a=1 ",
        "echo {1..9} ",
        "# c\n",
        "x[1]=2 ",
        "echo $((1+2)) ",
        "cat <<A\nb\nA\n",
        "echo ${x:-(} ",
        "echo $(date) ",
        "echo \"$(cat <<'E'\n((((((((((\nE\n)\" ",
        "echo ${a/(((((((/b} ",
        "echo $(((((((((( ",
        "git -c a.b=c log; ",
    ];
    for unit in units {
        let (_, took) = judge(unit.repeat(32_000 / unit.len()));
        assert!(took < SOON, "{unit:?} took {took:?}");
    }
}

#[test]
fn numbers_without_end_are_refused() {
    let digits = "9".repeat(30);
    for command in [
        format!("ls ~{digits}"),
        format!("ls ~+{digits}"),
        format!("ls ~-{digits}"),
        format!("echo {{1..{digits}}}"),
        format!("echo {{{digits}..1}}"),
        format!("echo {{1..2..{digits}}}"),
        format!("echo ${{{digits}}}"),
        format!("echo {digits}>x"),
        "echo 99999\\\n999999999<x".to_owned(),
    ] {
        let (allowed, _) = judge(command.clone());
        assert!(!allowed, "{command}");
    }
    assert!(judge(format!("echo {digits} {digits} 1>x {{1..3}}")).0);
}

/// Pieces of shell text in any order.
#[test]
fn random_text_never_panics() {
    let pieces = [
        "$(", ")", "${", "}", "((", "))", "`", "'", "\"", "\\", "\n", " ", ";", "|", "&", "&&",
        "<<A", "A\n", "<<<", ">", "<(", "[[", "]]", "if", "then", "fi", "case", "in", "esac", "do",
        "done", "for", "{", ",", "..", "~", "~1", "*", "?", "[", "]", "=", "a", "x=1", "$x", "$@",
        "$'", "$\"", "!", "#", "%", "@", "^", "rm x", "env", "-c", "eval", "é", "\u{200b}",
        "function", "coproc", "time", "1", "-S", "+=", ":-",
    ];
    let mut rng = Rng::with_seed(11);
    let thread = std::thread::Builder::new().stack_size(STACK);
    let work = move || {
        for _ in 0..3_000 {
            let count = rng.usize(1..25);
            let text: String = (0..count).map(|_| *rng.choice(&pieces).unwrap()).collect();
            let started = Instant::now();
            let _ = denying(&["rm"], &text);
            assert!(started.elapsed() < SOON, "{text:?}");
        }
    };
    thread.spawn(work).unwrap().join().unwrap();
}
