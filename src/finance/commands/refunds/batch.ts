import { writeFile } from 'node:fs/promises';
import { safeBatch } from '../../rules/refund-batch.ts';
import { countOf } from '../../../base/values/count-text.ts';
import type { Chain } from '../../../payments/peers/chain/chain.ts';
import { projectToHead } from '../../../audit/use-cases/projections/project.ts';
import {
  type BatchOrder,
  type BatchSender,
  type LeftOut,
  planBatch,
  type PlanAnswer,
  startBatch,
} from '../../use-cases/refunds/make-batch.ts';
import type { SendRefusal } from '../../use-cases/refunds/send-refund.ts';
import {
  ArgumentError,
  readAddress,
  readCount,
  readNetwork,
  readOperator,
  readOptions,
  requireWritable,
} from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { moneyText } from '../../terminal/money-text.ts';
import { type ChainSources, readChainSources, withSources } from '../../terminal/record-transfer.ts';
import {
  checkSealedOptions,
  readAttestedBy,
  readSince,
  refuseChanged,
  refuseUnsealed,
  type SealedValues,
} from '../../terminal/require-sealed.ts';
import { finding, notDone, say } from '../../../base/terminal/terminal.ts';
import { moneyCommands } from '../../terminal/money-descriptions.ts';

const mostRefunds = 500;

const whyLeftOut: Readonly<Record<SendRefusal, string>> = {
  not_due: 'is not due any more',
  payment_unproven: 'is not proven on the chain: only the facilitator or an operator says that it was paid',
  payment_not_final: 'was paid in a block that is not final yet',
  not_shown: 'is not shown by the chain',
  changed: 'has events that are not those that the log has sealed',
  under_way: 'has a refund under way: record it, or give it up with `tollbook refunds abandon`',
  not_started: 'has no refund under way',
  superseded: 'was changed by another command at the same moment',
  chain_unavailable: 'could not be looked up on the chain',
};

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { order, sender, out, safe, sealed, sources } = readRequest(args);
  const attestedBy = await readAttestedBy(sealed);
  await requireWritable('out', out);
  if (safe !== undefined) await requireWritable('safe', safe);
  return withSources(sources, async ({ ledger, chains }) => {
    if (!chains.has(order.network))
      throw new ArgumentError(
        `no RPC for ${order.network} is known: name one with --rpc ${order.network}=URL`,
      );
    await projectToHead(ledger);
    const since = await readSince(attestedBy, ledger.pool);
    const changed = await refuseChanged(sealed, ledger.pool, since);
    if (changed !== undefined) return changed;
    const plan = await planBatch(ledger.pool, order, chains, sender, since);
    if (plan.kind !== 'planned') return refusePlan(plan, order);
    const unsealed = await refuseUnsealed(sealed, { pool: ledger.pool, since }, plan.asOfSeq);
    if (unsealed !== undefined) return unsealed;
    const spent = await refuseSpentNonce(sender, chains.get(order.network));
    if (spent !== undefined) return spent;
    // from here on no other operator sends one of them, and no worker delivers their calls
    if (plan.startedBefore.length > 0)
      say(
        'They were started before, for these nonces: the file is written again, and no other refund is started.',
      );
    const { batch, leftOut } = await startBatch(ledger, plan, order.network, sender);
    for (const one of [...plan.leftOut, ...leftOut]) say(leftOutText(one));
    if (batch.refunds.length === 0) {
      say(`No refund is due on ${order.network} that the chain proves. No file was written.`);
      return exitCodes.done;
    }
    await writeFile(out, `${JSON.stringify(batch, undefined, 2)}\n`);
    if (safe !== undefined)
      await writeFile(safe, `${JSON.stringify(safeBatch(batch, Date.now()), undefined, 2)}\n`);
    for (const refund of batch.refunds)
      say(`${moneyText(refund)} to ${refund.to} for quote ${refund.quote_digest}`);
    say(
      `${countOf(batch.refunds.length, 'refund')} in ${[out, safe].filter((file) => file !== undefined).join(' and ')}.`,
    );
    say(
      `They are started: their calls are not delivered, and no other batch has them. Record them with \`tollbook refunds record --batch ${out} --tx …\`, ` +
        `or give up what cannot be sent any more with \`tollbook refunds abandon --batch ${out} --rpc …\`.`,
    );
    if (plan.isCut) say('More are due: make the next batch for them.');
    return exitCodes.done;
  });
}

