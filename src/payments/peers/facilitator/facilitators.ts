import { type GasSponsoringKey, gasSponsoringKeys } from '../../../base/values/gas-sponsoring.ts';
import type { Address } from '../../../base/values/primitives.ts';
import { isAmong, kindOf, type SupportedKind } from '../../rules/supported-kinds.ts';
import type { PaymentSource } from './circuit-breaker.ts';
import type {
  Facilitator,
  FacilitatorRequest,
  SettleAnswer,
  SettleOptions,
  SupportedAnswer,
  VerifyAnswer,
} from './facilitator.ts';

/** One of the facilitators of a configuration. */
export interface NamedFacilitator {
  /** As the ledger names it; undefined where a configuration has only one, without a list. */
  readonly name: string | undefined;
  /** As a person reads it. */
  readonly label: string;
  readonly client: Facilitator;
  /** Through which it deploys the wallet of a payment before it settles it. Default: none. */
  readonly walletFactories?: readonly Address[];
}

/** Which facilitator a payment is settled by; the name is undefined where there is only one, without a list. */
export interface Settler {
  readonly name: string | undefined;
}

/** What a payment needs of the facilitator that settles it. */
export interface SettlerNeeds {
  /** It deploys wallets through this factory: the payer's is not deployed yet. */
  readonly factory?: Address | undefined;
  /** It submits transfers from this account: the payer's signature names it. */
  readonly submitter?: Address | undefined;
}

/** A kind of payments. */
export interface PayableKind extends Pick<SupportedKind, 'scheme' | 'network'>, SettlerNeeds {}

export interface FacilitatorState {
  readonly label: string;
  readonly isCircuitOpen: boolean;
  /** Why it did not say what it settles when it was last asked; undefined if it did, or was not asked yet. */
  readonly trouble: string | undefined;
}

/**
 * The facilitators of a configuration, in their order. A payment is verified by the first one that settles its kind and gives a useful
 * answer, and settled by that one alone: another one is never asked to settle it, because the outcome of the first could be unknown.
 */
export interface Facilitators {
  /** The kinds that any of them settles, and the approvals that all of them submit. One that does not answer counts with its last answer. Unavailable if none has ever answered. */
  supported(): Promise<SupportedAnswer>;
  /**
   * The first useful answer, with the name of the facilitator that gave it; else the last one's trouble.
   * @param needs only those that meet them are asked
   */
  verify(
    request: FacilitatorRequest,
    source?: PaymentSource,
    needs?: SettlerNeeds,
  ): Promise<VerifyAnswer & Partial<Settler>>;
  /** Asks the one with this name; the first one for a payment that names none. One that is not configured any more is not asked: `not_sent`. */
  settle(request: FacilitatorRequest, by: Settler, options?: SettleOptions): Promise<SettleAnswer>;
  /** The first one that settles this kind and whose circuit is closed. */
  settlerOf(kind: PayableKind): Settler | undefined;
  /** Whether any of them deploys wallets through this factory. */
  deploysThrough(factory: Address): boolean;
  /** Whether no payment can be started: the circuit of every one is open. */
  isCircuitOpen(): boolean;
  /** Whether that one can be asked to settle a payment again: it is configured, and its circuit is closed. */
  canSettle(by: Settler): boolean;
  /** How long settlements by that one take; 0 before its first. */
  typicalSettleMs(by: Settler): number;
  states(): readonly FacilitatorState[];
  /** Waits for running requests, then drops the connections. */
  close(): Promise<void>;
}

interface Member extends NamedFacilitator {
  /** Its last answer; undefined before the first. */
  kinds: readonly SupportedKind[] | undefined;
  approvals: readonly GasSponsoringKey[];
  trouble: string | undefined;
}

