import type { Html } from '../../../base/values/html.ts';
import type { Tone } from '../../pages/notices.ts';
import { badge } from '../../pages/elements.ts';

const tones: Readonly<Record<string, Tone>> = {
  completed: 'good',
  delivered: 'good',
  settlement_unknown: 'warn',
  settling: 'warn',
  dead_lettered: 'bad',
  settlement_failed: 'bad',
  refunded: 'plain',
};

const texts: Readonly<Record<string, string>> = {
  dead_lettered: 'not delivered',
  delivered: 'with a runner',
};

/** The state of a payment in words. */
export function stateText(state: string): string {
  return texts[state] ?? state.replaceAll('_', ' ');
}

export function stateBadge(state: string): Html {
  return badge(stateText(state), tones[state] ?? 'plain');
}
