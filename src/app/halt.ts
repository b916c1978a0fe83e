import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Config } from '../base/config/config.ts';
import { backOffMs } from '../base/values/back-off.ts';
import type { AlertMessage } from '../base/peers/alerts/message.ts';
import type { AlertReceiver } from '../base/peers/alerts/receiver.ts';
import { pause } from '../base/runtime/pause.ts';
import type { LedgerHalt } from '../ledger/store/halt.ts';
import { openAlertReceivers } from '../base/peers/alerts/receiver.ts';

const pauses = { firstMs: 1_000, longestMs: 60_000 };

export interface HaltAlert {
  /** Tells the operator: once to the log, and to each receiver of alerts until it takes the message. */
  send(halt: LedgerHalt): void;
  close(): Promise<void>;
}

/** Alerts about a halted ledger. Other alerts are events of the ledger; a halted one takes none. */
export function createHaltAlert(config: Config, log: Pick<Logger, 'error' | 'warn'>): HaltAlert {
  const receivers = openAlertReceivers(config.alerts);
  const closing = new AbortController();
  let sending: Promise<unknown> = Promise.resolve();

  const deliver = async (receiver: AlertReceiver, message: AlertMessage): Promise<void> => {
    for (let attempt = 0; !closing.signal.aborted; attempt++) {
      const answer = await receiver.send(message);
      if (answer.kind === 'delivered') return;
      const facts = { alert: kind, receiver: receiver.name, cause: answer.cause };
      log.warn(facts, 'an alert could not be sent: it is sent again');
      await pause(backOffMs(pauses, attempt), closing.signal);
    }
  };

  return {
    send(halt) {
      const facts = { alert: kind, known_seq: halt.knownSeq, found_seq: halt.foundSeq };
      log.error({ ...facts, text: textOf(halt) }, 'alert firing');
      const message = messageOf(halt);
      sending = Promise.all(receivers.map((receiver) => deliver(receiver, message)));
    },
    async close() {
      closing.abort();
      await sending;
      await Promise.all(receivers.map((receiver) => receiver.close()));
    },
  };
}

const kind = 'ledger_inconsistent';

function textOf({ reason, isOver }: LedgerHalt): string {
  const remedy = isOver ? 'Start this gateway again.' : 'Stop every gateway and recover the ledger.';
  return `The ledger is inconsistent, and this gateway sells nothing: ${reason}. ${remedy}`;
}

function messageOf(halt: LedgerHalt): AlertMessage {
  const { knownSeq = null, foundSeq = null } = halt;
  // the same from every gateway: a receiver recognises the repeated message
  const id = `tollbook-halt-${createHash('sha256').update(halt.reason).digest('hex').slice(0, 32)}`;
  const now = new Date();
  const details = { known_seq: knownSeq, found_seq: foundSeq };
  return { id, kind, subject: '', status: 'firing', text: textOf(halt), details, since: now, at: now };
}
