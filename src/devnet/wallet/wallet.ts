import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isLoopback } from '../../base/config/hosts.ts';
import { type Html, html } from '../../base/values/html.ts';
import { devnetAddress, devnetKeys } from '../accounts.ts';
import { answerCall, type WalletAccount } from './calls.ts';

export interface DevelopmentWallet {
  readonly stylesheet: string;
  readonly script: string;
  readonly notice: Html;
  readonly routes: (publicUrl: () => string) => (app: FastifyInstance) => Promise<void>;
}

const stylesheet = '/devnet/wallet.css';
const script = '/devnet/wallet.js';
const callPath = '/devnet/wallet';
const bodyLimit = 65_536;

/**
 * A wallet for the pages of a devnet: a provider (EIP-1193) in each page, which asks the person, and a route that signs with the
 * key of the devnet's payer. No page has a key. Only `npm start` hands it to a gateway.
 */
export async function createDevelopmentWallet({
  rpcUrl,
  chainId,
}: {
  readonly rpcUrl: string;
  readonly chainId: number;
}): Promise<DevelopmentWallet> {
  const account = { privateKey: devnetKeys.payer, address: devnetAddress('payer'), rpcUrl, chainId };
  const files = [
    {
      path: stylesheet,
      type: 'text/css',
      text: await readFile(new URL('wallet.css', import.meta.url), 'utf8'),
    },
    {
      path: script,
      type: 'text/javascript',
      text: await readFile(new URL('wallet.js', import.meta.url), 'utf8'),
    },
  ];
  return {
    stylesheet,
    script,
    notice: noticeOf(account),
    routes: (publicUrl) => async (app) => {
      for (const { path, type, text } of files)
        app.get(path, (_request, reply) =>
          reply
            .headers({ 'cache-control': 'no-cache', 'cross-origin-resource-policy': 'same-origin' })
            .type(`${type}; charset=utf-8`)
            .send(text),
        );
      app.post(callPath, { bodyLimit }, (request, reply) => answer(account, publicUrl(), request, reply));
    },
  };
}

function noticeOf({ address, chainId }: WalletAccount): Html {
  return html`<aside
    class="devnet-wallet"
    aria-label="Development wallet"
    data-address="${address}"
    data-chain="${chainId}"
    data-calls="${callPath}"
  >
    <p class="wrap">
      <strong>Development wallet, devnet only.</strong>
      <span data-devnet-wallet-state
        >A wallet of the local chain,
        <code title="${address}">${address.slice(0, 8)}…${address.slice(-6)}</code>, with test tokens. Its key
        is public.</span
      >
    </p>
  </aside>`;
}

async function answer(
  account: WalletAccount,
  publicUrl: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  reply.header('cache-control', 'no-store');
  if (!isOfThisMachine(request, publicUrl))
    return reply.code(403).send({
      error: 'the development wallet signs only for pages of its devnet on this machine; nothing was signed',
      code: 'wrong_origin',
    });
  return reply.send(await answerCall(account, request.body));
}

/**
 * Whether a page of this gateway asks, in a browser on this machine. The socket counts, not a proxy's header; a page of another
 * site whose name leads here has another origin; and a program that names no origin is not a page.
 */
function isOfThisMachine({ socket, headers }: FastifyRequest, publicUrl: string): boolean {
  const { origin, host } = new URL(publicUrl);
  const isSame = headers.origin === origin && headers.host === host;
  const { 'sec-fetch-site': site } = headers;
  return isSame && (site === undefined || site === 'same-origin') && isLoopback(socket.remoteAddress ?? '');
}
