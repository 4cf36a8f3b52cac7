/** `CloudBaseSessionStore` over drivers of all kinds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CloudBaseSessionStore, InMemoryDriver, InvalidConfigError } from '../index.js';
import { conformance } from './support/conformance.js';

const KEY = { projectKey: 'p', sessionId: 's' };
const MANDATORY = [
  'appendEntries',
  'loadEntries',
  'registerSession',
  'listSessions',
  'deleteSession',
];

function prompt(uuid, more) {
  return { type: 'user', uuid, message: { role: 'user', content: uuid }, ...more };
}

/** A driver of a program, with those methods of the driver in memory that are named. */
function driverWith(names, calls = []) {
  const inner = new InMemoryDriver();
  const driver = { inner };
  for (const name of names) {
    driver[name] = function (...args) {
      assert.equal(this, driver, `${name} keeps its this`);
      calls.push(name);
      return this.inner[name](...args);
    };
  }
  return driver;
}

/** The warnings that work gives rise to. */
async function warningsOf(work) {
  const warnings = [];
  const listen = (warning) => warnings.push(warning);
  process.on('warning', listen);
  await work();
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', listen);
  return warnings.filter(({ code }) => code === 'OAK_DRIVER_DERIVED');
}

conformance('a driver with the least methods', () => {
  return new CloudBaseSessionStore({ driver: driverWith(MANDATORY) });
});

test('without options the data stays in memory, and the driver is given back', async () => {
  const store = new CloudBaseSessionStore();
  await store.append(KEY, [prompt('a')]);
  assert.ok(store.getDriver() instanceof InMemoryDriver);
  assert.deepEqual(store.getDriver().listProjectKeys(), ['p']);
  const driver = driverWith(MANDATORY);
  assert.equal(new CloudBaseSessionStore({ driver }).getDriver(), driver);
});

test('a driver that lacks what every driver must have is refused by the name of the method', () => {
  for (const missing of MANDATORY) {
    const driver = driverWith(MANDATORY.filter((name) => name !== missing));
    assert.throws(
      () => new CloudBaseSessionStore({ driver }),
      (error) => error instanceof InvalidConfigError && error.message.includes(missing),
    );
  }
  const throwing = {
    get loadEntries() {
      throw new Error('no');
    },
  };
  for (const driver of [null, 7, 'memory', {}, throwing]) {
    assert.throws(() => new CloudBaseSessionStore({ driver }), InvalidConfigError);
  }
  for (const options of [null, 7, { projectKey: '' }, { projectKey: 7 }]) {
    assert.throws(() => new CloudBaseSessionStore(options), InvalidConfigError);
  }
});

test('a fixed project key takes the place of that of every key', async () => {
  const driver = new InMemoryDriver();
  const store = new CloudBaseSessionStore({ driver, projectKey: 'env' });
  await store.append(KEY, [prompt('a')]);
  await store.registerSession({ ...KEY, userId: 'ann' });
  assert.deepEqual(driver.listProjectKeys(), ['env']);
  assert.equal((await store.load({ projectKey: 'other', sessionId: 's' })).length, 1);
  assert.equal((await store.getSession('other', 's')).userId, 'ann');
  assert.equal((await store.listSessions('other')).length, 1);
  assert.equal((await store.listSessionSummaries('other')).length, 1);
  await store.delete(KEY);
  assert.deepEqual(driver.listProjectKeys(), []);
});

test('an append stores entries, index and summary, in this order', async () => {
  const calls = [];
  const names = [
    ...MANDATORY,
    'appendSessionMessage',
    'querySessionMessages',
    'deleteSessionMessages',
    'upsertSummary',
    'listSummaries',
    'listSubkeys',
  ];
  const store = new CloudBaseSessionStore({ driver: driverWith(names, calls) });
  await store.append(KEY, [prompt('one')]);
  assert.deepEqual(calls, [
    'appendEntries',
    'appendSessionMessage',
    'listSummaries',
    'upsertSummary',
  ]);
  calls.length = 0;
  await store.append({ ...KEY, subpath: 'a' }, [prompt('x')]);
  assert.deepEqual(calls, ['appendEntries']);
});

