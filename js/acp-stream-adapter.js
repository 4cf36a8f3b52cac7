/**
 * `AcpStreamAdapter`: from messages of the Claude Agent SDK to JSON-RPC messages of ACP.
 *
 * The default translator of the kernel that this package replaces, for programs that call it or
 * extend it. Its rules are that kernel's; the package's own streams do not go through it.
 *
 * @module
 */

const APPROVAL_OPTIONS = [
  { optionId: 'allow_always', name: 'Always allow', kind: 'allow_always' },
  { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
  { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
];

const KINDS = [
  ['execute', ['Bash', 'bash']],
  ['read', ['Read', 'read']],
  ['edit', ['Write', 'Edit', 'Patch', 'write', 'edit', 'patch', 'ApplyPatch']],
  ['search', ['Grep', 'Glob', 'grep', 'glob']],
  ['fetch', ['WebFetch', 'webfetch', 'Fetch']],
  ['think', ['Agent', 'Task', 'TaskCreate', 'TaskUpdate', 'TaskGet', 'TaskList']],
];

/** Prefixes of tools that the user gave, which are shown by their bare names. */
const OWN_PREFIX = /^mcp__(?:custom|kernel)__/;
const APPROVAL_MARK = '__OAK_INTERRUPT__';
const CLIENT_TOOL_MARK = '__OAK_CLIENT_TOOL__';

/** Translates the messages of one run at a time; each `adapt` call has its own state. */
export class AcpStreamAdapter {
  #dedupe;

  /**
   * @param {{ dedupeAssistantText?: boolean }} [options] `dedupeAssistantText` (default true): whole
   *   texts are left out when their pieces were streamed
   */
  constructor({ dedupeAssistantText = true } = {}) {
    this.#dedupe = dedupeAssistantText;
  }

  /** Id of the request that asks for a decision about a call. */
  static requestId(sessionId, toolCallId) {
    return `${sessionId}:${toolCallId}`;
  }

  /**
   * @param {AsyncIterable<object>} messages
   * @param {{ sessionId: string, turnId: string }} context
   * @returns {AsyncGenerator<object>}
   */
  async *adapt(messages, context) {
    const run = new Translation(context, this.#dedupe);
    for await (const message of messages) yield* run.translate(message);
  }
}

/** What the translation of one run remembers. */
class Translation {
  #context;
  #dedupe;
  /** Open calls by the sub-agent and the index of their block. */
  #open = new Map();
  #announced = new Set();
  #names = new Map();
  /** Messages whose text was streamed. */
  #streamed = new Set();
  #streaming;

  constructor(context, dedupe) {
    this.#context = context;
    this.#dedupe = dedupe;
  }

  *translate(message) {
    switch (message?.type) {
      case 'stream_event':
        yield* this.#event(message.event, message.parent_tool_use_id || undefined);
        break;
      case 'assistant':
        yield* this.#assistant(message.message, message.parent_tool_use_id || undefined);
        break;
      case 'user':
        yield* this.#user(message.message);
        break;
      case 'result':
        yield* this.#result(message);
        break;
    }
  }

  *#event(event, parent) {
    const key = `${parent ?? ''}:${event?.index}`;
    switch (event?.type) {
      case 'message_start':
        this.#streaming = event.message?.id;
        break;
      case 'content_block_start':
        if (event.content_block?.type === 'tool_use' && typeof event.index === 'number') {
          const { id, name, input } = event.content_block;
          this.#open.set(key, { id, text: '' });
          yield this.#call(id, bareName(name), input, parent);
        }
        break;
      case 'content_block_delta':
        yield* this.#delta(event.delta, key, parent);
        break;
      case 'content_block_stop': {
        const open = this.#open.get(key);
        this.#open.delete(key);
        if (open?.text) yield this.#input(open.id, parseOr(open.text), parent);
        break;
      }
    }
  }

  *#delta(delta, key, parent) {
    if (delta?.type === 'text_delta' && delta.text) {
      this.#streamed.add(this.#streaming);
      yield this.#update({ sessionUpdate: 'agent_message_chunk', content: text(delta.text) });
    } else if (delta?.type === 'thinking_delta' && delta.thinking) {
      yield this.#update({ sessionUpdate: 'agent_thought_chunk', content: text(delta.thinking) });
    } else if (delta?.type === 'input_json_delta' && this.#open.has(key)) {
      const open = this.#open.get(key);
      open.text += delta.partial_json ?? '';
      if (open.text) yield this.#input(open.id, parseOr(open.text), parent);
    }
  }

  *#assistant(message, parent) {
    for (const block of list(message?.content)) {
      if (block.type === 'text' && block.text && !this.#wasStreamed(message.id)) {
        yield this.#update({ sessionUpdate: 'agent_message_chunk', content: text(block.text) });
      } else if (block.type === 'tool_use') {
        yield this.#announced.has(block.id)
          ? this.#input(block.id, block.input, parent)
          : this.#call(block.id, bareName(block.name), block.input, parent);
      }
    }
  }

  #wasStreamed(id) {
    // A stream without message ids speaks of the only message it has.
    return this.#dedupe && (this.#streamed.has(id) || this.#streamed.has(undefined));
  }

  *#user(message) {
    for (const block of list(message?.content)) {
      if (block.type !== 'tool_result') continue;
      const first = firstText(block.content);
      const mark = parseMark(first);
      if (mark?.[APPROVAL_MARK]) yield this.#approval(block.tool_use_id, mark);
      else if (mark?.[CLIENT_TOOL_MARK]) yield this.#clientTool(block.tool_use_id, mark);
      else yield this.#end(block, first);
    }
  }

  *#result({ usage, is_error: isError, errors, result, stop_reason: stopReason }) {
    const timestamp = Date.now();
    if (isError && stopReason !== 'aborted') {
      const message = String(errors?.[0] ?? result ?? 'Agent run failed');
      yield this.#update({ sessionUpdate: 'log', level: 'error', message, timestamp });
    }
    const { input_tokens: input, output_tokens: output } = usage ?? {};
    if (typeof input === 'number' && typeof output === 'number') {
      yield this.#update({ sessionUpdate: 'usage_update', used: input + output, size: 0 });
    }
    const reason = stopReason ? { stopReason } : {};
    yield this.#update({ sessionUpdate: 'agent_phase', phase: 'idle', timestamp, ...reason });
  }

  #call(id, title, input, parent) {
    this.#announced.add(id);
    this.#names.set(id, title);
    return this.#update({
      sessionUpdate: 'tool_call',
      toolCallId: id,
      title,
      kind: kindOf(title),
      status: 'in_progress',
      rawInput: isObject(input) ? input : {},
      ...meta(parent),
    });
  }

  #input(id, rawInput, parent) {
    return this.#update({
      sessionUpdate: 'tool_call_update',
      toolCallId: id,
      status: 'in_progress',
      rawInput,
      ...meta(parent),
    });
  }

  #end({ tool_use_id: id, content, is_error: isError }, first) {
    const update = {
      sessionUpdate: 'tool_call_update',
      toolCallId: id,
      status: isError ? 'failed' : 'completed',
      rawOutput: content ?? null,
    };
    if (isError) update.content = [{ type: 'content', content: text(first ?? '') }];
    return this.#update(update);
  }

  #approval(id, mark) {
    const title = mark.toolName ?? this.#names.get(id) ?? '';
    const { sessionId, turnId } = this.#context;
    return {
      jsonrpc: '2.0',
      id: AcpStreamAdapter.requestId(sessionId, id),
      method: 'session/request_permission',
      params: {
        sessionId,
        toolCall: {
          toolCallId: id,
          title,
          kind: kindOf(title),
          status: 'pending',
          rawInput: mark.toolInput,
          _meta: { assistantMessageId: turnId },
        },
        options: APPROVAL_OPTIONS.map((option) => ({ ...option })),
      },
    };
  }

  #clientTool(id, mark) {
    const name = bareName(mark.toolName ?? this.#names.get(id) ?? '');
    const { sessionId, turnId } = this.#context;
    return {
      jsonrpc: '2.0',
      id: AcpStreamAdapter.requestId(sessionId, id),
      method: `client/${name}`,
      params: isObject(mark.toolInput) ? mark.toolInput : { value: mark.toolInput },
      _meta: { sessionId, toolCallId: id, assistantMessageId: turnId },
    };
  }

  #update(update) {
    const params = { sessionId: this.#context.sessionId, update };
    return { jsonrpc: '2.0', method: 'session/update', params };
  }
}

function bareName(name) {
  return String(name).replace(OWN_PREFIX, '');
}

function kindOf(name) {
  return KINDS.find(([, names]) => names.includes(name))?.[0] ?? 'other';
}

function meta(parent) {
  return parent ? { _meta: { oak: { parentToolCallId: parent }, parentToolCallId: parent } } : {};
}

function text(value) {
  return { type: 'text', text: value };
}

function list(content) {
  return Array.isArray(content) ? content : [];
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function firstText(content) {
  if (typeof content === 'string') return content;
  return list(content).find((block) => block?.type === 'text')?.text;
}

function parseOr(value) {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function parseMark(value) {
  const parsed = typeof value === 'string' ? parseOr(value) : undefined;
  return isObject(parsed) ? parsed : undefined;
}
