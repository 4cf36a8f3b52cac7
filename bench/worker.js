/**
 * The process of one contender: `worker.js <contender> <gateway as JSON>`; takes tasks by IPC.
 *
 * @module
 */
import * as tasks from './tasks.js';

const [contender, gateway] = process.argv.slice(2);
const { open, countCrossings: crossings } = await import(`./${contender}.js`);
const client = await open(JSON.parse(gateway));

process.on('message', async ({ task, settings }) => {
  try {
    const value = await tasks[task](client, { ...settings, crossings });
    await client.settled?.();
    process.send({ value });
  } catch (error) {
    process.send({ error: error.stack ?? String(error) });
  }
});
process.on('disconnect', () => process.exit());
process.send({ value: 'ready' });
