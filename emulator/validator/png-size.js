const MAGIC = '89504e470d0a1a0a';

/**
 * Reads width and height out of the header of a PNG.
 *
 * @param {string | undefined} base64
 * @returns {{ width: number, height: number } | null} `null` when it is not a PNG
 */
export function pngSize(base64) {
  // 24 bytes of header are 32 characters of base64.
  const head = Buffer.from((base64 ?? '').slice(0, 32), 'base64');
  if (head.length < 24 || head.subarray(0, 8).toString('hex') !== MAGIC) return null;
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
}
