import { createTestClient, http } from 'viem';
import { readTransfers } from './checks/transfers.ts';
import type { RunParts } from './run-parts.ts';
import type { Reorg } from './schedule.ts';

const pollMs = 50;

/**
 * Replaces the last blocks by empty ones. Of the payments in them some land again, in another transaction; some are cancelled
 * by their payers; the others are left to the gateways.
 */
export async function reorg(
  parts: RunParts,
  { nth, delayMs, depth, fates }: Reorg,
  isLoadOver: () => boolean,
): Promise<void> {
  const { environment, payTo, fromBlock, records, frontRunner, gate, faults } = parts;
  const { chain, tokens, payers } = environment;
  const landed = () => readTransfers(chain.url, tokens, payTo, fromBlock);
  while ((await landed()).length < nth) {
    await faults.pause(pollMs);
    if (faults.over.aborted || isLoadOver()) return;
  }
  await faults.pause(delayMs);
  const lost = await gate.closedFor(async () => {
    const before = await landed();
    const node = createTestClient({ mode: 'anvil', transport: http(chain.url) });
    await node.request({ method: 'anvil_reorg', params: [depth, []] } as never);
    const after = new Set((await landed()).map(({ key }) => key));
    return before.filter(({ key }) => !after.has(key));
  });
  faults.count('reorg', `${depth} blocks, ${lost.length} payments`);
  for (const [index, { key, payer }] of lost.entries()) {
    records.reorged.add(key);
    const signed = records.signed.get(key);
    const account = payers.find(({ address }) => address.toLowerCase() === payer);
    const fate = fates[index % fates.length];
    if (!signed || fate === 'left') continue;
    const isDone =
      fate === 'cancelled'
        ? account !== undefined && (await frontRunner.cancel(signed.payment, account))
        : await frontRunner.submit(signed.payment);
    faults.count(`reorg: payment ${isDone ? '' : 'not '}${fate}`, signed.nonce.slice(0, 10));
  }
}
