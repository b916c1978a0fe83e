import type { Caip2 } from '../domain/primitives.ts';
import { confirmWord, reopenReorged } from '../gateway/confirm-settlement.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Chain } from '../peers/chain.ts';
import { endFollowUps, type ProvenSettlement, takeFollowUps, takeProven } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;
const provenAtOnce = 128;
const wordsAtOnce = 16;

/** Follows settlements until they are final: a chain that is slow or away holds up no other. */
export function startConfirmer(current: () => Gateway): Loop {
  const running = new Map<Caip2, Promise<void>>();

  const confirm = async (gateway: Gateway, network: Caip2, chain: Chain): Promise<void> => {
    try {
      while (!gateway.stopping() && (await confirmNetwork(gateway, network, chain)));
    } catch (err) {
      gateway.log.error({ err, network }, 'settlements could not be confirmed');
    } finally {
      running.delete(network);
    }
  };

  const loop = startLoop(
    async () => {
      const gateway = current();
      if (gateway.x402.confirm === 'never') return;
      for (const [network, chain] of gateway.chains)
        if (!running.has(network)) running.set(network, confirm(gateway, network, chain));
    },
    pollMs,
    (error) => current().log.error({ err: error }, 'settlements could not be looked for'),
  );
  return {
    wake: () => loop.wake(),
    async stop() {
      await loop.stop();
      await Promise.all(running.values());
    },
  };
}

/** True where more may be waiting. A chain that does not answer is asked again at the next step. */
async function confirmNetwork(gateway: Gateway, network: Caip2, chain: Chain): Promise<boolean> {
  const { pool } = gateway;
  const finalized = await chain.finalizedBlock();
  if (finalized.kind === 'unavailable') return false;
  const { block } = finalized;
  const proven = await takeProven(pool, network, block.number, provenAtOnce);
  await endFollowUps(pool, 'confirm', await confirmProven(gateway, chain, proven));

  const words = await takeFollowUps(pool, 'confirm', network, wordsAtOnce);
  const done = await Promise.all(
    words.map(async (followUp) =>
      (await confirmWord(gateway, followUp, { chain, finalized: block })) ? followUp.seq : [],
    ),
  );
  await endFollowUps(pool, 'confirm', done.flat());
  return proven.length === provenAtOnce || words.length === wordsAtOnce;
}

/** Those that are done with. Each block is asked for once; in the usual case it is still there, and nothing is read. */
async function confirmProven(
  gateway: Gateway,
  chain: Chain,
  proven: readonly ProvenSettlement[],
): Promise<number[]> {
  const done: number[] = [];
  for (const [number, settlements] of Map.groupBy(proven, ({ blockNumber }) => blockNumber)) {
    const at = await chain.blockHashAt(number);
    // no answer, or a node that does not have this block yet, says nothing
    if (at.kind === 'unavailable' || at.hash === undefined) continue;
    for (const settlement of settlements) {
      const isOver = at.hash === settlement.blockHash || (await reopenReorged(gateway, settlement));
      if (isOver) done.push(settlement.seq);
    }
  }
  return done;
}
