import type { ModelConfig, SpendConfig } from '../config/config.ts';
import type { EventData, LedgerEvent } from '../domain/events/event.ts';
import { openAiError, type OpenAiError } from '../domain/errors/openai-error.ts';
import {
  atomsOfMicros,
  type SpendAuth,
  type SpendAuthFault,
  type SpendDomain,
} from '../domain/spend/spend-auth.ts';
import type { Address, Caip2, Hex } from '../domain/values/primitives.ts';
import type { PrepaidContract } from '../peers/prepaid/prepaid-contract.ts';
import type { Claim } from '../store/append-batch.ts';
import type { Lane } from '../store/lane.ts';
import type { OperatorBalance } from './operator-balance.ts';
import type { SpendQueue } from './spend-queue.ts';

/** What payment by spend authorizations works with. */
export interface Spending {
  readonly settings: SpendConfig;
  readonly prepaid: PrepaidContract;
  readonly queue: SpendQueue;
  readonly operatorBalance: OperatorBalance;
}

/** A spend that is signed by its account's key and keeps to the operator's terms. */
export interface VerifiedSpend {
  readonly auth: SpendAuth;
  readonly authHash: Hex;
  /** Of all that is signed. */
  readonly digest: Hex;
}

/** A spend that this process has taken for one completion. */
export interface TakenSpend extends VerifiedSpend {
  readonly claim: Claim;
  readonly facts: SpendFacts;
  readonly record: SpendRecorder;
}

/** What every event of a spend says of it. */
export type SpendFacts = EventData<'spend_earned'>;

/** Writes a spend's story down. False where another process has taken it away: then it counts for nothing here. */
export type SpendRecorder = (events: readonly LedgerEvent[], freed?: readonly Claim[]) => Promise<boolean>;

/**
 * Follows a stream from a version on: each append waits for the one before it, and must find the stream as that left it.
 * Nothing follows a release.
 */
export function recorderOf(lane: Lane, stream: string, version: number): SpendRecorder {
  let expect = version;
  let isReleased = false;
  let last: Promise<unknown> = Promise.resolve();
  return (events, freed = []) => {
    const recorded = last.then(async () => {
      if (isReleased) return false;
      const { outcome } = await lane.append({ stream, expect, events, freed }, { urgent: true });
      if (outcome !== 'ok') return false;
      expect += events.length;
      isReleased = events.some(({ type }) => type === 'spend_released');
      return true;
    });
    last = recorded.catch(() => undefined);
    return recorded;
  };
}

export function spendStream(chatId: string): string {
  return `spend:${chatId}`;
}

export function domainOf({ chainId, contract }: SpendConfig): SpendDomain {
  return { chainId, contract };
}

export function factsOf(
  { network, contract }: SpendConfig,
  { auth, authHash }: Pick<VerifiedSpend, 'auth' | 'authHash'>,
  chatId: string,
): SpendFacts {
  const { commitment, nonce, operator, amount } = auth;
  return {
    chat_id: chatId,
    network,
    contract,
    commitment,
    nonce: String(nonce),
    auth_hash: authHash,
    operator,
    amount: String(amount),
  };
}

/** A spend as it stands in the ledger, ready to be landed again. */
export function authFromData(data: EventData<'spend_accepted'>): SpendAuth {
  return {
    commitment: data.commitment as Hex,
    serviceId: BigInt(data.service_id),
    jobIndex: data.job_index,
    amount: BigInt(data.amount),
    operator: data.operator as Address,
    nonce: BigInt(data.nonce),
    expiry: BigInt(data.expiry),
    signature: data.signature as Hex,
  };
}

/** What a spend is claimed by: once for ever, whatever it is spelled like. */
export function claimOf(settings: SpendConfig, { commitment, nonce }: SpendAuth, binding: Hex): Claim {
  const { chainId, contract } = settings;
  return {
    kind: 'spend_auth',
    owner: commitment,
    scope: `${chainId}/${contract}`,
    key: String(nonce),
    binding,
  };
}

/**
 * How long a spend must hold at least, beside the margin for claiming it: until every upstream of a model was asked. An
 * answer that has begun may take longer, since it is claimed from its beginning on.
 */
export function askingSecs(
  upstreams: ReadonlyMap<string, { readonly connectTimeoutMs: number; readonly firstByteTimeoutMs: number }>,
  models: Iterable<ModelConfig>,
): number {
  const waitsMs = [...models].map(({ targets }) =>
    targets.reduce((sum, { upstream }) => {
      const { connectTimeoutMs = 0, firstByteTimeoutMs = 0 } = upstreams.get(upstream) ?? {};
      return sum + connectTimeoutMs + firstByteTimeoutMs;
    }, 0),
  );
  return Math.ceil(Math.max(0, ...waitsMs) / 1_000);
}

/** What a client is told that sent nothing for a model that costs: how it can be paid. */
export interface PaymentOffer {
  /** Atoms that cover this request. */
  readonly amount: bigint;
  readonly token: Address;
  readonly recipient: Address;
  readonly network: Caip2;
}

export function offerOf({ settings, prepaid }: Spending, costMicros: bigint): PaymentOffer {
  const { token, network, minCharge, atomsPerUnit } = settings;
  const atoms = atomsOfMicros(costMicros, atomsPerUnit);
  return { amount: atoms > minCharge ? atoms : minCharge, token, recipient: prepaid.operator, network };
}

/** A fault with a sentence that says more where there is one. */
export function spendError(fault: SpendAuthFault, message?: string): OpenAiError {
  return openAiError(fault, message === undefined ? {} : { message });
}
