import { expect, test } from 'vitest';
import {
  noteSigner,
  openCheckpoint,
  parseSeed,
  parseVerifierKey,
  signCheckpoint,
  verifierOf,
} from '../../../../src/base/values/log/checkpoint.ts';

const seed = Buffer.alloc(32, 7);
const signer = noteSigner('jobs.example/log', [seed]);
const verifier = parseVerifierKey(signer.verifierKeys[0]);
const head = { origin: 'jobs.example/log', size: 42, root: Buffer.alloc(32, 1) };

test('a signed checkpoint is parsed back', () => {
  const note = signCheckpoint(head, signer);
  expect(note.split('\n').slice(0, 4)).toEqual([
    'jobs.example/log',
    '42',
    'AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=',
    '',
  ]);
  expect(openCheckpoint(note, verifier)).toEqual(head);
});

test("a note and a key of Go's sumdb are read as its own tools read them", () => {
  const key = parseVerifierKey('PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW');
  const text =
    'If you think cryptography is the answer to your problem,\n' +
    "then you don't know what your problem is.\n";
  const signature = Buffer.from(
    'x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=',
    'base64',
  );
  const [one] = key.keys;
  expect(one?.keyId).toEqual(signature.subarray(0, 4));
  expect(one?.verify(text, signature.subarray(4))).toBe(true);
  expect(one?.verify(`${text} `, signature.subarray(4))).toBe(false);
});

test('the additional signature of a witness is ignored', () => {
  const note = signCheckpoint(head, signer);
  const witness = noteSigner('witness.example', [Buffer.alloc(32, 9)]);
  const text = note.slice(0, note.indexOf('\n\n') + 1);
  const cosigned = `${note}— witness.example ${witness.sign(text)[0]?.toString('base64')}\n`;
  expect(openCheckpoint(cosigned, verifier)).toEqual(head);
});

test('while a key is replaced a checkpoint is signed with both, and each key alone verifies it', () => {
  const next = Buffer.alloc(32, 8);
  const both = noteSigner(head.origin, [seed, next]);
  const note = signCheckpoint(head, both);
  expect(note.match(/^— /gm)).toHaveLength(2);
  for (const key of both.verifierKeys) expect(openCheckpoint(note, parseVerifierKey(key))).toEqual(head);
  // a gateway that knows both opens what one that knows only the next has signed
  const onlyNext = signCheckpoint(head, noteSigner(head.origin, [next]));
  expect(openCheckpoint(onlyNext, verifierOf(both))).toEqual(head);
  expect(() => openCheckpoint(onlyNext, verifier)).toThrow(/another key/);
  const changed = note.replace('\n42\n', '\n43\n');
  expect(() => openCheckpoint(changed, verifierOf(both))).toThrow(/does not hold/);
});

const good = signCheckpoint(head, signer);
test.each([
  [
    'another log',
    signCheckpoint({ ...head, origin: 'other.example' }, noteSigner('other.example', [seed])),
    /of the log other\.example/,
  ],
  ['another key', signCheckpoint(head, noteSigner(head.origin, [Buffer.alloc(32, 8)])), /another key/],
  ['a changed size', good.replace('\n42\n', '\n43\n'), /does not hold/],
  ['a size with a leading zero', good.replace('\n42\n', '\n042\n'), /not a checkpoint/],
  ['no signature', good.split('—')[0]!, /not a signed note/],
  ['no end', good.slice(0, -1), /not a signed note/],
  ['nothing', '', /not a signed note/],
  ['a control character', good.replace('jobs', 'jo\tbs'), /not a signed note/],
])('a checkpoint with %s is refused with a message', (_, note, message) => {
  expect(() => openCheckpoint(note, verifier)).toThrow(message);
});

test.each([
  ['nonsense', 'nonsense'],
  ['another hash', signer.verifierKeys[0].replace(/\+[0-9a-f]{8}\+/, '+00000000+')],
  ['another type', `a+${'0'.repeat(8)}+${Buffer.alloc(33, 2).toString('base64')}`],
])('a public key that is %s is refused', (_, text) => {
  expect(() => parseVerifierKey(text)).toThrow(/public key/);
});

test('a seed is 32 bytes in hex or base64', () => {
  expect(parseSeed(seed.toString('hex'))).toEqual(seed);
  expect(parseSeed(seed.toString('base64'))).toEqual(seed);
  expect(parseSeed(seed.toString('hex').slice(2))).toBeUndefined();
  expect(parseSeed('not a key')).toBeUndefined();
});
