/**
 * What the processes are killed in.
 *
 * @module
 */
import { judgeTurn } from './judge-turn.js';
import { turnRules } from './turn-model.js';

/** Scenarios by name: the script of their model, and who judges what a killed process left. */
export const SCENARIOS = {
  turn: { rules: turnRules, judge: judgeTurn },
};
