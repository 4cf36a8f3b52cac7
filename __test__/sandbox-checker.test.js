/** The sandbox checker as programs use it. */
import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  InvalidConfigError,
  SandboxChecker,
  SandboxDeniedError,
  SandboxError,
  SandboxPathNormalizer,
} from '../index.js';

const env = { cwd: '/project', home: '/home/dev', platform: 'linux', variables: {} };
const settings = {
  allowedReadPaths: ['/project/'],
  allowedWritePaths: ['/project/build/'],
  deniedPaths: ['/etc/'],
  deniedCommands: ['rm', 'git push'],
};

test('a path is judged by its operation', () => {
  const allowed = (path, operation) => SandboxChecker.isPathAllowed(path, operation, settings, env);
  assert.equal(allowed('src/a.ts', 'read'), true);
  assert.equal(allowed('src/a.ts', 'write'), false);
  assert.equal(allowed('build/a', 'write'), true);
  assert.equal(allowed('/project-backup/a', 'read'), false);
  assert.equal(SandboxChecker.checkPath('src/a.ts', 'read', settings, env), undefined);
  assert.throws(
    () => SandboxChecker.checkPath('/etc/passwd', 'write', settings, env),
    (error) => {
      assert.ok(error instanceof SandboxDeniedError && error instanceof SandboxError);
      assert.equal(error.code, 'E_SANDBOX_DENIED');
      assert.equal(error.tool, 'Write');
      assert.equal(error.reason, "path '/etc/passwd' is outside allowed write scope");
      assert.equal(error.message, `Permission denied for Write: ${error.reason}`);
      assert.equal(error.details.code, 'path_denied');
      assert.match(error.stack, /sandbox-checker\.test/);
      return true;
    },
  );
});

test('both ways of asking about a command give the same verdict', () => {
  const commands = {
    'ls -la src': true,
    'rm -rf src': false,
    'sudo env A=1 rm x': false,
    'git -C src push': false,
    'git log --grep push': true,
    'cat /etc/passwd': false,
    '$X y': false,
    'echo $(': false,
  };
  for (const [command, expected] of Object.entries(commands)) {
    assert.equal(SandboxChecker.isCommandAllowed(command, settings, env), expected, command);
    const check = () => SandboxChecker.checkCommand(command, settings, env);
    if (expected) assert.equal(check(), undefined);
    else assert.throws(check, SandboxDeniedError, command);
  }
  assert.throws(() => SandboxChecker.checkCommand('echo $(rm x)', settings, env), {
    tool: 'Bash',
    reason: "command 'rm' is denied by sandbox policy (detected in substitution)",
  });
});

test('an explanation lists what would run and what it touches', () => {
  const denied = SandboxChecker.explainCommand('timeout 5 rm x > build/log', settings, env);
  assert.deepEqual(denied, {
    verdict: 'deny',
    code: 'command_denied',
    reason: "command 'rm' is denied by sandbox policy",
    commands: [
      { argv: ['timeout', '5', 'rm', 'x'], via: [] },
      { argv: ['rm', 'x'], via: ['timeout'] },
    ],
    paths: [{ path: '/project/build/log', operation: 'write' }],
  });
  const allowed = SandboxChecker.explainCommand('cat ./a', settings, env);
  assert.equal(allowed.verdict, 'allow');
  assert.equal('reason' in allowed, false);
  assert.deepEqual(allowed.paths, [{ path: '/project/a', operation: 'read' }]);
});

test('the surroundings default to those of the process', () => {
  const here = { allowedReadPaths: [process.cwd()] };
  assert.equal(SandboxChecker.isPathAllowed('package.json', 'read', here), true);
  assert.equal(SandboxChecker.isPathAllowed('../package.json', 'read', here), false);
  assert.equal(SandboxChecker.isCommandAllowed('cat package.json', here), true);
  assert.equal(
    SandboxPathNormalizer.normalize('package.json'),
    join(realpathSync('.'), 'package.json'),
  );
});

test('links are followed', (t) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'oak-checker-')));
  t.after(() => rmSync(folder, { recursive: true }));
  symlinkSync('/etc', join(folder, 'link'));
  const rules = { allowedReadPaths: [folder] };
  assert.equal(SandboxChecker.isPathAllowed(join(folder, 'link/x'), 'read', rules), false);
  assert.equal(SandboxPathNormalizer.normalize('link/../x', { ...env, cwd: folder }), '/x');
  assert.throws(() => SandboxPathNormalizer.normalize('/proc/self/root/x'), SandboxDeniedError);
  assert.throws(() => SandboxPathNormalizer.normalize(''), SandboxDeniedError);
});

test('bad arguments are named', () => {
  const cases = [
    [() => SandboxChecker.isCommandAllowed(3, settings), /command must be a string/],
    [
      () => SandboxChecker.checkPath('a', 'delete', settings),
      /operation must be 'read' or 'write'/,
    ],
    [() => SandboxChecker.checkPath(null, 'read', settings), /path must be a string/],
    [() => SandboxChecker.checkCommand('ls', null), /settings must be an object/],
    [() => SandboxChecker.checkCommand('ls', { deniedCommands: 'rm' }), /settings\.deniedCommands/],
    [() => SandboxChecker.checkCommand('ls', { deniedPath: [] }), /settings\.deniedPath is not/],
    [() => SandboxChecker.checkCommand('ls', { deniedPaths: () => [] }), /settings/],
    [
      () => SandboxChecker.checkCommand('ls', settings, { cwd: 'a' }),
      /env\.cwd must be an absolute/,
    ],
    [() => SandboxChecker.checkCommand('ls', settings, { cmd: 'a' }), /env\.cmd is unknown/],
    [() => SandboxChecker.checkCommand('ls', settings, []), /env must be an object/],
    [
      () => SandboxChecker.checkCommand('ls', settings, { variables: { A: 1 } }),
      /env\.variables must be an object of strings/,
    ],
    [
      () =>
        SandboxChecker.isPathAllowed('a', 'read', {
          get deniedPaths() {
            throw new Error('no');
          },
        }),
      /settings\.deniedPaths cannot be read/,
    ],
  ];
  for (const [call, message] of cases) {
    assert.throws(call, (error) => {
      assert.ok(error instanceof InvalidConfigError, String(error));
      assert.match(error.message, message);
      return true;
    });
  }
});

test('text that is meant to hurt is refused at once', () => {
  for (const text of ['$('.repeat(300_000), 'a '.repeat(500_000), '\ud800rm x', '\0']) {
    const started = performance.now();
    assert.equal(SandboxChecker.isCommandAllowed(text, settings, env), false);
    assert.ok(performance.now() - started < 1_000);
  }
});
