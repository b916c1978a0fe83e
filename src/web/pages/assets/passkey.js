// Has the browser's authenticator make a passkey, or prove one, and sends the authenticator's answer with the form around the button.

const canAsk = typeof window.PublicKeyCredential?.parseRequestOptionsFromJSON === 'function';

/** Sentences for people, by the name of a DOMException. */
const faults = {
  NotAllowedError:
    'Your browser asked for no passkey, or was not allowed to. Nothing was changed; try again.',
  InvalidStateError: 'This authenticator has a passkey for you already. Nothing was changed.',
  SecurityError: 'Your browser makes no passkeys for this address. Nothing was changed.',
};

async function answer(does, options) {
  if (does === 'create') {
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
    return navigator.credentials.create({ publicKey });
  }
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
}

async function send(place) {
  const form = place.querySelector('form');
  const fault = place.querySelector('[role="alert"]');
  const button = place.querySelector('button');
  button.disabled = true;
  fault.hidden = true;
  try {
    const credential = await answer(place.dataset.passkey, JSON.parse(place.dataset.options));
    form.elements.credential.value = credential.id;
    form.elements.response.value = JSON.stringify(credential.toJSON());
    form.submit();
  } catch (error) {
    fault.textContent =
      faults[error.name] ?? 'The passkey could not be used. Nothing was changed; try again.';
    fault.hidden = false;
    button.disabled = false;
  }
}

for (const place of canAsk ? document.querySelectorAll('[data-passkey]') : []) {
  place.hidden = false;
  place.querySelector('button').addEventListener('click', () => void send(place));
}
