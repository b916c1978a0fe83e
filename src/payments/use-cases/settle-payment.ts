import { approvalExtensions } from '../../base/values/gas-sponsoring.ts';
import { approvalOf } from '../rules/approval.ts';
import { expectedTransfer, type SignedPayment } from '../rules/payment.ts';
import { sharedAppendMs } from '../rules/payment-window.ts';
import { schemes } from '../rules/schemes/schemes.ts';
import { facilitatorRequest, type PassedOn } from '../rules/x402.ts';
import type { JobsConfig } from '../../base/config/config.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Chain } from '../peers/chain/chain.ts';
import type { SettleAnswer, SettleOptions } from '../peers/facilitator/facilitator.ts';
import type { Facilitators } from '../peers/facilitator/facilitators.ts';
import { type FirstLease, isTooMuch, movedAtoms, type Outcome } from '../rules/settlement.ts';
import type { Caip2, Hex } from '../../base/values/primitives.ts';
import { LedgerInconsistentError } from '../../ledger/store/halt.ts';
import type { Landing } from './find-settlement.ts';
import {
  recordOutcome,
  type RecordedOutcome,
  type RecordPorts,
  type StartedPayment,
  type Superseded,
} from './record-settlement.ts';

export interface SettlementPorts extends RecordPorts {
  readonly facilitators: Facilitators;
  readonly chains: ReadonlyMap<Caip2, Chain>;
  readonly settings: JobsConfig;
  readonly log: OperatorLog;
}

/**
 * Settles a started payment and records the outcome: paid and enqueued in one append, failed, or unknown. Returns the outcome
 * on record; if another process recorded one first, that one holds. A payment that has landed before is not sent again.
 */
export async function settlePayment(
  context: SettlementPorts,
  started: StartedPayment,
  {
    client,
    passedOn,
    landing,
    lease,
  }: {
    readonly client: string;
    readonly passedOn: PassedOn;
    readonly landing: Landing;
    /** Of the call, where the request serves it itself. */
    readonly lease?: FirstLease | undefined;
  },
): Promise<RecordedOutcome | Superseded> {
  if (landing.kind === 'landed') return recordOutcome(context, started, landing.settlement);
  const source = { payer: started.state.payment.payer, client };
  const outcome = await requestSettlement(context, started, { source }, passedOn);
  if (outcome.kind !== 'settled') logNotSettled(context, started.digest, outcome);
  const recorded = outcome.kind === 'settled' ? { ...outcome, lease } : outcome;
  return recordOutcome(context, started, recorded, {
    mayWaitMs: sharedAppendMs(context.facilitators.typicalSettleMs({ name: started.state.facilitator })),
  });
}

function logNotSettled(
  { log }: SettlementPorts,
  digest: Hex,
  { kind, reason }: Exclude<Outcome, { kind: 'settled' }>,
): void {
  const facts = { quote_digest: digest, reason };
  if (kind === 'failed') log.warn(facts, 'a settlement failed: the chain shows no transfer');
  else log.warn(facts, 'the outcome of a settlement is not known: the resolver finds it');
}

/**
 * Has the facilitator settle a payment, also repeatedly: its authorization can be used only once. With the payer's approval of Permit2, if it
 * signed one.
 * @throws LedgerInconsistentError if the ledger is halted: nothing was sent
 */
export async function requestSettlement(
  context: SettlementPorts,
  { digest, state }: StartedPayment,
  options: SettleOptions,
  beside: PassedOn = {},
): Promise<Outcome> {
  const { payment, facilitator: name, approval } = state;
  const atoms = movedAtoms(state);
  // before its answer has used anything
  if (isTooMuch(state, atoms)) return { kind: 'unknown', reason: 'nothing_used' };
  const { halt } = context.lane.state;
  // its outcome could not be recorded
  if (halt) throw new LedgerInconsistentError(halt);
  const kept = approval && approvalExtensions(approval, approvalOf(payment));
  const extensions = { ...kept, ...beside.extensions };
  const request = facilitatorRequest(payment, digest, { ...beside, extensions }, atoms);
  const answer = await context.facilitators.settle(request, { name }, options);
  return judge(context, payment, answer);
}

async function judge(
  context: SettlementPorts,
  payment: SignedPayment,
  answer: SettleAnswer,
): Promise<Outcome> {
  switch (answer.kind) {
    case 'settled':
      return judgeSuccess(context, payment, answer);
    case 'failed':
      return judgeFailure(context, payment, answer);
    case 'not_sent':
      return { kind: 'unknown', reason: answer.cause };
    case 'unknown':
      return {
        kind: 'unknown',
        reason: answer.cause,
        ...(answer.transaction ? { transaction: answer.transaction } : {}),
      };
  }
}

/** A facilitator's answer is unsigned: it must name this payment's network and payer, and the chain is asked as well. */
async function judgeSuccess(
  context: SettlementPorts,
  payment: SignedPayment,
  answer: Extract<SettleAnswer, { kind: 'settled' }>,
): Promise<Outcome> {
  const { transaction } = answer;
  if (answer.network !== payment.network) return { kind: 'unknown', reason: 'network_mismatch', transaction };
  if (answer.payer !== undefined && answer.payer !== payment.payer) {
    context.log.error(
      { payer: payment.payer, settled_payer: answer.payer, transaction },
      'payer mismatch: the facilitator says that another payer paid',
    );
    return { kind: 'unknown', reason: 'payer_mismatch', transaction, settledPayer: answer.payer };
  }
  const { confirm, confirmTimeoutMs } = context.settings;
  // how much a facilitator has moved, only the chain shows
  const unproven: Outcome =
    confirm === 'required' || payment.transferMethod === 'upto'
      ? { kind: 'unknown', reason: 'not_on_chain', transaction }
      : { kind: 'settled', transaction, proof: undefined };
  const chain = context.chains.get(payment.network);
  if (!chain || ((confirm === 'after' || confirm === 'never') && payment.transferMethod !== 'upto'))
    return unproven;
  const found = await chain.waitForSettlement(transaction, expectedTransfer(payment), confirmTimeoutMs);
  switch (found.kind) {
    case 'paid':
      return { kind: 'settled', transaction, proof: found };
    case 'contradicted':
      return { kind: 'unknown', reason: `chain_says_${found.why}`, transaction };
    case 'absent':
    case 'ambiguous':
    case 'unavailable':
      return unproven;
  }
}

async function judgeFailure(
  context: SettlementPorts,
  payment: SignedPayment,
  answer: Extract<SettleAnswer, { kind: 'failed' }>,
): Promise<Outcome> {
  const { reason, transaction } = answer;
  const unknown: Outcome = { kind: 'unknown', reason, ...(transaction ? { transaction } : {}) };
  const chain = context.chains.get(payment.network);
  // only these reasons can mean "not paid", and only while the chain agrees: with any other the money may have moved
  const { failsBeforeBroadcast } = schemes[payment.transferMethod];
  if (transaction || !failsBeforeBroadcast(reason) || !chain) return unknown;
  const state = await chain.isUsed(expectedTransfer(payment));
  return state.kind === 'answer' && !state.used ? { kind: 'failed', reason } : unknown;
}
