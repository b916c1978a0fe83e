// The development wallet: a provider (EIP-1193) for the pages of a devnet. It has no key and no cryptography: what the person has
// confirmed in its dialog goes to the devnet, which signs.

const place = document.querySelector('aside.devnet-wallet');
const { address, chain, calls } = place.dataset;
const hexOf = (number) => `0x${Number(number).toString(16)}`;
/** The devnet's chain, and another one on which nothing is, for pages that find the wallet on a wrong network. */
const chains = new Map([
  [hexOf(chain), 'the devnet'],
  ['0x1', 'Ethereum, on which this wallet has nothing'],
]);
/** What a tab remembers of its wallet. */
const remembered = (key, value) => {
  try {
    if (value !== undefined) sessionStorage.setItem(`devnet-wallet.${key}`, value);
    return sessionStorage.getItem(`devnet-wallet.${key}`);
  } catch {
    return value ?? null;
  }
};
const state = { connected: remembered('connected') === 'yes', chainId: hexOf(chain), isAsking: false };
if (chains.has(remembered('chain'))) state.chainId = remembered('chain');

class ProviderError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function element(name, content, attributes = {}) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...[content].flat());
  return made;
}

/** Shows the request, and resolves once the person has confirmed; rejects with 4001 if it was refused. */
function confirm(title, facts, text, yes) {
  if (state.isAsking) throw new ProviderError(-32_002, 'the wallet is asking already: answer that first');
  state.isAsking = true;
  const rows = Object.entries({ ...facts, Account: address }).flatMap(([name, value]) => [
    element('dt', name),
    element('dd', element('code', value)),
  ]);
  const refuse = element('button', 'Refuse', { type: 'button', class: 'plain', autofocus: '' });
  const accept = element('button', yes, { type: 'button' });
  const dialog = element(
    'dialog',
    [
      element('p', 'Development wallet, devnet only', { class: 'devnet-wallet-mark' }),
      element('h2', title, { id: 'devnet-wallet-title' }),
      element('dl', rows, { class: 'facts' }),
      ...(text === undefined
        ? []
        : [element('pre', text, { tabindex: '0', role: 'region', 'aria-label': 'What is signed' })]),
      element('div', [accept, refuse], { class: 'actions' }),
    ],
    { class: 'devnet-wallet-dialog', 'aria-labelledby': 'devnet-wallet-title' },
  );
  document.body.append(dialog);
  return new Promise((resolve, reject) => {
    accept.addEventListener('click', () => dialog.close('yes'));
    refuse.addEventListener('click', () => dialog.close('no'));
    // also by the escape key
    dialog.addEventListener('close', () => {
      state.isAsking = false;
      dialog.remove();
      if (dialog.returnValue === 'yes') resolve();
      else reject(new ProviderError(4001, 'the person refused'));
    });
    dialog.showModal();
  });
}

async function send(method, params) {
  const answer = await fetch(calls, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ method, params }),
  });
  const { result, error } = await answer.json();
  if (!answer.ok) throw new ProviderError(-32_603, String(error));
  if (error) throw new ProviderError(error.code, error.message);
  return result;
}

/** Only a page that the person has connected, and the wallet's own account. */
function requireAccount(asked) {
  if (!state.connected)
    throw new ProviderError(4100, 'this page is not connected: ask for eth_requestAccounts first');
  if (String(asked).toLowerCase() !== address)
    throw new ProviderError(4100, `the wallet has no account ${asked}`);
}

function requireDevnet() {
  if (state.chainId !== hexOf(chain))
    throw new ProviderError(
      4901,
      `the wallet is on ${chains.get(state.chainId)}: switch to chain ${chain} first`,
    );
}

async function connect() {
  if (state.connected) return [address];
  await confirm('Connect this page with the wallet?', { Page: location.origin }, undefined, 'Connect');
  state.connected = true;
  remembered('connected', 'yes');
  emit('accountsChanged', [address]);
  return [address];
}

async function personalSign([message, account]) {
  requireAccount(account);
  if (typeof message !== 'string')
    throw new ProviderError(-32_602, 'personal_sign takes a text and an address');
  await confirm('Sign this message?', { Page: location.origin }, textOf(message), 'Sign');
  return send('personal_sign', [message, account]);
}

async function signTypedData([account, given]) {
  requireAccount(account);
  requireDevnet();
  let data;
  try {
    data = typeof given === 'string' ? JSON.parse(given) : given;
  } catch {
    throw new ProviderError(-32_602, 'the second parameter is not typed data (EIP-712)');
  }
  const shown = JSON.stringify({ domain: data?.domain, message: data?.message }, null, 2);
  await confirm(
    `Sign ${data?.primaryType ?? 'this'}?`,
    { Page: location.origin, 'Contract name': String(data?.domain?.name ?? 'none') },
    shown,
    'Sign',
  );
  return send('eth_signTypedData_v4', [account, data]);
}

async function switchChain([wanted]) {
  const chainId = typeof wanted?.chainId === 'string' ? wanted.chainId.toLowerCase() : '';
  if (!chains.has(chainId)) throw new ProviderError(4902, `the development wallet has no chain ${chainId}`);
  if (chainId === state.chainId) return null;
  await confirm(
    'Switch to another network?',
    { Page: location.origin, Network: `${Number(chainId)}: ${chains.get(chainId)}` },
    undefined,
    'Switch',
  );
  state.chainId = chainId;
  remembered('chain', chainId);
  emit('chainChanged', chainId);
  return null;
}

const methods = {
  eth_requestAccounts: connect,
  eth_accounts: async () => (state.connected ? [address] : []),
  eth_chainId: async () => state.chainId,
  net_version: async () => String(Number(state.chainId)),
  personal_sign: personalSign,
  eth_signTypedData_v4: signTypedData,
  wallet_switchEthereumChain: switchChain,
};

const listeners = new Map();

function emit(name, value) {
  for (const listener of listeners.get(name) ?? []) listener(value);
}

const provider = Object.freeze({
  isTollbookDevnet: true,
  async request({ method, params = [] } = {}) {
    if (typeof method !== 'string' || !Array.isArray(params))
      throw new ProviderError(-32_600, 'a request has a method and a list of parameters');
    if (Object.hasOwn(methods, method)) return methods[method](params);
    requireDevnet();
    return send(method, params);
  },
  on(name, listener) {
    listeners.set(name, new Set(listeners.get(name)).add(listener));
    return provider;
  },
  removeListener(name, listener) {
    listeners.get(name)?.delete(listener);
    return provider;
  },
});

/** The text of a message given as bytes; the bytes if they are not text. */
function textOf(message) {
  if (!/^0x(?:[0-9a-f]{2})*$/i.test(message)) return message;
  const bytes = (message.slice(2).match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(bytes));
  } catch {
    return message;
  }
}

const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8" fill="#7a4b00"/></svg>',
)}`;
const info = Object.freeze({
  uuid: crypto.randomUUID?.() ?? '00000000-0000-4000-8000-000000000000',
  name: 'Development wallet, devnet only',
  icon,
  rdns: 'example.devnet.wallet',
});

/** Announces this wallet (EIP-6963), besides those that the browser has. */
function announce() {
  const detail = Object.freeze({ info, provider });
  dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail }));
}
addEventListener('eip6963:requestProvider', announce);
announce();

if (window.ethereum === undefined) {
  Object.defineProperty(window, 'ethereum', { value: provider });
} else {
  place.querySelector('[data-devnet-wallet-state]').textContent =
    'This browser has its own wallet, which pages use unless they let you choose.';
}
