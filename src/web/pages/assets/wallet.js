// The wallet of the browser (EIP-1193): its account, its network, its balance and its signatures.

import { decimalText } from './amounts.js';

/** How long wallets have to say that they are there (EIP-6963). */
const announceMs = 150;
const hexBytes = /^0x(?:[0-9a-f]{2})+$/i;

/** Why it ended before any money moved: sentences for people. */
export class Stop extends Error {
  /** @param next the user's next step */
  constructor(what, next = '') {
    const charged = /nothing was charged/i.test(what) ? '' : ' Nothing was charged.';
    super(`${what}${charged}${next && ` ${next}`}`);
    this.what = what;
    this.next = next;
  }
}

export function stop(what, next) {
  return new Stop(what, next);
}

/**
 * The wallets of this browser: those that announce themselves, else the one that is injected.
 * @returns {Promise<{name: string, provider: {request: Function}}[]>}
 */
export async function findWallets() {
  const found = new Map();
  const add = ({ detail }) => {
    if (typeof detail?.provider?.request === 'function') found.set(detail.info.uuid, detail);
  };
  addEventListener('eip6963:announceProvider', add);
  dispatchEvent(new Event('eip6963:requestProvider'));
  await pause(announceMs);
  removeEventListener('eip6963:announceProvider', add);
  if (found.size > 0)
    return Array.from(found.values(), ({ info, provider }) => ({ name: info.name, provider }));
  const injected = window.ethereum;
  return typeof injected?.request === 'function' ? [{ name: 'your wallet', provider: injected }] : [];
}

export async function connect(provider) {
  const [address] = await request(provider, 'eth_requestAccounts', undefined, {
    rejected: 'You have not connected your wallet.',
  });
  if (!/^0x[0-9a-f]{40}$/i.test(address ?? ''))
    throw stop('Your wallet named no account.', 'Unlock it and try again.');
  return address.toLowerCase();
}

/** The way to pay that the wallet can take, on whose network it then is. */
export async function choose(purchase, { accepts }, provider, payer, show) {
  const { terms } = purchase;
  const options = accepts.filter((option) => canSign(option) && (!terms || isOf(option, terms)));
  if (options.length === 0)
    throw stop(
      terms
        ? `${terms.symbol} on ${networkText(purchase, terms.network)} is not taken at the moment.`
        : 'A page cannot pay with any token that is accepted here.',
      'Load this page again and choose another token.',
    );
  const [first] = options;
  if (terms && BigInt(first.amount) !== BigInt(terms.amount))
    throw stop(
      `The price is ${amountText(first.amount, terms)} now, and was ${amountText(terms.amount, terms)} when this page was loaded.`,
      'Load this page again.',
    );
  let chainId = await chainOf(provider);
  let here = options.filter(({ network }) => network === chainId);
  if (here.length === 0) {
    show('check', 'active', `Your wallet asks whether to change to ${networkText(purchase, first.network)}.`);
    await changeNetwork(purchase, provider, first.network);
    chainId = await chainOf(provider);
    here = options.filter(({ network }) => network === chainId);
    if (here.length === 0) throw wrongNetwork(purchase, first.network, 'Your wallet is on another network.');
  }
  const balances = await Promise.all(here.map((option) => balanceOf(provider, option.asset, payer)));
  const enough = here.find(
    (option, index) => balances[index] === undefined || balances[index] >= BigInt(option.amount),
  );
  if (enough) return enough;
  const [short] = here;
  const [has] = balances;
  const missing = BigInt(short.amount) - has;
  throw stop(
    `Your wallet has ${amountText(has, terms)} on ${networkText(purchase, short.network)}, and ${amountText(short.amount, terms)} are needed: ${amountText(missing, terms)} are missing.`,
    'Send them to the wallet, or choose another token or a smaller amount.',
  );
}

/** EIP-3009 alone: the other ways to pay need a transaction first. */
function canSign({ scheme, network, extra }) {
  const method = extra?.assetTransferMethod ?? 'eip3009';
  return (
    scheme === 'exact' &&
    /^eip155:\d+$/.test(network) &&
    method === 'eip3009' &&
    Boolean(extra?.name && extra.version)
  );
}

