import type pg from 'pg';
import type { JobId } from '../../base/values/job.ts';
import { type Fingerprint, noncePart, type PaymentName } from '../rules/payment.ts';
import type { Caip2, Hex } from '../../base/values/primitives.ts';
import { sha256 } from '../../base/values/sha256.ts';
import type { Claim, NonceClaim } from '../../ledger/store/lane-command.ts';
import { claimKey, claimKeys } from '../../ledger/store/claim-key.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { streamName } from '../../ledger/store/expressions.ts';

/** The claim of a payment: the owner is the payer, the key the nonce. Its payer can leave the asset open. */
export function paymentClaim(payment: Fingerprint, binding: string): Claim {
  return { ...namedPayment(payment), part: noncePart(payment, payment.asset), binding };
}

function namedPayment({
  network,
  transferMethod,
  payer,
  nonce,
}: PaymentName): Omit<Claim, 'binding' | 'part'> {
  return { kind: 'payment', owner: payer, scope: `${network}/${transferMethod}`, key: nonce };
}

/** The hash of a payment's fingerprint: it never names two payments. Its other claims and its call are bound to it. */
export function paymentKey({ network, transferMethod, asset, payer, nonce }: Fingerprint): Hex {
  return sha256(`${network}/${transferMethod}/${noncePart({ transferMethod }, asset)}/${payer}/${nonce}`);
}

/** The range of the keys of the claims that a payment of this name can have made: one key, unless it leaves its asset open. */
export function paymentClaimKeys(name: PaymentName): [lowest: Buffer, highest: Buffer] {
  const named = namedPayment(name);
  if (name.asset === undefined) return claimKeys(named);
  const key = claimKey({ ...named, part: noncePart(name, name.asset) });
  return [key, key];
}

/** The claim of a caller's nonce: unique within a caller and a job. */
export function callerNonceClaim(caller: string, job: JobId, nonce: string): NonceClaim {
  const { serviceId, jobIndex } = job;
  return { kind: 'caller_nonce', caller, serviceId, jobIndex, nonceSha256: sha256(nonce) };
}

/** The claim of a payer's own id for a payment: unique within that payer. */
export function paymentIdClaim(payer: string, id: string, binding: string): Claim {
  return { kind: 'payment_id', owner: payer, scope: '', key: id, binding };
}

/**
 * A transfer's log entry on the chain counts once: for the payment that it proves, for a refund or for a sweep. `binding`
 * distinguishes the claimants: a payment's nonce, or the kind of the transfer. `unseen` is in ledgers of versions whose operators
 * could say that a payment was paid without saying by which log.
 */
export function transferClaim(
  network: Caip2,
  transaction: string,
  logIndex: number | 'unseen',
  binding: string,
): Claim {
  return { kind: 'transfer', owner: '', scope: network, key: transaction, part: String(logIndex), binding };
}

/** Which streams hold a transaction's transfers: a look-up by the places of their logs. */
export async function readTransferHolders(
  pool: pg.Pool,
  network: Caip2,
  transaction: string,
): Promise<(logIndex: number) => string | undefined> {
  const [lowest, highest] = claimKeys(transferClaim(network, transaction, 'unseen', ''));
  const rows = await queriesOn(pool)
    .selectFrom('tollbook.claim')
    .select(({ ref }) => ['key', streamName(ref('stream')).as('stream')])
    .where('key', '>=', lowest)
    .where('key', '<=', highest)
    .execute();
  const streams = new Map(rows.map(({ key, stream }) => [key.toString('hex'), stream]));
  return (logIndex) =>
    streams.get(claimKey(transferClaim(network, transaction, logIndex, '')).toString('hex'));
}

/** The quote whose payment has used a caller's nonce on a job. */
export async function findNonceUse(
  pool: pg.Pool,
  caller: string,
  job: JobId,
  nonce: string,
): Promise<string | undefined> {
  const { serviceId, jobIndex, nonceSha256 } = callerNonceClaim(caller, job, nonce);
  const used = await queriesOn(pool)
    .selectFrom('tollbook.caller_nonce')
    .select('stream')
    .where('caller', '=', caller)
    .where('service_id', '=', serviceId)
    .where('job_index', '=', jobIndex)
    .where('nonce_sha256', '=', nonceSha256)
    .executeTakeFirst();
  return used?.stream;
}
