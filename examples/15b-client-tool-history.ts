/**
 * 15b History of a client tool: how a transcript of the older kernel reads, in which a call was put
 * off, the user's name was borrowed to make the model go on, and the call was made again.
 *
 *   npm run examples 15b
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

import { CloudBaseSessionStore, InMemoryDriver, createAgent } from '@cloudbase/open-agent-kernel';

import {
  SENTINEL,
  hasNoNotice,
  hasNoOrphans,
  hasNoSentinel,
  hasPairs,
  partsOf,
  runChecks,
  showRecords,
} from './_shared/checks.ts';

const ENV_ID = 'example-env';
const NAME = 'mcp__custom__get_weather';
const conversationId = randomUUID();

let seconds = 0;
let last: string | null = null;

/** An entry of the transcript, behind the one before. */
function entry(type: 'user' | 'assistant', content: unknown) {
  const uuid = randomUUID();
  const parentUuid = last;
  last = uuid;
  seconds += 1;
  const message = { role: type, content, ...(type === 'assistant' && { id: `msg_${seconds}` }) };
  const timestamp = new Date(Date.UTC(2026, 0, 1, 8, 0, seconds)).toISOString();
  return { type, uuid, parentUuid, sessionId: conversationId, timestamp, message };
}

const said = (text: string) => ({ type: 'text', text });
const call = (id: string) => ({ type: 'tool_use', id, name: NAME, input: { city: '北京' } });
const result = (id: string, content: string, isError = false) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  is_error: isError,
});

const pause = { [SENTINEL]: true, conversationId, toolUseId: 'tool-001', toolName: 'get_weather' };
const transcript = [
  entry('user', '北京今天天气怎么样？'),
  entry('assistant', [said('我来查一下。'), call('tool-001')]),
  entry('user', [result('tool-001', JSON.stringify(pause), true)]),
  entry('user', '[系统通知] 用户为刚才的工具调用 `get_weather` 给了结果，请再次调用它。'),
  entry('assistant', [call('tool-002')]),
  entry('user', [result('tool-002', '{"city":"北京","weather":"晴","temperature":22}')]),
  entry('assistant', [said('北京今天晴，22 度。')]),
];
assert.equal(transcript.length, 7);

const store = new CloudBaseSessionStore({ driver: new InMemoryDriver() });
await store.append({ projectKey: ENV_ID, sessionId: conversationId }, transcript);

// Nothing is sent: the agent only reads.
const model = { id: 'none', apiKey: 'none' };
const agent = createAgent({ envId: ENV_ID, model, session: { store } });
const session = await agent.resumeSession(conversationId);
const records = await session.getHistory();
showRecords(records);

const parts = partsOf(records);
const calls = parts.filter((part) => part.type === 'tool_call');
runChecks({
  'there are two records': records.length === 2,
  'the first is of the user': records[0]?.role === 'user',
  'the second is of the assistant': records[1]?.role === 'assistant',
  'nothing of the pause shows': hasNoSentinel(records),
  'nothing shows that the user did not say': hasNoNotice(records) && hasNoOrphans(records),
  'the call that was put off is hidden': calls.every((part) => part.toolUseId === 'tool-002'),
  'the call that was made again has its result': calls.length === 1 && hasPairs(records),
  'the parts are in their order':
    parts.map(({ type }) => type).join() === 'text,text,tool_call,tool_result,text',
});

await agent.close();
