/** Checks on histories, counted for people to read. */
import type { MessagePart, MessageRecord } from '@cloudbase/open-agent-kernel';

/** Runs named checks, prints each and fails when one does not hold. */
export function runChecks(checks: Record<string, boolean>): void {
  const results = Object.entries(checks);
  for (const [name, holds] of results) console.log(`${holds ? 'ok    ' : 'FAILED'} ${name}`);
  const passed = results.filter(([, holds]) => holds).length;
  console.log(`${passed}/${results.length} checks`);
  if (passed < results.length) throw new Error('a check failed');
}

/** Prints records, a part in a line. */
export function showRecords(records: MessageRecord[]): void {
  for (const { role, parts } of records) {
    for (const part of parts) console.log(`${role.padEnd(9)} ${describe(part)}`);
  }
}

function describe(part: MessagePart): string {
  switch (part.type) {
    case 'tool_call':
      return `${part.type} ${part.toolUseId} ${part.toolName} ${JSON.stringify(part.input)}`;
    case 'tool_result':
      return `${part.type} ${part.toolUseId} ${JSON.stringify(part.output)}`;
    case 'text':
      return `${part.type} ${part.text}`;
    default:
      return part.type;
  }
}

/** What a pause of the older kernel left in transcripts. */
export const SENTINEL = '__OAK_CLIENT_TOOL__';
/** How prompts begin that it wrote in the user's name. */
const NOTICE = '[系统通知]';

/** Whether nothing of a pause shows. */
export const hasNoSentinel = (records: MessageRecord[]) =>
  !JSON.stringify(records).includes(SENTINEL);

/** Whether nothing shows that was written in the user's name. */
export const hasNoNotice = (records: MessageRecord[]) =>
  !partsOf(records).some((part) => part.type === 'text' && part.text.startsWith(NOTICE));

/** Whether no record of the user consists of results alone. */
export const hasNoOrphans = (records: MessageRecord[]) =>
  !records.some(
    ({ role, parts }) => role === 'user' && parts.every(({ type }) => type === 'tool_result'),
  );

/** Whether each call is followed by its result, in the same record. */
export const hasPairs = (records: MessageRecord[]) =>
  records.every(({ parts }) =>
    parts.every((part, at) => {
      const next = parts[at + 1];
      if (part.type !== 'tool_call') return true;
      return next?.type === 'tool_result' && next.toolUseId === part.toolUseId;
    }),
  );

/** All parts, in their order. */
export const partsOf = (records: MessageRecord[]) => records.flatMap(({ parts }) => parts);