/** @param named at least one, each with another name */
export function createFacilitators(named: readonly NamedFacilitator[]): Facilitators {
  const members = named.map((one): Member => ({
    ...one,
    kinds: undefined,
    approvals: [],
    trouble: undefined,
  }));
  const [first] = members;
  if (!first) throw new Error('there is no facilitator');
  const find = ({ name }: Settler): Member | undefined =>
    name === undefined ? first : members.find((member) => member.name === name);

  return {
    async supported() {
      const answers = await Promise.all(members.map(async (member) => learn(member)));
      const known = members.flatMap(({ kinds }) => kinds ?? []);
      const [unanswered] = answers.filter((answer) => answer.kind === 'unavailable');
      if (unanswered && answers.every(({ kind }) => kind === 'unavailable')) return unanswered;
      // a payer signs its approval before it is known who settles the payment
      const asked = members.filter(({ kinds }) => kinds !== undefined);
      const approvals = gasSponsoringKeys.filter((key) => asked.every((one) => one.approvals.includes(key)));
      return { kind: 'kinds', kinds: known, approvals };
    },
    async verify(request, source, needs = {}) {
      const { scheme, network } = request.paymentRequirements;
      const fitting = members.filter(
        (member) => deploys(member, needs.factory) && submits(member, needs.submitter),
      );
      const able = fitting.filter((member) => settles(member, { scheme, network }));
      let last: VerifyAnswer | undefined;
      for (const { client, name } of able.length > 0 ? able : fitting.slice(0, 1)) {
        last = await client.verify(request, source);
        if (last.kind !== 'unavailable') return { ...last, name };
      }
      return last ?? { kind: 'unavailable', cause: 'not_asked' };
    },
    async settle(request, by, options) {
      const member = find(by);
      if (member) return member.client.settle(request, options);
      const error = new Error(`[[facilitators]] does not name ${by.name}, which this payment was given to`);
      return { kind: 'not_sent', cause: 'facilitator_not_configured', error };
    },
    settlerOf: (kind) =>
      members.find(
        (member) =>
          !member.client.isCircuitOpen() &&
          settles(member, kind) &&
          deploys(member, kind.factory) &&
          submits(member, kind.submitter),
      ),
    deploysThrough: (factory) => members.some((member) => deploys(member, factory)),
    isCircuitOpen: () => members.every(({ client }) => client.isCircuitOpen()),
    canSettle: (by) => find(by)?.client.isCircuitOpen() === false,
    typicalSettleMs: (by) => find(by)?.client.typicalSettleMs() ?? 0,
    states: () =>
      members.map(({ label, client, trouble }) => ({
        label,
        isCircuitOpen: client.isCircuitOpen(),
        trouble,
      })),
    async close() {
      await Promise.all(members.map(({ client }) => client.close()));
    },
  };
}

async function learn(member: Member): Promise<SupportedAnswer> {
  const answer = await member.client.supported();
  if (answer.kind === 'kinds') {
    member.kinds = answer.kinds.map((kind) => withSameSubmitter(kind, member));
    member.approvals = answer.approvals;
  }
  member.trouble = answer.kind === 'unavailable' ? answer.cause : undefined;
  return answer;
}

/** Of several accounts a facilitator names any one, each time another: the one that offers name stays as long as it is among them. */
function withSameSubmitter(kind: SupportedKind, { kinds = [] }: Member): SupportedKind {
  const { submitters } = kind;
  const [before] = kindOf(kinds, kind)?.submitters ?? [];
  if (!submitters || !before || !submitters.includes(before)) return kind;
  return { ...kind, submitters: [...new Set([before, ...submitters])] };
}

/** Before its first answer it may submit from any account. */
function submits({ kinds }: Member, submitter: Address | undefined): boolean {
  return (
    submitter === undefined ||
    !kinds ||
    kinds.some(({ submitters }) => submitters?.includes(submitter) === true)
  );
}

function deploys({ walletFactories = [] }: Member, factory: Address | undefined): boolean {
  return factory === undefined || walletFactories.includes(factory);
}

/** Before its first answer it may settle anything. */
function settles(
  { kinds }: Member,
  { scheme, network }: { readonly scheme: unknown; readonly network: unknown },
): boolean {
  return !kinds || isAmong(kinds, { scheme, network });
}