/** A nonce that was spent before would immediately prove that a refund cannot land, while its operator still sends it. */
async function refuseSpentNonce(
  { sender, firstNonce }: BatchSender,
  chain: Chain | undefined,
): Promise<ExitCode | undefined> {
  if (sender === undefined || firstNonce === undefined || !chain) return undefined;
  const latest = await chain.latestBlock();
  const spent = latest.kind === 'answer' ? await chain.readSpentNonces(sender, latest.block.hash) : latest;
  if (spent.kind === 'unavailable')
    return notDone(
      `the RPC did not say which nonces of ${sender} are spent: ${spent.cause}. Nothing was started`,
    );
  if (firstNonce >= spent.value) return undefined;
  return notDone(
    `--nonce ${firstNonce} of ${sender} is spent already: its next one is ${spent.value}. Nothing was started, and no file was written`,
  );
}

/** Says why no batch can be made. */
function refusePlan(plan: Exclude<PlanAnswer, { kind: 'planned' }>, { network }: BatchOrder): ExitCode {
  switch (plan.kind) {
    case 'changed':
      return finding(
        `The events ${plan.seqs.join(', ')} are not those that the log has sealed: somebody has changed them. ${payNothing}`,
      );
    case 'contradicted':
      return finding(
        `The read models say something else about the payments that events ${plan.seqs.join(', ')} started. ${payNothing}`,
      );
    case 'not_shown':
      return finding(
        `${network} does not show the payment of quote ${plan.quotes.join(', ')}: there may be nothing to refund. No file was written. ` +
          'Pay nothing before `tollbook verify` is sound and a reconciliation has explained it.',
      );
    case 'unavailable':
      return notDone(
        `the RPC for ${network} did not say whether the payments were made: ${plan.cause}. No file was written`,
      );
  }
}

const payNothing = 'No file was written. Pay nothing before `tollbook verify` is sound.';

function leftOutText({ quoteDigest, code, detail }: LeftOut): string {
  const more = detail === undefined ? '' : ` (${detail})`;
  return `left out: quote ${quoteDigest} ${whyLeftOut[code]}${more}`;
}

interface Request {
  readonly order: BatchOrder;
  readonly sender: BatchSender;
  readonly out: string;
  readonly safe: string | undefined;
  readonly sealed: SealedValues & { readonly 'attested-by'?: string | undefined };
  readonly sources: ChainSources;
}

function readRequest(args: readonly string[]): Request {
  const { values } = readOptions(moneyCommands['refunds batch'], args);
  const { out, safe, from, nonce, config, rpc } = values;
  checkSealedOptions(values);
  const network = readNetwork(values.network);
  if (out === undefined)
    throw new ArgumentError('--out is missing: the file of the batch, which is needed to record its refunds');
  const max = readCount('max', values.max, mostRefunds);
  const sender =
    from === undefined ? undefined : readAddress(from, '--from is the account or Safe that sends the batch');
  if (nonce !== undefined && (!sender || !/^(?:0|[1-9]\d{0,14})$/.test(nonce)))
    throw new ArgumentError('--nonce is the next nonce of --from, a whole number from 0');
  const by: BatchSender = {
    operator: readOperator(values.by),
    sender,
    firstNonce: nonce === undefined ? undefined : Number(nonce),
    isOneTransaction: safe !== undefined,
  };
  const sources = readChainSources(config, rpc);
  return { order: { network, max }, sender: by, out, safe, sealed: values, sources };
}
