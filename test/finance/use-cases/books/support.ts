import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../../../src/finance/use-cases/books/format.ts';
import { openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import type { BookFormat } from '../../../../src/base/values/format.ts';
import type { RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { encodeEventData, type LedgerEvent } from '../../../../src/ledger/rules/event.ts';
import { parsePeriod, type Period } from '../../../../src/base/values/period.ts';
import {
  booksStartMs,
  paidQuote,
  recorded,
  type StreamEvent,
} from '../../../audit/rules/bookkeeping/support.ts';
import { temporaryFolder } from '../../../support/program.ts';

export function periodOf(from: string, to: string): Period {
  const reading = parsePeriod(from, to, Date.parse('2026-06-01'));
  if (reading.kind === 'refusal') throw new Error(reading.refusal.message);
  return reading.period;
}

export const january = periodOf('2026-01', '2026-02');
export const february = periodOf('2026-02', '2026-03');

const account = (type: string, data: object, stream = 'account:7'): StreamEvent =>
  ({ stream, event: { type, data: { account_id: 7, ...data } } }) as StreamEvent;

const spend = (type: string): StreamEvent => {
  const chatId = '00000000-0000-4000-8000-00000000000a';
  const data = {
    chat_id: chatId,
    network: 'eip155:84532',
    contract: `0x${'5c'.repeat(20)}`,
    commitment: `0x${'01'.repeat(32)}`,
    nonce: '1',
    auth_hash: `0x${'02'.repeat(32)}`,
    operator: `0x${'90'.repeat(20)}`,
    amount: '700',
  };
  const signed = {
    service_id: '1',
    job_index: 0,
    expiry: '9',
    signature: `0x${'03'.repeat(65)}`,
    binding: `0x${'04'.repeat(32)}`,
    process_id: chatId,
  };
  return {
    stream: `spend:${chatId}`,
    event: { type, data: type === 'spend_accepted' ? { ...data, ...signed } : data },
  } as StreamEvent;
};

/** The same ledger at the end of January, and at the end of February with all that came late. */
export function twoMonths(): { readonly first: RecordedEvent[]; readonly both: RecordedEvent[] } {
  const token = { symbol: '-ODD.', decimals: 18, network: 'eip155:10', amount: '1234567890123456789012' };
  const quotes = [1, 2, 3, 4, 5, 6, 7].map((n) => paidQuote(n, n === 7 ? token : {}));
  const [done, unproven, dead, slow, late, reorged, odd] = quotes as [
    Quote,
    Quote,
    Quote,
    Quote,
    Quote,
    Quote,
    Quote,
  ];
  for (const quote of quotes) quote.start();
  for (const quote of [done, dead, slow, reorged, odd]) {
    quote.settle('chain');
    quote.enqueue();
  }
  unproven.settle('facilitator');
  unproven.enqueue();
  unproven.complete();
  for (const quote of [done, reorged, odd]) quote.complete();
  dead.deadLetter();
  late.fail();
  const chatId = '00000000-0000-4000-8000-00000000000b';
  const chat = { key_id: 1, chat_id: chatId };
  const first = [
    ...quotes.flatMap(({ events }) => events.splice(0)),
    account('credit_account_opened', { name: 'acme' }),
    account('credit_granted', { amount_micros: '9000000' }),
    spend('spend_accepted'),
    spend('spend_earned'),
    sweepOf(done, '500'),
    unexplainedTransfer(done, 1, { as: 'suspense' }),
  ];
  done.refund();
  unproven.confirm();
  dead.refund(`0x${'77'.repeat(20)}`);
  slow.complete();
  late.settle('chain');
  late.enqueue();
  late.complete();
  reorged.reorg('kept');
  reorged.settle('chain');
  const second = [
    ...quotes.flatMap(({ events }) => events),
    {
      stream: `chat:${chatId}`,
      event: { type: 'chat_admitted', data: { caller: 'api_key', model: '=1+2"x', streaming: false } },
    } as StreamEvent,
    account('credit_held', { ...chat, amount_micros: '400' }, `chat:${chatId}`),
    {
      stream: `chat:${chatId}`,
      event: {
        type: 'chat_completed',
        data: {
          ending: 'completed',
          model: '=1+2"x',
          prompt_tokens: 1,
          completion_tokens: 1,
          is_estimate: false,
          cost_micros: '400',
        },
      },
    } as StreamEvent,
    account('credit_captured', { ...chat, amount_micros: '400', is_estimate: false }, `chat:${chatId}`),
    spend('spend_paid_out'),
    unexplainedTransfer(done, 1, { as: 'income' }),
    unexplainedTransfer(done, 2, { as: 'suspense' }),
    unexplainedTransfer(done, 2, {
      as: 'returned',
      returned: { from: `0x${'88'.repeat(20)}`, ...placeOf(12) },
    }),
    unexplainedTransfer(done, 3, { as: 'own' }),
    reversalOf(3),
  ];
  const atFebruary = Date.parse('2026-02-03T00:00:00Z');
  const both = recorded([...first, ...second], booksStartMs).map((event, i) =>
    i < first.length ? event : { ...event, at: new Date(atFebruary + i * 60_000).toISOString() },
  );
  return { first: both.slice(0, first.length), both };
}

type Quote = ReturnType<typeof paidQuote>;

function sweepOf({ terms }: Quote, amount: string): StreamEvent {
  const transaction = `0x${'05'.repeat(32)}`;
  const { network, asset, symbol, decimals, pay_to } = terms;
  const to = { swept_to: `0x${'88'.repeat(20)}`, amount, operator: 'ann' };
  const proof = { transaction, block_number: '9', block_hash: `0x${'02'.repeat(32)}`, log_index: 0 };
  const data = { network, asset, symbol, decimals, pay_to, ...to, ...proof };
  return {
    stream: `sweep:84532:${transaction}:0`,
    event: { type: 'operator_sweep_recorded', data },
  };
}

/** The n-th transfer that is not a payment. */
function unexplainedTransfer({ terms }: Quote, n: number, change: object): StreamEvent {
  const { network, asset, symbol, decimals, pay_to } = terms;
  const of = { network, asset, symbol, decimals, pay_to, received_from: `0x${'77'.repeat(20)}` };
  const data = { ...of, amount: String(300 + n), ...placeOf(n), operator: 'ann', ...change };
  return {
    stream: `transfer:84532:${n}`,
    event: { type: 'operator_transfer_recorded', data },
  } as StreamEvent;
}

function reversalOf(n: number): StreamEvent {
  const { transaction, log_index } = placeOf(n);
  const data = { network: 'eip155:84532', transaction, log_index, why: 'wrong', operator: 'ann' };
  return { stream: `transfer:84532:${n}`, event: { type: 'operator_transfer_reversed', data } };
}

function placeOf(n: number) {
  const transaction = `0x${String(n).padStart(64, 'a')}`;
  return { transaction, block_number: '9', block_hash: `0x${'02'.repeat(32)}`, log_index: n };
}

export function leafOf({ at, seq, stream, version, type, data }: RecordedEvent): string {
  const text = encodeEventData({ type, data } as LedgerEvent);
  return `{"at":"${at}","data":${text},"lane":1,"schema":1,"seq":${seq},"stream":"${stream}","type":"${type}","version":${version}}\n`;
}

export function trailerOf(seq: number): string {
  return `{"counters":{},"export":1,"seq":${seq}}\n`;
}

/** An export in its own file. */
export function exportFile(events: readonly RecordedEvent[]): string {
  const file = path.join(temporaryFolder(), 'ledger.jsonl');
  writeFileSync(file, events.map(leafOf).join('') + trailerOf(events.length));
  return file;
}

/** The books of a period, from an export. */
export async function booksFrom(
  file: string,
  period: Period,
  format: BookFormat,
  exportedAtMs = period.toMs,
): Promise<Buffer> {
  const books = await openBooks(openFileSource(file, Date.now(), exportedAtMs), period);
  return Buffer.concat(await Array.fromAsync(writeBooks(books, format)));
}

/** The records of a CSV by RFC 4180, by their header. */
export function readCsv(text: string): Record<string, string>[] {
  const records: string[][] = [];
  let fields: string[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    fields.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
    if (end === ',') continue;
    records.push(fields);
    fields = [];
  }
  const [header = [], ...rows] = records;
  return rows.map((row) => Object.fromEntries(header.map((name, i) => [name, row[i] ?? ''])));
}
