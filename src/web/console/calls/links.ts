import { html, type Html } from '../../../base/values/html.ts';
import { isHex32 } from '../../../base/values/primitives.ts';
import type { OutboxPlace } from '../../../calls/store/outbox.ts';
import { count } from '../../pages/elements.ts';
import { pathWith } from '../../pages/own-path.ts';

/** The id of a call, which leads to the payment that bought it; a trigger's call has no payment. */
export function callLink({ callId, stream }: { readonly callId: number; readonly stream: string }): Html {
  return isHex32(stream)
    ? html`<a href="/console/payments/${stream}">${callId}</a>`
    : html`${callId} <span class="hint">of a trigger</span>`;
}

/** How many, leading to a list of them; without a link if there are none. */
export function linkedCount(calls: number, to: string): Html {
  return calls === 0 ? html`<span class="muted">0</span>` : html`<a href="${to}">${count(calls)}</a>`;
}

export const outboxPath = '/console/calls/outbox';

/** Where the calls of a runner, or of services, are listed. */
export function outboxAddress({
  place,
  runner,
  services,
}: {
  readonly place?: OutboxPlace;
  readonly runner?: string;
  readonly services?: readonly number[];
}): string {
  return pathWith(outboxPath, { place, runner, services: services?.join(',') });
}

export const placeNames: Readonly<Record<OutboxPlace, string>> = {
  due: 'due',
  leased: 'leased',
  later: 'again later',
  held: 'held by its key',
};
