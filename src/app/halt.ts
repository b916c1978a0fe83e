import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { backOffMs } from '../domain/values/back-off.ts';
import type { WebhookAnswer } from '../peers/http/webhook.ts';
import { pause } from '../runtime/pause.ts';
import type { LedgerHalt } from '../store/halt.ts';
import { openWebhook } from './alerts.ts';

const pauses = { firstMs: 1_000, longestMs: 60_000 };

export interface HaltAlert {
  /** Tells the operator: once to the log, and to the alert webhook until it takes the message. */
  send(halt: LedgerHalt): void;
  close(): Promise<void>;
}

/** Alerts about a halted ledger. Other alerts are events of the ledger; a halted one takes none. */
export function createHaltAlert(config: Config, log: Pick<Logger, 'error' | 'warn'>): HaltAlert {
  const webhook = openWebhook(config);
  const closing = new AbortController();
  let sending = Promise.resolve();

  const deliver = async (halt: LedgerHalt): Promise<void> => {
    // the same from every gateway: a receiver recognises the repeated message
    const id = `tollbook-halt-${createHash('sha256').update(halt.reason).digest('hex').slice(0, 32)}`;
    const body = JSON.stringify(alertBody(halt));
    for (let attempt = 0; webhook && !closing.signal.aborted; attempt++) {
      const answer: WebhookAnswer = await webhook.send({
        id,
        timestampSecs: Math.floor(Date.now() / 1_000),
        body,
      });
      if (answer.kind === 'delivered') return;
      log.warn({ alert: type, cause: answer.cause }, 'an alert could not be sent: it is sent again');
      await pause(backOffMs(pauses, attempt), closing.signal);
    }
  };

  return {
    send(halt) {
      log.error({ alert: type, known_seq: halt.knownSeq, found_seq: halt.foundSeq }, textOf(halt));
      sending = deliver(halt);
    },
    async close() {
      closing.abort();
      await sending;
      await webhook?.close();
    },
  };
}

const type = 'ledger_inconsistent';

function textOf({ reason }: LedgerHalt): string {
  return `The ledger is inconsistent, and this gateway sells nothing: ${reason}. Stop every gateway and recover the ledger.`;
}

function alertBody(halt: LedgerHalt): object {
  const { knownSeq = null, foundSeq = null } = halt;
  return { type, text: textOf(halt), known_seq: knownSeq, found_seq: foundSeq };
}
