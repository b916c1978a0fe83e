import { bytesToHex } from 'viem/utils';
import {
  readSpendAuth,
  recoverSpender,
  type SpendAuth,
  spendAuthDigest,
  spendAuthHash,
  spendTermsRefusal,
} from '../../../accounts/rules/spend/spend-auth.ts';
import { countAuthFailure } from '../../../accounts/store/credit.ts';
import type { SpendContext } from '../context.ts';
import { invalidSpend, type SpendRefusal } from './refusal.ts';
import { domainOf, type VerifiedSpend } from './spend.ts';

/** A request's header `X-Payment-Signature`, and its limits. */
export interface SpendRequest {
  readonly header: string;
  /** Names the client for the limit of failed credentials. */
  readonly client: string;
  readonly failedAuthPerMinute: number;
  /** How long at most the request waits for the first byte of an answer. */
  readonly firstByteSecs: number;
  /** The header `X-Payment-Secret`. */
  readonly secret: string | undefined;
}

/**
 * Checks a spend authorization: the operator's terms first, then the signature against the account's key on the chain.
 * Nothing is recorded and no nonce is used up. Wrong signatures count against the client.
 */
export async function verifySpend(
  context: SpendContext,
  request: SpendRequest,
): Promise<{ readonly kind: 'verified'; readonly spend: VerifiedSpend } | SpendRefusal> {
  const { settings, prepaid, pool, log } = context;
  const { client, failedAuthPerMinute: perMinute, firstByteSecs, secret } = request;
  const auth = readSpendAuth(request.header);
  if ('refusal' in auth) return invalidSpend(auth.refusal);
  const refusal = checkTerms(context, auth, firstByteSecs);
  if (refusal) return refusal;
  const failures = `auth:${client}`;
  if (!(await countAuthFailure(pool, failures, perMinute, false))) return { kind: 'too_many_failures' };
  const domain = domainOf(settings);
  const signer = recoverSpender(domain, auth);
  const account = await prepaid.getAccount(auth.commitment);
  if (account.kind === 'unavailable') {
    log.warn({ cause: account.cause, err: account.error }, 'the prepaid contract could not be reached');
    return { kind: 'chain_unavailable' };
  }
  if (signer === undefined || signer !== account.value?.spendingKey) {
    await countAuthFailure(pool, failures, perMinute, true);
    return invalidSpend('signer_mismatch');
  }
  const { token, balance, nonce } = account.value;
  if (token !== settings.token)
    return invalidSpend(
      'invalid_spend_auth',
      `The account holds another token; this gateway accepts ${settings.token}. Nothing was charged.`,
    );
  // an account that has used this nonce may have been debited for it already: acceptSpend checks that
  const isNonceUsed = auth.nonce < nonce;
  if (!isNonceUsed && balance < auth.amount) return invalidSpend('insufficient_balance');
  const digest = bytesToHex(spendAuthDigest(domain, auth));
  const authHash = spendAuthHash(auth);
  return { kind: 'verified', spend: { auth, authHash, digest, firstByteSecs, secret, isNonceUsed } };
}

function checkTerms(
  context: Pick<SpendContext, 'settings' | 'prepaid' | 'lane'>,
  auth: SpendAuth,
  firstByteSecs: number,
): SpendRefusal | undefined {
  const { serviceId, minCharge, maxSpend, authorizeTimeoutMs, nonceWaitMs } = context.settings;
  const { operator } = context.prepaid;
  const untilSecs =
    neededUntilSecs(context, firstByteSecs) + Math.ceil((authorizeTimeoutMs + nonceWaitMs) / 1_000);
  const terms = { operator, serviceId: BigInt(serviceId), minCharge, maxSpend };
  const refusal = spendTermsRefusal(auth, terms, untilSecs);
  if (!refusal) return undefined;
  const messages: Partial<Record<typeof refusal, string>> = {
    operator_mismatch: `The spend authorization names another operator; sign one for ${operator}. Nothing was charged.`,
    service_id_mismatch: `The spend authorization names another service; sign one for service ${serviceId}. Nothing was charged.`,
    below_min_charge: `The spend authorization is below the minimum charge of ${minCharge} atoms. Nothing was charged.`,
    exceeds_max_spend: `The spend authorization is above the maximum of ${maxSpend} atoms. Nothing was charged.`,
    invalid_spend_auth:
      `The spend authorization expires too early for its request and payout; sign one with an expiry of ` +
      `${untilSecs} (Unix seconds) or later. Nothing was charged.`,
  };
  return invalidSpend(refusal, messages[refusal]);
}

/** The earliest expiry (Unix seconds) of a spend that lands now and can still be paid out for its answer. */
export function neededUntilSecs(
  { settings, lane }: Pick<SpendContext, 'settings' | 'lane'>,
  firstByteSecs: number,
): number {
  const nowSecs = Math.ceil((Date.now() + lane.state.clockOffsetMs) / 1_000);
  return nowSecs + firstByteSecs + settings.claimMarginSecs;
}
