import type { Caip2 } from '../domain/primitives.ts';
import { confirmSettlement } from '../gateway/confirm-settlement.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Chain } from '../peers/chain.ts';
import { collectFollowUps, type Confirmation, endFollowUps, takeConfirmations } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;
const eventsAtOnce = 5_000;
const confirmationsAtOnce = 64;

/** Follows the ledger, and with it each settlement until it is final on its chain. */
export function startConfirmer(current: () => Gateway): Loop {
  return startLoop(
    async () => {
      const gateway = current();
      const networks = gateway.x402.confirm === 'never' ? [] : [...gateway.chains];
      const read = await collectFollowUps(
        gateway.pool,
        networks.map(([network]) => network),
        eventsAtOnce,
      );
      const taken = await Promise.all(
        networks.map(([network, chain]) => confirmNetwork(gateway, network, chain)),
      );
      return read === eventsAtOnce || taken.includes(confirmationsAtOnce);
    },
    pollMs,
    (error) => current().log.error({ err: error }, 'settlements could not be confirmed'),
  );
}

/** Returns how many were looked at. A chain that does not answer is asked again at the next step. */
async function confirmNetwork(gateway: Gateway, network: Caip2, chain: Chain): Promise<number> {
  const finalized = await chain.finalizedBlock();
  if (finalized.kind === 'unavailable') return 0;
  const { block } = finalized;
  const confirmations = await takeConfirmations(gateway.pool, network, block.number, confirmationsAtOnce);
  const isFinal = await finalBlocks(chain, confirmations);
  const done = await Promise.all(
    confirmations.map(async (confirmation) => {
      // the usual case: the block that proved it is still there, and nothing has to be read
      if (isFinal(confirmation)) return confirmation.seq;
      const isOver = await confirmSettlement(gateway, confirmation, { chain, finalized: block });
      return isOver ? confirmation.seq : [];
    }),
  );
  await endFollowUps(gateway.pool, 'confirm', done.flat());
  return confirmations.length;
}

/** Tells whose block is the one the chain has at that height; each height is asked for once. */
async function finalBlocks(
  chain: Chain,
  confirmations: readonly Confirmation[],
): Promise<(of: Confirmation) => boolean> {
  const heights = new Set(confirmations.flatMap(({ block }) => block?.number ?? []));
  const hashes = new Map(
    await Promise.all(
      [...heights].map(async (height) => {
        const at = await chain.blockHashAt(height);
        return [height, at.kind === 'answer' ? at.hash : undefined] as const;
      }),
    ),
  );
  return ({ block }) => block !== undefined && hashes.get(block.number) === block.hash;
}
