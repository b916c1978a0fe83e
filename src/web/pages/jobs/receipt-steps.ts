import { html, type Html } from '../../../base/values/html.ts';
import type { Receipt } from '../../../jobs/http/schemas/receipt.ts';
import type { Tone } from '../notices.ts';

type State = Receipt['state'];

/** A call's state: its word, its meaning, and the finished steps. */
export interface Standing {
  readonly label: string;
  readonly tone: Tone;
  readonly text: string;
  /** The finished steps. */
  readonly done: number;
  readonly isFailed?: boolean;
  /** It changes by itself: the page looks again. */
  readonly isOpen?: boolean;
}

const labels = ['Paid', 'Queued', 'Running', 'Done'];

const standings: Readonly<Record<State, Standing>> = {
  quoted: { label: 'not paid', tone: 'plain', text: 'This quote was not paid.', done: 0 },
  expired: {
    label: 'expired',
    tone: 'plain',
    text: 'This quote was not paid, and cannot be any more.',
    done: 0,
  },
  refused: {
    label: 'refused',
    tone: 'bad',
    text: 'The caller was refused before the payment was sent.',
    done: 0,
  },
  authorized: open('paying', 'The payment is being checked.', 0),
  settling: open('paying', 'The payment was sent to the chain.', 0),
  settlement_unknown: {
    ...open(
      'unknown',
      'Whether the payment landed is not known yet. Do not pay again: the gateway reads it from the chain.',
      0,
    ),
    tone: 'warn',
  },
  settlement_failed: {
    label: 'failed',
    tone: 'bad',
    text: 'The payment failed, and the chain showed no transfer. While its authorization lasts it may still land: then the call is made after all.',
    done: 0,
    isFailed: true,
  },
  settled: {
    label: 'refund due',
    tone: 'warn',
    text: 'The payment landed, and no call was made for it. The operator pays it back.',
    done: 1,
    isFailed: true,
  },
  enqueued: open('queued', 'The payment is settled, and the call waits for its runner.', 1),
  delivered: open('running', 'The runner has the call.', 2),
  completed: { label: 'done', tone: 'good', text: 'The runner has done it.', done: 4 },
  dead_lettered: {
    label: 'not delivered',
    tone: 'bad',
    text: 'No runner could do it. The operator has the call, and delivers it again or pays it back: until then a refund is due.',
    done: 2,
    isFailed: true,
  },
  refunded: {
    label: 'paid back',
    tone: 'plain',
    text: 'The payment was paid back.',
    done: 1,
    isFailed: true,
  },
};

function open(label: string, text: string, done: number): Standing {
  return { label, tone: 'plain', text, done, isOpen: true };
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