test('the summary goes on from what an earlier process stored', async () => {
  const driver = new InMemoryDriver();
  const title = (customTitle) => ({ type: 'custom-title', customTitle });
  await new CloudBaseSessionStore({ driver }).append(KEY, [
    prompt('one', { timestamp: '2026-01-02T03:04:05.678Z', cwd: '/x', gitBranch: 'main' }),
    title('A'),
  ]);
  const other = new CloudBaseSessionStore({ driver });
  await other.append(KEY, [prompt('two', { gitBranch: 'dev' }), title('B')]);
  const [{ data, mtime }] = await other.listSessionSummaries('p');
  assert.deepEqual(data, {
    createdAt: Date.parse('2026-01-02T03:04:05.678Z'),
    cwd: '/x',
    firstPrompt: 'one',
    firstPromptLocked: true,
    gitBranch: 'dev',
    customTitle: 'B',
  });
  assert.equal((await other.listSessions('p'))[0].mtime <= mtime, true);
});

test('appends of one session are stored in the order of the calls', async () => {
  const driver = new InMemoryDriver();
  const append = driver.appendEntries.bind(driver);
  let wait = 20;
  driver.appendEntries = async (...args) => {
    await new Promise((resolve) => setTimeout(resolve, (wait -= 5)));
    return append(...args);
  };
  const store = new CloudBaseSessionStore({ driver });
  await Promise.all(['a', 'b', 'c'].map((uuid) => store.append(KEY, [prompt(uuid)])));
  const uuids = (await store.load(KEY)).map(({ uuid }) => uuid);
  assert.deepEqual(uuids, ['a', 'b', 'c']);
});

test('a failed append rejects, and the next one is carried out', async () => {
  const driver = new InMemoryDriver();
  const append = driver.appendEntries.bind(driver);
  driver.appendEntries = async () => {
    driver.appendEntries = append;
    throw new Error('down');
  };
  const store = new CloudBaseSessionStore({
    driver: { ...bound(driver), appendEntries: (...args) => driver.appendEntries(...args) },
  });
  const failing = store.append(KEY, [prompt('a')]);
  const next = store.append(KEY, [prompt('b')]);
  await assert.rejects(failing, /down/);
  await next;
  assert.deepEqual(
    (await store.load(KEY)).map(({ uuid }) => uuid),
    ['b'],
  );
});

/** All methods of the driver in memory, as functions. */
function bound(driver) {
  const names = Object.getOwnPropertyNames(InMemoryDriver.prototype);
  const methods = names.filter((name) => name !== 'constructor');
  return Object.fromEntries(methods.map((name) => [name, driver[name].bind(driver)]));
}

test('what a driver leaves out is derived, with one warning', async () => {
  const driver = driverWith(MANDATORY);
  let store;
  const warnings = await warningsOf(async () => {
    store = new CloudBaseSessionStore({ driver });
    new CloudBaseSessionStore({ driver });
  });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0].message, /querySessionMessages/);
  await store.append(KEY, [prompt('a'), prompt('b'), prompt('c')]);
  await store.append({ ...KEY, subpath: 'x' }, [prompt('d')]);
  await store.registerSession({ ...KEY, userId: 'ann' });
  assert.deepEqual(
    (await store.loadRecent(KEY, 2)).map(({ uuid }) => uuid),
    ['b', 'c'],
  );
  assert.equal(await store.loadRecent({ ...KEY, sessionId: 'no' }, 2), null);
  assert.equal((await store.getSession('p', 's')).userId, 'ann');
  assert.equal(await store.getSession('p', 'no'), null);
  assert.deepEqual(await store.listSubkeys(KEY), ['x']);
  const [summary] = await store.listSessionSummaries('p');
  assert.equal(summary.data.firstPrompt, 'a');
});

test('a complete driver gives no warning', async () => {
  const warnings = await warningsOf(() => new CloudBaseSessionStore());
  assert.deepEqual(warnings, []);
});

test('keys and entries of wrong shapes are refused before the driver sees them', async () => {
  const calls = [];
  const store = new CloudBaseSessionStore({ driver: driverWith(MANDATORY, calls) });
  for (const entries of [undefined, {}, 'x', [null], [7], [[]]]) {
    await assert.rejects(store.append(KEY, entries), InvalidConfigError);
  }
  for (const key of [undefined, {}, { projectKey: 'p', sessionId: '' }]) {
    for (const call of ['load', 'delete', 'listSubkeys']) {
      await assert.rejects(store[call](key), InvalidConfigError);
    }
    await assert.rejects(store.append(key, []), InvalidConfigError);
  }
  await assert.rejects(store.listSessions(7), InvalidConfigError);
  assert.deepEqual(calls, []);
});
