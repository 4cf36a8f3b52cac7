import { createRequire } from 'node:module';
import { join } from 'node:path';

import { oracle } from './scripts/oracle.js';

// The linter and its rules are no dependencies of the package; see oracles/tooling.
const require = createRequire(join(oracle('tooling'), 'package.json'));
const js = require('@eslint/js');
const globals = require('globals');

export default [
  { ignores: ['target/', 'dist/', 'oracles/', '**/node_modules/'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, globals: globals.nodeBuiltin },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-console': 'error',
      'no-unused-vars': ['error', { ignoreRestSiblings: true }],
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
  {
    // Programs, whose output is the console.
    files: ['scripts/**', 'examples/**', 'bench/**', 'emulator/cli.js', 'emulator/cli/**'],
    rules: { 'no-console': 'off' },
  },
];
