/**
 * What a library found wrong with an input, in words for the model.
 *
 * @module
 */

/** As many as the core tells. */
const FAULTS_TOLD = 8;

/**
 * @param {readonly { path?: readonly unknown[], message: string }[]} issues
 * @returns {string[]} lines in the form of the core
 */
export function faultsOf(issues) {
  const lines = issues.slice(0, FAULTS_TOLD).map(({ path, message }) => {
    const place = (path ?? []).map((key) => String(key?.key ?? key)).join('/');
    return `- ${place || 'input'}: ${message}`;
  });
  const more = issues.length - lines.length;
  return more > 0 ? [...lines, `- and ${more} more`] : lines;
}

/**
 * The outcome of a check by zod.
 *
 * @param {{ success: boolean, data?: unknown, error?: { issues: object[] } }} result
 */
export function outcomeOf({ success, data, error }) {
  return success ? { value: data } : { faults: faultsOf(error.issues) };
}
