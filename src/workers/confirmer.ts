import type { Caip2 } from '../domain/values/primitives.ts';
import { confirmWord, reopenReorged } from '../jobs/confirm-settlement.ts';
import type { JobsContext } from '../jobs/context.ts';
import type { Chain } from '../peers/chain/chain.ts';
import { endFollowUps, type ProvenSettlement, takeFollowUps, takeProven } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;
const provenAtOnce = 128;
const wordsAtOnce = 16;

/** Follows settlements until they are final: a chain that is slow or away holds up no other. */
export function startConfirmer(current: () => JobsContext): Loop {
  const running = new Map<Caip2, Promise<void>>();

  const confirm = async (context: JobsContext, network: Caip2, chain: Chain): Promise<void> => {
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

/** True where more may be waiting. A chain that does not answer is asked again at the next step. */
async function confirmNetwork(context: JobsContext, network: Caip2, chain: Chain): Promise<boolean> {
  const { pool } = context;
  const finalized = await chain.finalizedBlock();
  if (finalized.kind === 'unavailable') return false;
  const { block } = finalized;
  const proven = await takeProven(pool, network, block.number, provenAtOnce);
  await endFollowUps(pool, 'confirm', await confirmProven(context, chain, proven));

  const words = await takeFollowUps(pool, 'confirm', network, wordsAtOnce);
  const done = await Promise.all(
    words.map(async (followUp) =>
      (await confirmWord(context, followUp, { chain, finalized: block })) ? followUp.seq : [],
    ),
  );
  await endFollowUps(pool, 'confirm', done.flat());
  return proven.length === provenAtOnce || words.length === wordsAtOnce;
}

/** Those that are done with. Each block is asked for once; in the usual case it is still there, and nothing is read. */
async function confirmProven(
  context: JobsContext,
  chain: Chain,
  proven: readonly ProvenSettlement[],
): Promise<number[]> {
  const done: number[] = [];
  for (const [number, settlements] of Map.groupBy(proven, ({ blockNumber }) => blockNumber)) {
    const at = await chain.blockHashAt(number);
    // no answer, or a node that does not have this block yet, says nothing
    if (at.kind === 'unavailable' || at.hash === undefined) continue;
    for (const settlement of settlements) {
      const isOver = at.hash === settlement.blockHash || (await reopenReorged(context, settlement));
      if (isOver) done.push(settlement.seq);
    }
  }
  return done;
}
