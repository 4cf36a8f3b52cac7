/**
 * What a process and those that it started take, from `/proc`.
 *
 * @module
 */
import { readFileSync, readdirSync } from 'node:fs';

/** `/proc` counts processor time in hundredths of a second. */
const TICK_US = 10_000;

/**
 * @param {number} pid
 * @param {string[]} fields of `/proc/<pid>/status`
 * @returns {Record<string, number>} sums in bytes
 */
export function treeMemory(pid, fields) {
  const sums = Object.fromEntries(fields.map((field) => [field, 0]));
  for (const status of statuses(pid)) {
    for (const field of fields) {
      // One that has just ended has no memory any more.
      const found = new RegExp(`^${field}:\\s*(\\d+) kB$`, 'm').exec(status);
      sums[field] += Number(found?.[1] ?? 0) * 1_024;
    }
  }
  return sums;
}

function statuses(pid) {
  const status = unlessEnded(() => readFileSync(`/proc/${pid}/status`, 'utf8'), '');
  return [status, ...children(pid).flatMap(statuses)];
}

/** Each thread has the children that it started. */
function children(pid) {
  const folder = `/proc/${pid}/task`;
  return unlessEnded(() => readdirSync(folder), []).flatMap((thread) => {
    const list = unlessEnded(() => readFileSync(`${folder}/${thread}/children`, 'utf8'), '');
    return list.split(' ').filter(Boolean);
  });
}

/** Processes and threads may end while one looks at them. */
function unlessEnded(read, otherwise) {
  try {
    return read();
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return otherwise;
    throw error;
  }
}

/** @returns {number} processor time of this process and of its children that have ended, in us */
export function cpuUs() {
  const { user, system } = process.cpuUsage();
  return user + system + endedChildrenUs();
}

function endedChildrenUs() {
  if (process.platform !== 'linux') return 0;
  // After the name, which may hold anything: state, then from the 13th on the times of children.
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1).split(' ');
  return (Number(fields[13]) + Number(fields[14])) * TICK_US;
}
