import { callAsAnyone, type ChainLocation } from '../../src/devnet/deploy.ts';
import type { PrivateKeyAccount } from 'viem/accounts';
import { cancelPayment, landInLongTransaction, landTogether } from '../support/onchain.ts';
import type { Payment } from '../support/payer.ts';
import { cancelPermit, isPermit, landingCall, type Permit, signedTransfer } from '../support/permit2.ts';
import type { ChainGate } from './chain-gate.ts';
import type { FaultInjector } from './fault-injector.ts';

/** In either transfer method. */
type Signed = Payment | Permit;
type Moment = 'before_verify' | 'before_settle';

/** A third party that saw a payer's authorization and submits it: the money arrives, by another transaction than was meant. */
export interface FrontRunner {
  /** Has a payment submitted when it first reaches the facilitator at that moment. */
  plan(payment: Signed, moment: Moment): void;
  /** Submits what was planned for this moment. True if it has landed so. */
  run(nonce: string, moment: Moment): Promise<boolean>;
  /** Submits it now. False if it reverts: another submission was faster. */
  submit(payment: Signed): Promise<boolean>;
  /** The same in a transaction with logs of more than 2 MiB. */
  submitInLongTransaction(payment: Signed): Promise<boolean>;
  /** Submits several in one transaction, whose calldata names others that it does not use. */
  submitTogether(payments: readonly Signed[], unused: readonly Signed[]): Promise<boolean>;
  /** Cancels its nonce, as its payer may. False if it was used before. */
  cancel(payment: Signed, payer: PrivateKeyAccount): Promise<boolean>;
}

export function createFrontRunner(chain: ChainLocation, gate: ChainGate, faults: FaultInjector): FrontRunner {
  const planned = new Map<string, { payment: Signed; moment: Moment }>();

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

  const submit = async (payment: Signed): Promise<boolean> => {
    try {
      await gate.send(() => callAsAnyone(chain, landingCall(payment)));
      return true;
    } catch {
      return false;
    }
  };

  return {
    plan: (payment, moment) => void planned.set(signedTransfer(payment).nonce, { payment, moment }),
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
    submitTogether: (payments, unused) => sendInTurn(() => landTogether(chain.url, payments, unused)),
    cancel: (payment, payer) =>
      sendInTurn(() =>
        isPermit(payment)
          ? cancelPermit(chain.url, payment, payer)
          : cancelPayment(chain.url, payment, payer),
      ),
  };
}
