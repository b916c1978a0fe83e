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

/** The state of a payment, as receipts say it. */
export function stateBadge(state: string): Html {
  return badge(state.replaceAll('_', ' '), tones[state] ?? 'plain');
}
