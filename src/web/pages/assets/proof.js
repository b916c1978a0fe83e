// Checks in the browser that the events on this page are in the log: RFC 6962 hashes up to the signed head, and its signature. It asks
// nobody: everything is on the page.

const section = document.querySelector('[data-proof]');
const text = new TextEncoder();

const bytesOf = (base64) => Uint8Array.from(atob(base64), (mark) => mark.charCodeAt(0));

async function sha256(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', whole));
}

const areEqual = (one, other) =>
  one.length === other.length && one.every((byte, index) => byte === other[index]);

/** The root that a leaf and its path lead to (RFC 9162, 2.1.3.2); undefined if the path has another length. */
async function rootOf(leaf, index, size, path) {
  let [node, last] = [index, size - 1];
  let hash = await sha256(Uint8Array.of(0), leaf);
  for (const sibling of path) {
    if (last === 0) return undefined;
    if (node % 2 === 1 || node === last) {
      hash = await sha256(Uint8Array.of(1), sibling, hash);
      while (node % 2 === 0 && node !== 0) [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
    } else {
      hash = await sha256(Uint8Array.of(1), hash, sibling);
    }
    [node, last] = [Math.floor(node / 2), Math.floor(last / 2)];
  }
  return last === 0 ? hash : undefined;
}

/** A C2SP checkpoint: its size, its root, and whether one of the keys has signed it; `unknown` if the browser has no Ed25519. */
async function readCheckpoint(note, keys) {
  const end = note.lastIndexOf('\n\n');
  const signed = note.slice(0, end + 1);
  const [origin, size, root] = signed.split('\n');
  const signatures = note
    .slice(end + 2)
    .split('\n')
    .map((line) => /^— (\S+) (\S+)$/.exec(line))
    .filter((match) => match?.[1] === origin)
    .map((match) => bytesOf(match[2]));
  const verdicts = [];
  for (const key of keys) {
    const [, name, base64] = /^([^+]+)\+[0-9a-f]{8}\+(\S+)$/.exec(key) ?? [];
    if (name === origin) verdicts.push(await verifyHead(text.encode(signed), signatures, bytesOf(base64)));
  }
  const signature = ['good', 'unknown'].find((one) => verdicts.includes(one)) ?? 'bad';
  return { size: Number(size), root: bytesOf(root), signature };
}

/** `key` is an algorithm's byte and a public key; a signature is four bytes of the key's id and 64 of Ed25519. */
async function verifyHead(signed, signatures, key) {
  let publicKey;
  try {
    publicKey = await crypto.subtle.importKey('raw', key.slice(1), 'Ed25519', false, ['verify']);
  } catch {
    return 'unknown';
  }
  for (const bytes of signatures)
    if (await crypto.subtle.verify('Ed25519', publicKey, bytes.slice(4), signed)) return 'good';
  return 'bad';
}

async function check() {
  const verdict = section.querySelector('[data-proof-verdict]');
  const note = section.querySelector('[data-checkpoint]').textContent;
  const { size, root, signature } = await readCheckpoint(note, section.dataset.logKeys.split(' '));
  let [good, bad, open] = [0, 0, 0];
  for (const row of document.querySelectorAll('[data-event]')) {
    const badge = row.querySelector('[data-verdict]');
    if (row.dataset.sealed !== 'yes') {
      open += 1;
      continue;
    }
    const leaf = text.encode(row.querySelector('[data-leaf]').textContent);
    const path = row.dataset.hashes.split(' ').filter(Boolean).map(bytesOf);
    const found = await rootOf(leaf, Number(row.dataset.event) - 1, size, path);
    const isGood = found !== undefined && areEqual(found, root);
    badge.textContent = isGood ? 'proven' : 'NOT the leaf of the log';
    badge.className = `badge ${isGood ? 'good' : 'bad'}`;
    if (isGood) good += 1;
    else bad += 1;
  }
  const isBad = bad > 0 || signature === 'bad';
  const words = [
    bad > 0
      ? `${bad} of ${good + bad} events do not lead to the signed head: what this page shows is not what was sealed.`
      : '',
    `${good} events were proven in this browser against the head of ${size} leaves.`,
    open > 0 ? `${open} wait for the next head.` : '',
    {
      good: 'The head is signed by the log’s key.',
      bad: 'The head is NOT signed by the log’s key.',
      unknown: 'This browser cannot check the signature of the head.',
    }[signature],
  ];
  verdict.textContent = words.filter(Boolean).join(' ');
  verdict.className = `notice ${isBad ? 'bad' : 'good'}`;
  verdict.setAttribute('role', isBad ? 'alert' : 'status');
}

if (section && crypto.subtle) await check();
