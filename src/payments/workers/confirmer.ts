import type { Caip2 } from '../../base/values/primitives.ts';
import { type ConfirmationPorts, confirmReported, reopenReorged } from '../use-cases/confirm-settlement.ts';
import type { JobsConfig } from '../../base/config/config.ts';
import type { Chain } from '../peers/chain/chain.ts';
import {
  endFollowUps,
  type FinalSettlement,
  takeFollowUps,
  takeFinalSettlements,
} from '../store/follow-ups.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 1_000;
const maxProven = 128;
const maxReported = 16;

export interface ConfirmerPorts extends ConfirmationPorts {
  readonly chains: ReadonlyMap<Caip2, Chain>;
  readonly settings: JobsConfig;
  readonly stopping: () => boolean;
}

/** Follows settlements until they are final, each network on its own: a slow chain delays no other. */
export function startConfirmer(current: () => ConfirmerPorts): Loop {
  const running = new Map<Caip2, Promise<void>>();

  const confirm = async (context: ConfirmerPorts, network: Caip2, chain: Chain): Promise<void> => {
    try {
      while (!context.stopping() && (await confirmNetwork(context, network, chain)));
    } catch (err) {
      context.log.error({ err, network }, 'settlements could not be confirmed');
    } finally {
      running.delete(network);
    }
  };

  return startLoop(
    async () => {
      const context = current();
      if (context.settings.confirm === 'never') return;
      for (const [network, chain] of context.chains)
        if (!running.has(network)) running.set(network, confirm(context, network, chain));
    },
    {
      pollMs,
      log: current().log,
      failureMessage: 'settlements that wait for confirmation could not be read',
      onStopped: () => Promise.all(running.values()),
    },
  );
}

/** True if more may be waiting. A chain that does not answer is asked again at the next step. */
async function confirmNetwork(context: ConfirmerPorts, network: Caip2, chain: Chain): Promise<boolean> {
  const { pool } = context;
  const finalized = await chain.finalizedBlock();
  if (finalized.kind === 'unavailable') return false;
  const { block } = finalized;
  const proven = await takeFinalSettlements(pool, network, block.number, maxProven);
  await endFollowUps(pool, 'confirm', await confirmProven(context, chain, proven));

  const reported = await takeFollowUps(pool, 'confirm', network, maxReported);
  const done = await Promise.all(
    reported.map(async (followUp) => {
      const at = { chain, finalized: block };
      return (await isDone(context, followUp, () => confirmReported(context, followUp, at)))
        ? followUp.seq
        : [];
    }),
  );
  await endFollowUps(pool, 'confirm', done.flat());
  return proven.length === maxProven || reported.length === maxReported;
}

/** The follow-ups that are done. Each block is read once; usually it is still there, and the ledger is not read. */
async function confirmProven(
  context: ConfirmerPorts,
  chain: Chain,
  proven: readonly FinalSettlement[],
): Promise<number[]> {
  const done: number[] = [];
  for (const [number, settlements] of Map.groupBy(proven, ({ blockNumber }) => blockNumber)) {
    const at = await chain.blockHashAt(number);
    // no answer, or a node without this block, proves nothing
    if (at.kind === 'unavailable' || at.hash === undefined) continue;
    for (const settlement of settlements) {
      if (
        at.hash === settlement.blockHash ||
        (await isDone(context, settlement, () => reopenReorged(context, settlement)))
      )
        done.push(settlement.seq);
    }
  }
  return done;
}

/** A settlement that fails is due again later: it must not keep the others of its network from ending. */
async function isDone(
  context: ConfirmerPorts,
  { seq, stream }: Pick<FinalSettlement, 'seq' | 'stream'>,
  confirm: () => Promise<{ readonly kind: string }>,
): Promise<boolean> {
  try {
    return (await confirm()).kind === 'done';
  } catch (err) {
    context.log.error(
      { err, seq, quote_digest: stream },
      'a settlement could not be confirmed: it is tried again',
    );
    return false;
  }
}
