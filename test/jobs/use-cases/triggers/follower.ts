import { onTestFinished } from 'vitest';
import type { ChainTerms } from '../../../../src/base/values/triggers/trigger-terms.ts';
import { createEventReader } from '../../../../src/payments/peers/chain/event-reader.ts';
import { readTriggerProgress } from '../../../../src/calls/store/trigger-cursors.ts';
import type { ChainTrigger } from '../../../../src/jobs/use-cases/triggers/chain-look.ts';
import { createFiringCounts, type Fire } from '../../../../src/jobs/use-cases/triggers/fire.ts';
import { followChain } from '../../../../src/jobs/use-cases/triggers/follow-chain.ts';
import { triggerLags } from '../../../../src/jobs/use-cases/triggers/progress.ts';
import { newReadAhead } from '../../../../src/jobs/use-cases/triggers/read-next.ts';
import type { TestDatabase } from '../../../support/database.ts';
import { logLines } from '../../../support/log-lines.ts';

/** A ledger: it knows which firings it has. */
export interface Ledger {
  readonly bodies: readonly Body[];
  /** How often a firing came that it had already. */
  readonly repeated: () => number;
  /** Called before a firing is on record: the process may end there. */
  before: (atoms: number) => void;
  /** How many calls it takes. */
  room: number;
  readonly fire: Fire;
}

interface Body {
  readonly args: { readonly value: string };
  readonly block_number: string;
  readonly transaction: string;
}

export function ledger(): Ledger {
  const calls = new Map<string, Body>();
  let repeated = 0;
  const own: Ledger = {
    before: () => undefined,
    room: Infinity,
    get bodies() {
      return [...calls.values()];
    },
    repeated: () => repeated,
    async fire({ id, body }) {
      const read = JSON.parse(body) as Body;
      own.before(Number(read.args.value));
      if (calls.has(id)) {
        repeated += 1;
        return 'known';
      }
      if (calls.size >= own.room) return 'full';
      calls.set(id, read);
      return 'recorded';
    },
  };
  return own;
}

export const atomsOf = ({ bodies }: Ledger): number[] => bodies.map(({ args }) => Number(args.value));

/** A process that follows one trigger; each has its own memory. */
export function follower(database: TestDatabase, terms: ChainTerms, { fire }: Ledger) {
  const { network, chainId, rpcUrl } = terms;
  const reader = createEventReader({ network, chainId, rpcUrl, timeoutMs: 20_000 });
  onTestFinished(() => reader.close());
  const counts = createFiringCounts();
  const { lines, logger } = logLines();
  const trigger: ChainTrigger = { name: 'mints', terms };
  const parts = { pool: database.pool, log: logger, counts, reader, fire, isStopping: () => false };
  const context = { ...parts, ahead: newReadAhead() };
  const isDue = () =>
    database.asOwner((owner) =>
      owner.query(`update tollbook.task set due_at = taken_at where kind = 'chain_trigger'`),
    );
  return {
    lines,
    ahead: context.ahead,
    /** One look, due or not. */
    async look() {
      await isDue();
      await followChain(context, trigger);
    },
    async lag() {
      const [lag] = triggerLags({ cron: [], chain: [trigger] }, await readTriggerProgress(database.pool));
      return lag;
    },
    followIfDue: () => followChain(context, trigger),
  };
}
