/**
 * Numbers and their spelling.
 *
 * @module
 */

/** The middle value; of an even number of values the mean of the two in the middle. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @returns {string} e.g. `1.23 ms` */
export const ms = (value) => `${digits(value)} ms`;

/** @returns {string} e.g. `4.56 us` */
export const us = (value) => `${digits(value)} us`;

/** @returns {string} megabytes of 2^20 bytes */
export const mb = (bytes) => `${digits(bytes / 2 ** 20)} MB`;

/** @returns {string} kilobytes of 2^10 bytes */
export const kb = (bytes) => `${digits(bytes / 2 ** 10)} KB`;

/** @returns {string} a whole number with thousands separators */
export const count = (value) => Math.round(value).toLocaleString('en-US');

/** @returns {string} e.g. `1.37 x` */
export const times = (value) => `${value.toFixed(2)} x`;

/** @returns {string} the same, for values that may be much smaller than 1: e.g. `1 / 25` */
export const ratio = (value) => (value < 0.1 ? `1 / ${count(1 / value)}` : times(value));

function digits(value) {
  if (Math.abs(value) >= 100) return count(value);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}
