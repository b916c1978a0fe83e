import { schemes } from '../../payments/rules/schemes/schemes.ts';
import { payableTokens } from '../../payments/rules/payment.ts';
import type { SettlementOption } from '../../payments/rules/quote.ts';
import type { GasSponsoringKey } from '../../base/values/gas-sponsoring.ts';
import { type AcceptedToken, tokenName } from '../../base/values/token.ts';
import type { SupportedAnswer } from '../../payments/peers/facilitator/facilitator.ts';
import type { Facilitators } from '../../payments/peers/facilitator/facilitators.ts';
import { isAmong, kindOf, type SupportedKind } from '../../payments/rules/supported-kinds.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { JobsConfig } from '../../base/config/config.ts';

/** Why a job has a price but no offer, for programs. */
export const noOfferReasons = [
  'settles_no_accepted_token',
  'tokens_contradict_their_contracts',
  'no_current_rate',
] as const;

/** A token that the gateway accepts and cannot offer now, as clients read it. */
export interface NotOffered extends TokenName {
  readonly symbol: string;
  readonly reason: 'no_current_rate';
}

type TokenName = Pick<SettlementOption, 'network' | 'asset'>;
type Payable = Pick<SettlementOption, 'network' | 'transferMethod'>;

const noTokens: ReadonlySet<string> = new Set();
const none: readonly NotOffered[] = [];
const noApprovals: readonly GasSponsoringKey[] = [];

export type Offers = ReturnType<typeof createOffers>;

/**
 * The options that can be offered: those in tokens with a current rate whose contracts do not contradict the configuration, on
 * networks that a facilitator settles, by its last answer. Before its first answer that is every option; while it cannot be reached, its last
 * answer applies. The tokens are named `network/asset`, and each set is the same object while nothing changes.
 * @param wrongTokens those that contradict the configuration
 * @param unratedTokens those without a current rate
 */
