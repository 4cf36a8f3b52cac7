/**
 * A whole program that sends once: `first-chunk.js <contender> <gateway as JSON>`. Prints the wall
 * clock at the first chunk.
 *
 * @module
 */
import { PROMPTS } from './script.js';

const [contender, gateway] = process.argv.slice(2);
const { open } = await import(`./${contender}.js`);
const client = await open(JSON.parse(gateway));
const conversation = await client.conversation();
let seen;
await conversation.send(PROMPTS.short, {
  onText() {
    seen ??= performance.timeOrigin + performance.now();
  },
});
process.stdout.write(String(seen));
