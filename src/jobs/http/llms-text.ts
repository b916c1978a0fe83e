import type { z } from 'zod';
import { decimalText } from '../../base/values/entry.ts';
import type { price } from './schemas/job.ts';

type Price = z.infer<typeof price>;

interface Sold {
  readonly publicUrl: string;
  /** The jobs that are listed. */
  readonly jobs: readonly Price[];
  /** How many are sold. */
  readonly total: number;
}

/** `/llms.txt`: what is sold and how to pay for it, in the form of llmstxt.org. A reader needs no other document to pay. */
export function llmsText({ publicUrl, jobs, total }: Sold): string {
  const more = total > jobs.length ? [`- ${total - jobs.length} more jobs are in the catalogue.`] : [];
  return [
    '# Paid jobs over x402',
    '',
    '> This server sells calls of jobs. A client pays for each call over HTTP with x402 version 2 (or 1), scheme `exact`, by signing a transfer of an ERC-20 token (EIP-3009). It needs no account here and no gas.',
    '',
    howToPay,
    '',
    rules,
    '',
    '## Jobs',
    '',
    ...jobs.map(jobLine),
    ...more,
    '',
    '## Documents',
    '',
    `- [Catalogue](${link(`${publicUrl}/x402/jobs`)}): JSON of all jobs, in pages: prices, what cannot be offered now and why, schemas of inputs`,
    `- [OpenAPI](${link(`${publicUrl}/openapi.json`)}): every route with every error code`,
    '',
    '## Optional',
    '',
    `- [x402 resources](${link(`${publicUrl}/.well-known/x402`)}): the same jobs for crawlers`,
    `- [Counters](${link(`${publicUrl}/x402/stats`)}): how many calls were paid, delivered and completed`,
    '',
  ].join('\n');
}

const howToPay = `To buy a call of a job:

1. Send a POST to the URL of the job with the job's input as the body; for a job with a \`Request:\` below, the request that you want answered. Nothing is charged. The answer is 402; its header \`PAYMENT-REQUIRED\` is base64 of JSON with \`x402Version\`, \`resource\` and \`accepts\`.
2. Choose one entry of \`accepts\` that you are willing to pay: \`amount\` is in the smallest unit of the token \`asset\` on the chain \`network\`. Sign the EIP-712 message \`TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)\` in the domain \`{name: extra.name, version: extra.version, chainId: the number in network, verifyingContract: asset}\`: \`from\` is your address, \`to\` is \`payTo\`, \`value\` is \`amount\`, \`validAfter\` is 0, \`validBefore\` is the Unix time now plus \`maxTimeoutSeconds\`, \`nonce\` is 32 random bytes.
3. Send the same request with the same body again, with the header \`PAYMENT-SIGNATURE\`: base64 of the JSON \`{"x402Version": 2, "accepted": the whole entry, unchanged, "payload": {"signature": "0x…", "authorization": {"from", "to", "value", "validAfter", "validBefore", "nonce"}}}\`, the numbers as decimal strings.
4. For a job with a \`Request:\` the answer is the resource itself. Otherwise the answer 202 means that the payment is settled and the call is enqueued. Its JSON has \`receipt_url\` and \`receipt_token\`.
5. GET the \`receipt_url\` with the header \`Authorization: Bearer {receipt_token}\`, and add \`?wait_secs=60\` to have the answer wait, until \`state\` is \`completed\`: \`result.body_base64\` is the output and \`result.content_type\` its type. \`dead_lettered\`: the call could not be delivered, and the operator delivers it again or pays it back. \`refunded\`: it was paid back.

Libraries do steps 1 to 3: \`@x402/fetch\` with the scheme \`exact\` of \`@x402/evm\`.`;

const rules = `Rules that keep you from paying twice:

- 402 in answer to a payment: this request charged nothing, and \`error\` says why. Choose from the \`accepts\` of this new answer and sign again.
- 503 with \`code\` \`settlement_pending\`: the payment was sent and its outcome is not known yet. Never sign another payment for this call. After \`Retry-After\` seconds send the same request with the same \`PAYMENT-SIGNATURE\` again, until the answer is 202 or 402.
- No answer, or the connection broke: send the same request with the same \`PAYMENT-SIGNATURE\` again. It is charged once.
- 429, or 503 with another \`code\`: \`error\` says whether anything was charged. After \`Retry-After\` seconds send the same request with the same \`PAYMENT-SIGNATURE\` again.
- 409 \`payment_replay\`: this payment paid for another request. 415 and 422: the body is not what the job takes. 403 and 404: the job is not sold to you. That request charged nothing.
- Prices below are the present ones, not offers: only an entry of \`accepts\` in a 402 can be paid, until the offer expires.`;

function jobLine(job: Price): string {
  const { service_id: service, job_index: index, name, description, x402_endpoint: endpoint } = job;
  const id = `Job ${service}/${index}`;
  const title = name === undefined ? id : `${inline(name)} (${id})`;
  const sentences = [
    ...(description === undefined ? [] : [ended(inline(description))]),
    priceSentence(job),
    requestSentence(job),
    ...callerSentence(job),
  ];
  return `- [${title}](${link(endpoint)}): ${sentences.join(' ')}`;
}

function priceSentence({ settlement_options: options, unavailable }: Price): string {
  if (unavailable) return `Cannot be paid now (${unavailable.reason}); ask again later.`;
  const prices = options.map(
    ({ amount, decimals, symbol, network }) =>
      `${decimalText(BigInt(amount), decimals)} ${symbol} on ${network}`,
  );
  return `Price: ${prices.join(' or ')}.`;
}

/** How it is requested: a route by its methods, and any other job by a POST with a body. */
function requestSentence(job: Price): string {
  const { methods, input, x402_endpoint: endpoint } = job;
  if (methods)
    return `Request: ${methods.join(' or ')}, where \`:name\` is one segment of the path and \`*\` its rest.`;
  if (!input) return 'Body: any.';
  const type = `Body: ${inline(input.content_type)}`;
  return input.json_schema
    ? `${type}; its JSON Schema is at ${link(endpoint)}/price under \`input\`.`
    : `${type}.`;
}

function callerSentence({ auth_mode: mode }: Price): string[] {
  if (mode === undefined) return [];
  const who =
    mode === 'payer_is_caller'
      ? 'payers whom its contract permits'
      : 'permitted callers, with the `X-NET-CALLER` headers that OpenAPI describes';
  return [`Only for ${who}; POST the request to …/auth-dry-run to test that for free.`];
}

function ended(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** An operator's text: no character of it is read as Markdown, and none ends the line. */
function inline(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/[\\`*_[\]<>#|~]/g, String.raw`\$&`);
}

/** A URL inside the parentheses of a link. */
function link(url: string): string {
  return url.replaceAll('(', '%28').replaceAll(')', '%29');
}