export function createOffers(
  log: OperatorLog,
  wrongTokens: () => ReadonlySet<string> = () => noTokens,
  unratedTokens: () => ReadonlySet<string> = () => noTokens,
) {
  let settled: readonly SupportedKind[] | undefined;
  let approvals = noApprovals;
  let withdrawn = new Set<string>();
  let wrong = wrongTokens();
  let unrated = unratedTokens();
  // the hash of an offer is cached by its list of options: the same offer must be the same list object
  let lists = new WeakMap<readonly SettlementOption[], readonly SettlementOption[]>();

  /** Whether a facilitator settles such payments, by version 2 of x402. */
  const isSettled = ({ network, transferMethod }: Payable): boolean => {
    const { x402Scheme } = schemes[transferMethod];
    return !settled || isAmong(settled, { scheme: x402Scheme, network });
  };

  /** Whether the token's contract contradicts the configuration: then no payment in it is started. */
  const isWrong = (token: TokenName): boolean => wrongTokens().has(tokenName(token));
  /** Whether the token has a current rate: then its present price may be paid. */
  const hasRate = (token: TokenName): boolean => !unratedTokens().has(tokenName(token));
  const isOffered = (option: SettlementOption): boolean =>
    isSettled(option) && !isWrong(option) && hasRate(option);

  /** An option by `upto` names the account that its transfer is submitted from; undefined before any facilitator has said it. */
  const withSubmitter = (option: SettlementOption): SettlementOption | undefined => {
    const { network, transferMethod } = option;
    if (transferMethod !== 'upto') return option;
    const [submitter] = kindOf(settled ?? [], { scheme: schemes.upto.x402Scheme, network })?.submitters ?? [];
    return submitter && { ...option, submitter };
  };

  return {
    isSettled,
    isWrong,
    hasRate,
    /** The approvals of Permit2 that the facilitators submit: the same list object while they say the same. */
    approvalsFor: (options: readonly Payable[]): readonly GasSponsoringKey[] =>
      options.some(({ transferMethod }) => transferMethod !== 'eip3009') ? approvals : noApprovals,
    /** Those of these tokens that are not offered since they have no current rate. */
    withoutRate: (tokens: readonly AcceptedToken[]): readonly NotOffered[] =>
      unratedTokens().size === 0
        ? none
        : tokens
            .filter((token) => !hasRate(token))
            .map(({ network, asset, symbol }) => ({ network, asset, symbol, reason: 'no_current_rate' })),
    /** Those of these options that can be offered: the same list object while facilitators, chains and rates allow the same. */
    of(options: readonly SettlementOption[]): readonly SettlementOption[] {
      if (wrong !== wrongTokens() || unrated !== unratedTokens()) {
        wrong = wrongTokens();
        unrated = unratedTokens();
        lists = new WeakMap();
      }
      let list = lists.get(options);
      if (!list) {
        list = options.every((option) => isOffered(option) && option.transferMethod !== 'upto')
          ? options
          : options.filter(isOffered).flatMap((option) => withSubmitter(option) ?? []);
        lists.set(options, list);
      }
      return list;
    },
    /** Why none of these options can be offered. */
    whyNone(options: readonly SettlementOption[]): (typeof noOfferReasons)[number] {
      if (options.some((option) => !isWrong(option) && hasRate(option))) return 'settles_no_accepted_token';
      return unratedTokens().size > 0 ? 'no_current_rate' : 'tokens_contradict_their_contracts';
    },
    /** Applies the facilitators' answer. Logs each token once when it leaves the offers, and when it returns. */
    follow(
      { kinds, approvals: submitted }: Extract<SupportedAnswer, { kind: 'kinds' }>,
      tokens: readonly AcceptedToken[],
    ): void {
      if (submitted.join() !== approvals.join()) approvals = submitted;
      if (!settled || namesOf(kinds).symmetricDifference(namesOf(settled)).size > 0) {
        settled = kinds;
        lists = new WeakMap();
      }
      const before = withdrawn;
      withdrawn = new Set(tokens.filter((token) => !isSettled(token)).map(tokenName));
      for (const token of tokens) {
        const { network, asset, symbol } = token;
        const [was, is] = [before.has(tokenName(token)), withdrawn.has(tokenName(token))];
        if (is && !was)
          log.warn({ network, asset, symbol }, 'no facilitator settles this token: it is not offered');
        if (was && !is) log.info({ network, asset, symbol }, 'a facilitator settles this token again');
      }
    },
  };
}

/** Those of version 2. */
function namesOf(kinds: readonly SupportedKind[]): Set<string> {
  const kindsV2 = kinds.filter(({ x402Version }) => x402Version === 2);
  return new Set(
    kindsV2.map(({ scheme, network, submitters: [first] = [] }) => `${scheme} ${network} ${first}`),
  );
}

/** Asks the facilitators what they settle and updates the offers. Never throws. */
export async function refreshOffers({
  facilitators,
  offers,
  settings,
}: {
  readonly facilitators: Pick<Facilitators, 'supported'>;
  readonly offers: Offers;
  readonly settings: Pick<JobsConfig, 'acceptedTokens'>;
}): Promise<SupportedAnswer> {
  const answer = await facilitators.supported();
  if (answer.kind === 'kinds') offers.follow(answer, settings.acceptedTokens);
  return answer;
}

/** The kinds of payments in accepted tokens that no facilitator said it settles, as a person reads them. */
export function unsettledKinds({
  offers,
  settings,
}: {
  readonly offers: Pick<Offers, 'isSettled'>;
  readonly settings: Pick<JobsConfig, 'acceptedTokens' | 'routes'>;
}): string[] {
  const { acceptedTokens, routes } = settings;
  const isMetered = routes?.all.values().some(({ chargeHeader }) => chargeHeader !== undefined) === true;
  const kinds = isMetered ? payableTokens(acceptedTokens) : acceptedTokens;
  const missing = kinds
    .filter((token) => !offers.isSettled(token))
    .map(({ network, transferMethod }) => `${schemes[transferMethod].x402Scheme} payments on ${network}`);
  return [...new Set(missing)];
}
