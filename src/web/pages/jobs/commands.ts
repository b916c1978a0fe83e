import { html, type Html } from '../../../base/values/html.ts';
import type { JobId } from '../../../base/values/job.ts';
import { callerText } from '../../../payments/rules/caller-signature.ts';
import type { SettlementOption } from '../../../payments/rules/quote.ts';
import { snippet } from '../elements.ts';

/** What programs send: the job's address, and its input. */
export interface Purchase {
  readonly url: string;
  readonly contentType: string;
  /** Undefined: in the file `input`. */
  readonly body: string | undefined;
  /** What it costs: no program pays more. */
  readonly options: readonly Pick<SettlementOption, 'network' | 'asset' | 'amount'>[];
  /** The job, if a permitted caller signs the request in addition. */
  readonly signedFor?: JobId | undefined;
}

/** Longer input is read from a file. */
const maxInlineChars = 2_000;

/** Ready-made programs for the same call: one shows the offer and pays nothing, one pays. */
export function purchaseCommands(purchase: Purchase): Html {
  return html`${Object.keys(programs).map((label) => programDetails(label, purchase))}`;
}

/** The program that pays, where nothing else can; without a body it reads its input from a file. */
export function payPart(purchase: Purchase): Html {
  const caller =
    purchase.signedFor &&
    html`<p class="hint">
      <code>CALLER_KEY</code> has the private key of a permitted caller. It may be that of the wallet.
    </p>`;
  return html`<h3>${payLabel}</h3>
    ${program(payLabel, purchase)} ${caller}`;
}

function programDetails(label: string, purchase: Purchase): Html {
  return html`<details>
    <summary>${label}</summary>
    ${program(label, purchase)}
  </details>`;
}

function program(label: string, purchase: Purchase): Html {
  const isLong = purchase.body === undefined || purchase.body.length > maxInlineChars;
  return html`${snippet(programs[label]?.(purchase, isLong) ?? '', label)}
    <p class="hint">
      ${isLong && html`It reads the input from the file <code>input</code>. `}${label === payLabel ? payHint : priceHint}
    </p>`;
}

const payLabel = 'Pay with JavaScript';

/** What comes back from the program that pays. */
export const payHint = html`<code>WALLET_KEY</code> has the private key of the wallet that pays. The program
  prints 202, the address of the receipt, and the token with which the receipt shows the result.`;
/** What comes back without a payment. */
export const priceHint = html`It charges nothing. The answer is 402, with the price in each token and what the
payer signs, in JSON.`;

const programs: Readonly<Record<string, (purchase: Purchase, isLong: boolean) => string>> = {
  'See the price with curl': ({ url, contentType, body }, isLong) => `curl -si ${quoted(url)} \\
  -H ${quoted(`content-type: ${contentType}`)} \\
  --data-binary ${isLong ? '@input' : quoted(body ?? '')}`,
  [payLabel]: payProgram,
};

/** `isLong`: the body is in the file `input`. */
export function payProgram({ url, contentType, body, options, signedFor }: Purchase, isLong = false): string {
  const input = isLong ? "await readFile('input')" : scriptText(body ?? '');
  const signing = signedFor && {
    parts: `
const caller = privateKeyToAccount(process.env.CALLER_KEY);
const body = Buffer.from(${input});
const nonce = crypto.randomUUID();
const expiry = Math.floor(Date.now() / 1000) + 120;
const message = \`${callerText(signedFor, '${keccak256(body).slice(2)}', '${nonce}', '${expiry}')}\`;`,
    headers: `
    'X-NET-CALLER': caller.address,
    'X-NET-CALLER-SIG': await caller.signMessage({ message }),
    'X-NET-CALLER-NONCE': nonce,
    'X-NET-CALLER-EXPIRY': String(expiry),
  `,
  };
  return `// npm install @x402/fetch @x402/evm viem
${isLong ? "import { readFile } from 'node:fs/promises';\n" : ''}import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';${signing ? "\nimport { keccak256 } from 'viem';" : ''}
import { privateKeyToAccount } from 'viem/accounts';

const account = privateKeyToAccount(process.env.WALLET_KEY);
const schemes = [{ network: 'eip155:*', client: new ExactEvmScheme(account) }];
// the most to pay: its present price
const allowedAssets = [
${options.map(({ network, asset, amount }) => `  { network: '${network}', asset: '${asset}', maxAmountPerPayment: '${amount}' },`).join('\n')}
];
const client = x402Client.fromConfig({ schemes, spendControls: { allowedAssets } });${signing?.parts ?? ''}
const answer = await wrapFetchWithPayment(fetch, client)(${scriptText(url)}, {
  method: 'POST',
  headers: {${signing ? '\n   ' : ''} 'content-type': ${scriptText(contentType)}${signing ? `,${signing.headers}` : ' '}},
  body${signing ? '' : `: ${input}`},
});
const { receipt_url: receipt, receipt_token: token } = await answer.json();
console.log(answer.status, receipt, token);`;
}

/** A word of a shell that means nothing but itself. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A string of JavaScript, with invisible marks written as their code. */
function scriptText(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\p{Bidi_Control}\p{Cc}\u2028\u2029]/gu,
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
