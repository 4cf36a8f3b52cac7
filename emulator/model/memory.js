/**
 * What the scripted model remembers of its own answers, so that the validator can tell whether a
 * client sent them back unchanged.
 */
export class ModelMemory {
  /** @type {Map<string, Set<string>>} custom signature -> the thinking texts it was given out for */
  #signatures = new Map();
  /** @type {Map<string, string[]>} tool use id -> signatures of the same answer */
  #thinkingOfCall = new Map();

  /**
   * Remembers the signatures of one answer.
   *
   * @param {object[]} content final content blocks
   */
  learnSignatures(content) {
    for (const block of content) {
      if (block.type !== 'thinking' || !block.signature) continue;
      const texts = this.#signatures.get(block.signature) ?? new Set();
      this.#signatures.set(block.signature, texts.add(block.thinking));
    }
  }

  /**
   * Remembers which thinking belongs to which call. Only for answers that reached the client as a
   * whole: nobody can send back a block that was never received.
   *
   * @param {object[]} content final content blocks
   */
  learnCompleted(content) {
    const signatures = content
      .filter((block) => block.type === 'thinking' && block.signature)
      .map((block) => block.signature);
    for (const block of content) {
      if (block.type === 'tool_use') this.#thinkingOfCall.set(block.id, signatures);
    }
  }

  /**
   * @param {string} signature
   * @returns {Set<string> | undefined} texts given out with this signature, `undefined` if unknown
   */
  textsOf(signature) {
    return this.#signatures.get(signature);
  }

  /**
   * @param {string} toolUseId
   * @returns {string[]} signatures that must accompany the call while its tool loop runs
   */
  signaturesOfCall(toolUseId) {
    return this.#thinkingOfCall.get(toolUseId) ?? [];
  }

  /** Forgets everything. */
  clear() {
    this.#signatures.clear();
    this.#thinkingOfCall.clear();
  }
}
