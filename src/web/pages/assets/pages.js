// What is nicer with JavaScript. Without it every form works, but for signing in with a wallet.

const all = (selector, within = document) => within.querySelectorAll(selector);

/** How far this clock is from the times of the page. */
for (const place of all('[data-zone]')) {
  const minutes = -new Date().getTimezoneOffset();
  const size = [
    [Math.floor(Math.abs(minutes) / 60), 'h'],
    [Math.abs(minutes) % 60, 'min'],
  ];
  const shown = size.filter(([number]) => number > 0).map((part) => part.join(' '));
  if (minutes !== 0)
    place.textContent = `: your clock is ${shown.join(' ')} ${minutes > 0 ? 'ahead' : 'behind'}`;
}

/** Copy buttons. */
for (const button of all('button[data-copy]')) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  const label = button.querySelector('span');
  const text = label.textContent;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      label.textContent = 'Copied';
    } catch {
      label.textContent = 'Not copied';
    }
    setTimeout(() => (label.textContent = text), 2_000);
  });
}

/** A form is sent once, however often its button is pressed. A page that the browser took from its memory can be sent again. */
for (const form of all('form')) {
  form.addEventListener('submit', (event) => {
    if (event.defaultPrevented) return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = 'yes';
  });
}
addEventListener('pageshow', (event) => {
  if (!event.persisted) return;
  for (const form of all('form[data-sent]')) delete form.dataset.sent;
  for (const signature of all('input[name="signature"]')) signature.value = '';
});

/** Signing in with the wallet of the browser (EIP-1193), or adding it: its form takes the wallet's signature. */
const wallet = window.ethereum;
for (const place of all('[data-wallet]')) {
  if (typeof wallet?.request !== 'function') break;
  place.hidden = false;
  const form = place.querySelector('form');
  const mistake = place.querySelector('[data-wallet-mistake]');
  form.addEventListener('submit', async (event) => {
    if (form.elements.signature.value !== '') return;
    event.preventDefault();
    delete form.dataset.sent;
    const button = form.querySelector('button');
    mistake.hidden = true;
    button.disabled = true;
    try {
      const [address] = await wallet.request({ method: 'eth_requestAccounts' });
      const message = await messageFor(place.dataset.wallet, address, form.elements.form.value);
      const signature = await wallet.request({ method: 'personal_sign', params: [hexOf(message), address] });
      Object.assign(form.elements.address, { value: address });
      Object.assign(form.elements.message, { value: message });
      Object.assign(form.elements.signature, { value: signature });
      form.requestSubmit();
    } catch (error) {
      mistake.textContent =
        error?.code === 4001
          ? 'You have not signed, so nothing was changed.'
          : `This did not work: ${error?.message ?? error}`;
      mistake.hidden = false;
    } finally {
      button.disabled = false;
    }
  });
}

async function messageFor(path, address, token) {
  const answer = await fetch(path, {
    method: 'POST',
    body: new URLSearchParams({ form: token, address }),
    redirect: 'manual',
  });
  if (answer.type === 'opaqueredirect') throw new Error('this page is too old, load it again');
  const json = await answer.json();
  if (!answer.ok) throw new Error(json.error);
  return json.message;
}

function hexOf(text) {
  return `0x${[...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
