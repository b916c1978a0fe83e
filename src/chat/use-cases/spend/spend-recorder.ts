import type { LedgerEvent } from '../../../ledger/rules/event.ts';
import type { Claim } from '../../../ledger/store/append-batch.ts';
import type { Lane } from '../../../ledger/store/lane.ts';

/** Appends events to a spend's stream. False when another process has appended to it: this process no longer owns the spend. */
export type SpendRecorder = (events: readonly LedgerEvent[], freed?: readonly Claim[]) => Promise<boolean>;

/**
 * A recorder for a stream at an expected version: each append waits for the one before it and expects the version that it
 * left. Nothing is appended after a release.
 */
export function createSpendRecorder(lane: Lane, stream: string, version: number): SpendRecorder {
  let expect = version;
  let isReleased = false;
  let last: Promise<unknown> = Promise.resolve();
  return (events, freed = []) => {
    const recorded = last.then(async () => {
      if (isReleased) return false;
      const { outcome } = await lane.append({ stream, expect, events, freed }, { urgent: true });
      if (outcome !== 'ok') return false;
      expect += events.length;
      isReleased = events.some(({ type }) => type === 'spend_released');
      return true;
    });
    last = recorded.catch(() => undefined);
    return recorded;
  };
}