function isOf(option, { network, asset }) {
  return option.network === network && option.asset.toLowerCase() === asset.toLowerCase();
}

export async function chainOf(provider) {
  return `eip155:${BigInt(await request(provider, 'eth_chainId'))}`;
}

export async function changeNetwork(purchase, provider, network) {
  const chainId = `0x${BigInt(network.slice('eip155:'.length)).toString(16)}`;
  const change = () => provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId }] });
  try {
    await change();
  } catch (error) {
    if (codeOf(error) === 4001)
      throw wrongNetwork(purchase, network, 'You have not let your wallet change its network.');
    const known = purchase.networks?.[network];
    if (codeOf(error) !== 4902 || !known)
      throw wrongNetwork(
        purchase,
        network,
        codeOf(error) === 4902
          ? 'Your wallet does not know the network.'
          : 'Your wallet has not changed its network.',
      );
    try {
      await provider.request({ method: 'wallet_addEthereumChain', params: [{ chainId, ...known }] });
      if ((await chainOf(provider)) !== network) await change();
    } catch (refused) {
      const isRejected = codeOf(refused) === 4001;
      throw wrongNetwork(
        purchase,
        network,
        isRejected
          ? 'You have not let your wallet add the network.'
          : 'Your wallet has not added the network.',
      );
    }
  }
}

function wrongNetwork(purchase, network, what) {
  return stop(what, `Change it to ${networkText(purchase, network)} in the wallet, then try again.`);
}

/** Undefined if the wallet cannot say: the gateway then finds out before anything is charged. */
export async function balanceOf(provider, asset, payer) {
  const data = `0x70a08231${payer.slice(2).padStart(64, '0')}`;
  try {
    const answer = await provider.request({ method: 'eth_call', params: [{ to: asset, data }, 'latest'] });
    return hexBytes.test(answer) ? BigInt(answer) : undefined;
  } catch {
    return undefined;
  }
}

function typed(fields) {
  return Object.entries(fields).map(([name, type]) => ({ name, type }));
}

export function typedDataOf({ network, asset, extra }, authorization) {
  const chainId = Number(network.slice('eip155:'.length));
  return {
    types: {
      EIP712Domain: typed({
        name: 'string',
        version: 'string',
        chainId: 'uint256',
        verifyingContract: 'address',
      }),
      TransferWithAuthorization: typed({
        from: 'address',
        to: 'address',
        value: 'uint256',
        validAfter: 'uint256',
        validBefore: 'uint256',
        nonce: 'bytes32',
      }),
    },
    domain: { name: extra.name, version: extra.version, chainId, verifyingContract: asset },
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  };
}

export async function signatureOf(provider, payer, typedData) {
  const signature = await request(provider, 'eth_signTypedData_v4', [payer, JSON.stringify(typedData)], {
    rejected: 'You have not signed.',
  });
  if (typeof signature !== 'string' || !hexBytes.test(signature))
    throw stop('Your wallet answered without a signature.', 'Try again, or use another wallet.');
  return signature;
}

async function request(provider, method, params, { rejected = 'Your wallet has refused.' } = {}) {
  try {
    return await provider.request(params === undefined ? { method } : { method, params });
  } catch (error) {
    const code = codeOf(error);
    if (code === 4001) throw stop(rejected);
    if (code === -32002)
      throw stop('Your wallet waits for an answer already.', 'Open it, answer, and try again.');
    throw stop(`Your wallet says: ${messageOf(error)}.`);
  }
}

/** Some wallets wrap the error's code in their own error. */
export function codeOf(error) {
  return error?.data?.originalError?.code ?? error?.code;
}

function messageOf(error) {
  const text = typeof error?.message === 'string' ? error.message : String(error);
  return text.slice(0, 200).replace(/\.$/, '');
}

export function networkText({ networks }, network) {
  return networks?.[network]?.chainName ?? `the network ${network}`;
}

/** An exact amount of a token: `10.5 USDC`, or its atoms if its decimals are not known. */
export function amountText(atoms, terms) {
  if (!terms) return `${atoms} atoms`;
  return `${decimalText(atoms, terms.decimals)} ${terms.symbol}`;
}

export function hexOf(bytes) {
  return `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
