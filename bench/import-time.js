/**
 * Prints how many milliseconds the import of the package takes.
 *
 * @module
 */
const start = performance.now();
await import('../dist/index.js');
process.stdout.write(String(performance.now() - start));
