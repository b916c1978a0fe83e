import type { SpendConfig } from '../../../base/config/config.ts';
import type { EventData, LedgerEvent } from '../../../ledger/rules/event.ts';
import type { SpendAuth, SpendDomain } from '../../../accounts/rules/spend/spend-auth.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import type { Landed } from '../../peers/prepaid/prepaid-contract.ts';
import type { Claim } from '../../../ledger/store/append-batch.ts';
import type { Lane } from '../../../ledger/store/lane.ts';

/** A spend that its account's key has signed, within the operator's terms. */
export interface VerifiedSpend {
  readonly auth: SpendAuth;
  readonly authHash: Hex;
  /** EIP-712 digest of everything that is signed. */
  readonly digest: Hex;
  /** How long at most its request waits for the first byte of an answer. The spend must stay valid beyond that. */
  readonly firstByteSecs: number;
  /** The client's secret for this request. A spend is public once it lands; the secret tells its sender from others. */
  readonly secret: string | undefined;
  /** Its account has used the nonce on the chain: perhaps for this spend, which is public then. */
  readonly isNonceUsed: boolean;
}

/** A spend that this process has accepted for one completion. */
export interface AcceptedSpend extends VerifiedSpend {
  /** The claim of its nonce. */
  readonly claim: Claim;
  /** The claim that binds it to its request. */
  readonly requestClaim: Claim;
  /** It was given to a node of its chain: from then on anyone may know it and land it. */
  isPublic: boolean;
  readonly facts: SpendFacts;
  readonly record: SpendRecorder;
}

/** What every event of a spend contains. */
export type SpendFacts = EventData<'spend_earned'>;

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

export function factsIn(data: EventData<'spend_accepted'>): SpendFacts {
  const { chat_id, network, contract, commitment, nonce, auth_hash, operator, amount } = data;
  return { chat_id, network, contract, commitment, nonce, auth_hash, operator, amount };
}

/** Where a transaction landed, as events contain it. */
export function landedData({ transaction, block }: Landed) {
  return { transaction, block_number: String(block.number), block_hash: block.hash };
}

/** Appends events to a spend's stream. False when another process has appended to it: this process no longer owns the spend. */
export type SpendRecorder = (events: readonly LedgerEvent[], freed?: readonly Claim[]) => Promise<boolean>;

/**
 * A recorder for a stream at an expected version: each append waits for the one before it and expects the version that it
 * left. Nothing is appended after a release.
 */
export function createSpendRecorder(lane: Lane, stream: string, version: number): SpendRecorder {
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
