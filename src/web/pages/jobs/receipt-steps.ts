import { html, type Html } from '../../../base/values/html.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import type { Tone } from '../notices.ts';

type State = Receipt['state'];

/** A call's state: its word, its meaning, and the finished steps. */
export interface Standing {
  readonly label: string;
  /** What became of the payment, as the page's first line. */
  readonly headline: string;
  readonly tone: Tone;
  readonly text: string;
  /** What its payer can expect, unless the payer has asked for the money back. */
  readonly outlook?: string;
  /** The finished steps. */
  readonly done: number;
  readonly isFailed?: boolean;
  /** It changes by itself: the page looks again. */
  readonly isOpen?: boolean;
}

const labels = ['Paid', 'Queued', 'Running', 'Done'];

const outlook =
  'This receipt shows the result to its payer once it is there, and this page may be closed until then.';

const standings: Readonly<Record<State, Standing>> = {
  quoted: {
    label: 'not paid',
    headline: 'Not paid',
    tone: 'plain',
    text: 'This quote was not paid, and nothing was charged.',
    done: 0,
  },
  expired: {
    label: 'expired',
    headline: 'Not paid',
    tone: 'plain',
    text: 'The quote has expired, and nothing was charged. Order the job again to get a new price.',
    done: 0,
  },
  refused: {
    label: 'refused',
    headline: 'Refused, and not charged',
    tone: 'bad',
    text: 'The caller was refused before the payment was sent.',
    done: 0,
  },
  authorized: open('paying', 'The payment is being checked', 'Nothing was charged so far.', 0),
  settling: open('paying', 'The payment is on its way', 'It is being settled.', 0),
  settlement_unknown: {
    ...open(
      'unknown',
      'It is not known yet whether it was paid',
      'Do not pay again: the gateway asks the chain whether the payment was made.',
      0,
    ),
    tone: 'warn',
  },
  settlement_failed: {
    label: 'failed',
    headline: 'The payment failed',
    tone: 'bad',
    text: 'Nothing was paid so far. Until its authorization ends the payment may still be made: then the job is done after all, or the money is paid back.',
    done: 0,
    isFailed: true,
  },
  settled: {
    label: 'refund due',
    headline: 'Paid, without a result',
    tone: 'warn',
    text: 'The chain has the payment, and nothing was done for it.',
    outlook: 'The operator pays it back.',
    done: 1,
    isFailed: true,
  },
  enqueued: {
    ...open('queued', 'Paid, and waiting', 'The payment is settled, and the job waits for its turn.', 1),
    outlook,
  },
  delivered: { ...open('running', 'Paid, and running', 'The job is being done.', 2), outlook },
  completed: { label: 'done', headline: 'It worked', tone: 'good', text: 'The job is done.', done: 4 },
  dead_lettered: {
    label: 'not delivered',
    headline: 'Paid, without a result',
    tone: 'bad',
    text: 'The job could not be done.',
    outlook: 'The operator runs it again or pays the money back, and this receipt shows it.',
    done: 2,
    isFailed: true,
  },
  refunded: {
    label: 'paid back',
    headline: 'Paid back',
    tone: 'plain',
    text: 'The whole payment was paid back.',
    done: 1,
    isFailed: true,
  },
};

function open(label: string, headline: string, text: string, done: number): Standing {
  return { label, headline, tone: 'plain', text, done, isOpen: true };
}

export function standingOf(state: State): Standing {
  return standings[state];
}

/** The way of a call from its payment to its result. */
export function stepList({ done, isFailed = false, isOpen = false }: Standing): Html {
  return html`<ol class="steps">
    ${labels.map((label, index) => {
      const isNext = index === done;
      const state =
        index < done ? 'done' : isNext && isFailed ? 'failed' : isNext && isOpen ? 'active' : 'open';
      return html`<li data-state="${state}" ${isNext && html`aria-current="step"`}>
        <span class="label">${label}</span> <span class="unseen">${words[state]}</span>
      </li>`;
    })}
  </ol>`;
}

const words = { done: 'done', failed: 'failed', active: 'under way', open: '' } as const;

/** The failed attempts since the call was last put into the queue by an operator. */
export function failedAttempts<E extends { readonly type: string }>(events: readonly E[]): readonly E[] {
  const from = events.findLastIndex(({ type }) => type === 'operator_requeued') + 1;
  return events.slice(from).filter(({ type }) => type === 'delivery_failed');
}

/** Events of a receipt, for a person. */
const eventTexts: Readonly<Record<string, string>> = {
  quote_issued: 'The price was quoted',
  payment_verified: 'The payment was checked',
  auth_passed: 'The caller was permitted',
  settlement_started: 'The payment was started',
  settlement_unknown: 'The outcome of the payment was not known',
  settlement_failed: 'The payment failed',
  payment_settled: 'The chain has the payment',
  settlement_confirmed: 'The payment is final',
  settlement_disproved: 'The payment turned out not to have been made',
  settlement_reorged: 'The chain took the payment back',
  enqueued: 'The job was put into the queue',
  enqueued_again: 'The job was put into the queue again',
  delivered: 'The job was begun',
  delivery_failed: 'An attempt failed',
  completed: 'The job was done',
  dead_lettered: 'The attempts ended without a result',
  operator_requeued: 'The operator put the job into the queue again',
  operator_discarded: 'The operator gave the job up',
  refunded: 'Money was paid back',
  refund_requested: 'The payer asked for the money back',
  refund_request_granted: 'The operator agreed to pay it back',
  refund_request_declined: 'The operator declined to pay it back',
  refund_started: 'The operator began to pay it back',
  refund_sent: 'The operator sent the money back',
  refund_not_sent: 'The money was not sent back so far',
  refund_abandoned: 'Paying it back failed, and is still due',
};

export function eventText(type: string): Html | string {
  return eventTexts[type] ?? html`<code>${type}</code>`;
}
