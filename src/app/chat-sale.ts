import { Readable } from 'node:stream';
import type { Refused } from '../chat/use-cases/answer.ts';
import type { SoldAnswer, SoldChat } from '../chat/use-cases/sold-chat.ts';
import { answerPriceHeader } from '../base/values/answer-price.ts';
import { jobPriceText, unitsPerMicro } from '../base/values/amount.ts';
import { openAiError, type OpenAiError } from '../base/errors/openai-error.ts';
import type { PriceAnswer } from '../jobs/peers/request-prices.ts';
import type { Upstream, UpstreamAnswer, UpstreamHead, UpstreamRequest } from '../jobs/peers/upstream.ts';

/** What chat offers to those who sell it. */
interface SellableChat {
  /** What a request costs at most, in units of 10^-18 dollars. */
  price(body: Buffer): bigint | Refused;
  make(order: SoldChat): Promise<SoldAnswer>;
}

/** The completions of this gateway, as the upstream of a route: for callers without an account, who pay what each has cost. */
export interface ChatSale {
  readonly upstream: Upstream;
  price(body: Buffer): PriceAnswer;
  /** Chat is composed after the jobs that sell it. */
  connect(sellable: SellableChat): void;
}

export function createChatSale(): ChatSale {
  let chat: SellableChat | undefined;
  return {
    connect: (sellable) => void (chat = sellable),
    price(body) {
      if (!chat) return { kind: 'unavailable', reason: 'chat_not_started' };
      const units = chat.price(body);
      return typeof units === 'bigint'
        ? { kind: 'price', price: { wei: units, inUsd: true } }
        : { kind: 'refused', why: messageOf(units.error) };
    },
    upstream: {
      async request({ body, signal, paid }): Promise<UpstreamAnswer> {
        if (!chat || !paid)
          return { kind: 'failed', reason: 'upstream_unreachable', error: 'chat is not started' };
        const coveredMicros = paid.quoted.wei / unitsPerMicro;
        return headOf(await chat.make({ body, payer: paid.payer, coveredMicros, signal }), paid);
      },
      isOpen: () => false,
      isFailing: () => false,
      close: () => Promise.resolve(),
    },
  };
}

type Paid = NonNullable<UpstreamRequest['paid']>;

const tooLongMessage =
  'The answer is longer than this gateway can keep. Its cost is that of the prompt and of what was delivered. ' +
  'Ask for fewer tokens, or without logprobs.';
const tooLong = Buffer.from(
  `data: ${JSON.stringify(openAiError('upstream_error', { message: tooLongMessage }).body)}\n\n`,
);

/** A whole answer says its price in its head, a stream behind its body. */
async function headOf({ answer, end }: SoldAnswer, { isMetered, mostBytes }: Paid): Promise<UpstreamHead> {
  switch (answer.kind) {
    case 'refused': {
      const { status, body } = answer.error;
      const retryAfter =
        answer.retryAfterSecs === undefined ? {} : { 'retry-after': String(answer.retryAfterSecs) };
      return wholeHead(status, Buffer.from(JSON.stringify(body)), retryAfter);
    }
    case 'whole':
      return wholeHead(200, answer.body, {
        'x-request-id': answer.chatId,
        [answerPriceHeader]: priceText((await end).costMicros),
      });
    case 'stream': {
      const trailers: Record<string, string> = {};
      const body = async function* (): AsyncGenerator<Buffer, void> {
        let bytes = 0;
        for await (const piece of answer.chunks) {
          bytes += piece.length;
          // could not be kept, and what cannot be kept is not charged
          if (bytes + tooLong.length > mostBytes) {
            yield tooLong;
            break;
          }
          yield piece;
        }
        const { costMicros, isWhole } = await end;
        // its price is that of a whole answer
        if (!isWhole && !isMetered) throw new Error('the completion broke off');
        trailers[answerPriceHeader] = priceText(costMicros);
      };
      const headers = {
        'content-type': 'text/event-stream',
        'x-accel-buffering': 'no',
        'x-request-id': answer.chatId,
        trailer: answerPriceHeader,
      };
      const stream = Readable.from(body()).on('error', () => {});
      return { kind: 'head', status: 200, headers, body: stream, trailers };
    }
  }
}

function wholeHead(status: number, body: Buffer, more: Readonly<Record<string, string>>): UpstreamHead {
  const headers = { 'content-type': 'application/json; charset=utf-8', ...more };
  return { kind: 'head', status, headers, body: Readable.from([body]).on('error', () => {}), trailers: {} };
}

function priceText(micros: bigint): string {
  return jobPriceText({ wei: micros * unitsPerMicro, inUsd: true });
}

function messageOf({ body }: OpenAiError): string {
  return body.error.message;
}
