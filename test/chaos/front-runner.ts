import { testToken } from '../../src/devnet/contracts.ts';
import { callAsAnyone, type ChainLocation } from '../../src/devnet/deploy.ts';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Hex } from '../../src/base/values/primitives.ts';
import { cancelPayment, landInLongTransaction } from '../support/onchain.ts';
import type { Payment } from '../support/payer.ts';
import type { ChainGate } from './chain-gate.ts';
import type { FaultInjector } from './fault-injector.ts';

type Moment = 'before_verify' | 'before_settle';

/** A third party that saw a payer's authorization and submits it: the money arrives, by another transaction than was meant. */
export interface FrontRunner {
  /** Has a payment submitted when it first reaches the facilitator at that moment. */
  plan(payment: Payment, moment: Moment): void;
  /** Submits what was planned for this moment. True if it has landed so. */
  run(nonce: string, moment: Moment): Promise<boolean>;
  /** Submits it now. False if it reverts: another submission was faster. */
  submit(payment: Payment): Promise<boolean>;
  /** The same in a transaction with logs of more than 2 MiB. */
  submitInLongTransaction(payment: Payment): Promise<boolean>;
  /** Cancels its nonce, as its payer may. False if it was used before. */
  cancel(payment: Payment, payer: PrivateKeyAccount): Promise<boolean>;
}

export function createFrontRunner(chain: ChainLocation, gate: ChainGate, faults: FaultInjector): FrontRunner {
  const planned = new Map<string, { payment: Payment; moment: Moment }>();

  /** One account sends them all, so one after another. */
  let last: Promise<unknown> = Promise.resolve();
  const sendInTurn = async (send: () => Promise<unknown>): Promise<boolean> => {
    const sent = last.then(() => gate.send(send));
    last = sent.catch(() => {});
    return sent.then(
      () => true,
      () => false,
    );
  };

  const submit = async (payment: Payment): Promise<boolean> => {
    const { signature, authorization } = payment.payload;
    const { from, to, value, validAfter, validBefore, nonce } = authorization;
    const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature as Hex];
    try {
      const { asset: address } = payment.accepted;
      const call = { address, artifact: testToken, functionName: 'transferWithAuthorization', args };
      await gate.send(() => callAsAnyone(chain, call));
      return true;
    } catch {
      return false;
    }
  };

  return {
    plan: (payment, moment) => void planned.set(payment.payload.authorization.nonce, { payment, moment }),
    async run(nonce, moment) {
      const due = planned.get(nonce);
      if (due?.moment !== moment) return false;
      planned.delete(nonce);
      const hasLanded = await submit(due.payment);
      if (hasLanded) faults.count(`front-run ${moment}`, nonce.slice(0, 10));
      return hasLanded;
    },
    submit,
    submitInLongTransaction: (payment) => sendInTurn(() => landInLongTransaction(chain.url, payment)),
    cancel: (payment, payer) => sendInTurn(() => cancelPayment(chain.url, payment, payer)),
  };
}
