import type { EventData, RecordedEvent } from '../domain/events/event.ts';
import { chainIdOf } from '../domain/values/primitives.ts';

/** A transfer that is no payment, as an operator recorded it. */
export type AstrayRecord = EventData<'operator_transfer_recorded'>;

/** A transfer's place on the chain. */
export interface TransferPlace {
  readonly network: string;
  readonly transaction: string;
  readonly log_index: number;
}

/** The stream is named by the transfer, so what is recorded of it stands in one place. */
export function transferStream({ network, transaction, log_index: logIndex }: TransferPlace): string {
  return `${transferStreams({ network, transaction })}${logIndex}`;
}

/** What the streams of all transfers of a transaction begin with. */
export function transferStreams({ network, transaction }: Omit<TransferPlace, 'log_index'>): string {
  return `transfer:${chainIdOf(network) ?? 0}:${transaction}:`;
}

/** What stands of a transfer: undefined where nothing was recorded, or where it was reversed. */
export function standing(events: readonly RecordedEvent[]): {
  readonly version: number;
  readonly record: AstrayRecord | undefined;
} {
  const last = events.at(-1);
  const record = last?.type === 'operator_transfer_recorded' ? last.data : undefined;
  return { version: last?.version ?? 0, record };
}
