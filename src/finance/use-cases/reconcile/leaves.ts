import type { SkimmedEvent } from '../../../audit/rules/bookkeeping/reopened-quotes.ts';
import {
  decodeLeaf,
  eventDescriptors,
  isEventType,
  type RecordedEvent,
} from '../../../ledger/rules/event.ts';
import { UnreadableLedgerError } from '../../rules/reconcile/ledger-facts.ts';
import { ReconcileError } from './reconcile-error.ts';

/** Events that should be there are not. */
export function tooShort(size: number, last: number): ReconcileError {
  return new ReconcileError(
    'ledger_too_short',
    `${size} events were requested, but the ledger has only ${last}: the last ones are missing`,
  );
}

/** The ledger is another one than that which was folded. */
export function changedMeanwhile(): ReconcileError {
  return new ReconcileError(
    'ledger_unreadable',
    'events that exist already were changed while they were read. Nothing was stored: verify the ledger',
  );
}

const leafEnd = /"stream":"([^"]*)","type":"([a-z_]+)","version":\d+\}$/;
const longestEnd = 320;

/** Type and stream, from the end of a leaf: most events are irrelevant here, so they are not parsed. */
export function endOf(leaf: Buffer): SkimmedEvent {
  const [, stream = '', type = ''] =
    leafEnd.exec(leaf.toString('utf8', Math.max(0, leaf.length - longestEnd))) ?? [];
  return { type, stream, data: {} };
}

/** Whether a reconciliation folds events of a type. */
export function isNeeded(type: string): boolean {
  return isEventType(type) && eventDescriptors[type].reconciliation !== 'none';
}

export interface EventTaker {
  take(event: RecordedEvent): void;
}

/**
 * Gives an event to those who fold it.
 * @throws ReconcileError if it cannot be read
 */
export function takeLeaf(takers: readonly EventTaker[], leaf: Buffer, seq: number): void {
  try {
    const event = decodeLeaf(leaf);
    for (const taker of takers) taker.take(event);
  } catch (error) {
    if (error instanceof UnreadableLedgerError) throw new ReconcileError('ledger_unreadable', error.message);
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new ReconcileError('ledger_unreadable', `event ${seq} cannot be read: ${line.slice(0, 200)}`);
  }
}
