import { writeFile } from 'node:fs/promises';
import type pg from 'pg';
import { type RefundBatch, safeBatch } from '../../../domain/payments/refund-batch.ts';
import { countOf } from '../../../domain/values/count-text.ts';
import { projectToHead } from '../../../projections/project.ts';
import { findUnpaid } from '../../../refunds/find-unpaid.ts';
import { type BatchOrder, makeBatch } from '../../../refunds/make-batch.ts';
import { ArgumentError, readNetwork, readOptions, requireWritable } from '../../arguments.ts';
import { type ExitCode, exitCodes } from '../../exit-codes.ts';
import { closeChains, openChains, readConfig } from '../../chains.ts';
import { withLedger } from '../../ledger.ts';
import { moneyText } from '../../money-text.ts';
import { type ChainSources, readChainSources } from '../../record-transfer.ts';
import {
  checkSealedOptions,
  databaseSealedOptions,
  refuseChanged,
  refuseUnsealed,
  type SealedValues,
} from '../../require-sealed.ts';
import { fail, say } from '../../terminal.ts';

const mostRefunds = 500;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { order, out, safe, sealed, chains } = readRequest(args);
  await requireWritable('out', out);
  if (safe !== undefined) await requireWritable('safe', safe);
  return withLedger(async (ledger) => {
    await projectToHead(ledger);
    const changed = await refuseChanged(sealed, ledger.pool);
    if (changed !== undefined) return changed;
    const made = await makeBatch(ledger.pool, order);
    if (made.kind !== 'made') {
      const seqs = made.seqs.join(', ');
      fail(
        (made.kind === 'changed'
          ? `The events ${seqs} are not those that the log has sealed: somebody has changed them. `
          : `The read models say something else about the payments that events ${seqs} started. `) +
          'No file was written. Pay nothing before `tollbook verify` is sound.',
      );
      return exitCodes.finding;
    }
    const { batch, unproven, underWay, isCut } = made;
    const unsealed = await refuseUnsealed(sealed, ledger, batch.as_of_seq);
    if (unsealed !== undefined) return unsealed;
    for (const digest of unproven)
      say(
        `left out: quote ${digest} is not proven on the chain: only the facilitator or an operator says that it was paid`,
      );
    for (const { quoteDigest, operator } of underWay)
      say(`left out: ${operator} is sending the refund of quote ${quoteDigest} from the console`);
    if (batch.refunds.length === 0) {
      say(`No refund is due on ${order.network} that the chain proves. No file was written.`);
      return exitCodes.done;
    }
    const unpaid = chains && (await refuseUnpaid(ledger.pool, batch, chains));
    if (unpaid !== undefined) return unpaid;
    await writeFile(out, `${JSON.stringify(batch, undefined, 2)}\n`);
    if (safe !== undefined)
      await writeFile(safe, `${JSON.stringify(safeBatch(batch, Date.now()), undefined, 2)}\n`);
    for (const refund of batch.refunds)
      say(`${moneyText(refund)} to ${refund.to} for quote ${refund.quote_digest}`);
    say(
      `${countOf(batch.refunds.length, 'refund')} in ${[out, safe].filter((file) => file !== undefined).join(' and ')}.`,
    );
    say(
      `They stay due until they are recorded, so another batch has them again: record them with \`tollbook refunds record --batch ${out} --tx …\` before anybody makes one.`,
    );
    if (isCut) say('More are due: record these first, then make the next batch.');
    return exitCodes.done;
  });
}

interface Request {
  readonly order: BatchOrder;
  readonly out: string;
  readonly safe: string | undefined;
  readonly sealed: SealedValues;
  /** Where the payments are looked up; undefined: nowhere. */
  readonly chains: ChainSources | undefined;
}

/** The exit code where the network does not show the payment of a refund, after standard error says so; undefined where it shows all. */
async function refuseUnpaid(
  pool: pg.Pool,
  batch: RefundBatch,
  { config, rpcUrls }: ChainSources,
): Promise<ExitCode | undefined> {
  const chains = openChains(config === undefined ? undefined : await readConfig(config), rpcUrls);
  try {
    const chain = chains.get(batch.network);
    if (!chain)
      throw new ArgumentError(
        `no RPC for ${batch.network} is known: name one with --rpc ${batch.network}=URL`,
      );
    const found = await findUnpaid(pool, batch, chain);
    if (found.kind === 'unavailable') {
      fail(
        `the RPC for ${batch.network} did not say whether the payments were made: ${found.cause}. No file was written`,
      );
      return exitCodes.notDone;
    }
    if (found.unpaid.length === 0) return undefined;
    fail(
      `${batch.network} does not show the payment of quote ${found.unpaid.join(', ')}: there may be nothing to refund. No file was written. ` +
        'Pay nothing before `tollbook verify` is sound and a reconciliation has explained it.',
    );
    return exitCodes.finding;
  } finally {
    await closeChains(chains);
  }
}

function readRequest(args: readonly string[]): Request {
  const { values } = readOptions({
    args: [...args],
    options: {
      ...databaseSealedOptions,
      network: { type: 'string', default: '' },
      out: { type: 'string' },
      safe: { type: 'string' },
      max: { type: 'string', default: '100' },
      config: { type: 'string' },
      rpc: { type: 'string', multiple: true, default: [] },
    },
  });
  const { out, safe } = values;
  const max = Number(values.max);
  checkSealedOptions(values);
  const network = readNetwork(values.network);
  if (out === undefined)
    throw new ArgumentError('--out is missing: the file of the batch, which is needed to record its refunds');
  if (!Number.isInteger(max) || max < 1 || max > mostRefunds)
    throw new ArgumentError(`--max is a whole number from 1 to ${mostRefunds}`);
  const { config, rpc } = values;
  const chains = config === undefined && rpc.length === 0 ? undefined : readChainSources(config, rpc);
  return { order: { network, max }, out, safe, sealed: values, chains };
}
